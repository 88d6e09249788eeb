//! Recordings: runs as files, from which either side can be played again.
//!
//! A recording has the replies of the model, and the tools and results of the servers. The recorded model
//! ([`Recording::script`]) plays against a real server, the recorded server ([`RecordedServers`]) answers a real model,
//! and [`compare`] names the first place where the new run differs. This module reads journals and writes files; it starts
//! no run and connects to no server.

mod difference;
mod expected;
mod file;
mod json_path;
mod matcher;
mod yaml;

pub use difference::Difference;
pub use expected::Expected;
pub use file::{
    CallOrder, HttpAddress, Ignore, Part, RecordedCall, RecordedDecision, RecordedEnd, RecordedResult, RecordedServer,
    RecordedTool, RecordedTurn, Recording, StdioAddress, VERSION,
};
pub use json_path::{JsonPath, PathPattern};
pub use matcher::Members;
