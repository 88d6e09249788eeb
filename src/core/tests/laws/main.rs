//! The laws of a run (ARCHITECTURE.md) as property tests, and the scenarios that led to them. No clock, no runtime, and
//! no I/O, except that `stored_journals` reads a file. All tests use the public types of the core, and this binary links
//! nothing else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::wildcard_enum_match_arm)]

mod answers;
mod choices;
mod compaction;
mod empty_answers;
mod events;
mod fixtures;
mod manual_driver;
mod provider;
mod world;

mod calls;
mod commands;
mod compensation;
mod consent;
mod facts;
mod fallback;
mod forks;
mod history;
mod journals;
mod naming;
mod pauses;
mod policies;
mod policies_with_conditions;
mod prefixes;
mod results;
mod resumes;
mod scenarios;
mod segments;
mod spending;
mod stop_conditions;
mod stored_journals;
