//! Tests of agents against MCP servers: recordings that are replayed, and scenarios that are checked.
//!
//! Each run has an app of its own with a store in memory, so that its servers start afresh, and runs do not see each
//! other. Decisions, results of external tools and answers to elicitations come from the file, never from a person.

mod addresses;
mod answers;
mod case_setup;
mod error;
mod judge;
mod recording_file;
mod replay;
mod scenario_answers;
mod scenarios;
mod server_hook;
mod test_run;

pub use addresses::{recorded_address, server_settings};
pub use error::TestError;
pub use recording_file::read_recording;
pub use replay::{Replay, ReplayReport, replay};
pub use scenarios::{FileCase, TestOptions, read_cases, run_cases, run_scenarios};
pub use server_hook::ServerHook;

pub use crate::lab::scenario::{Attempt, CaseOutcome, CaseReport, Finding, TestReport};
