//! Stdio transport: spawning, watching and stopping child processes.

mod child;
mod environment;
mod group;
mod noise;
mod output;
mod stderr;
mod watchdog;

pub(super) use child::{Child, SpawnError, spawn};
pub(super) use environment::kept_back;
pub use noise::StdoutNoise;
pub(super) use output::Output;
