//! Recordings: runs as files, from which either side can be played again.
//!
//! A recording has the replies of the model, and the tools and results of the servers. The recorded model
//! ([`Recording::script`]) plays against a real server, the recorded server ([`RecordedServers`]) answers a real model,
//! and [`compare`] names the first place where the new run differs. This module reads journals and writes files; it starts
//! no run and connects to no server.

mod compare;
mod difference;
mod divergence;
mod expected;
mod file;
mod from_journal;
mod json_path;
mod matcher;
mod normalise;
mod played;
mod recorded_servers;
#[cfg(test)]
mod tests;
mod text;

pub use compare::{Comparison, Side, compare};
pub use difference::Difference;
pub use divergence::{Divergence, DivergenceKind};
pub use expected::Expected;
pub(crate) use file::present;
pub use file::{
    CallOrder, HttpAddress, Ignore, Part, RecordedCall, RecordedDecision, RecordedEnd, RecordedResult, RecordedServer,
    RecordedTool, RecordedTurn, Recording, StdioAddress, VERSION,
};
pub use from_journal::{RecordingContext, Unrecordable};
pub use json_path::{JsonPath, PathPattern};
pub use matcher::Members;
pub use recorded_servers::RecordedServers;
pub use text::{Format, JsonlError};
