//! Servers that are child processes: how one is spawned, watched and brought down.

mod child;
mod environment;
mod group;
mod noise;
mod output;
mod secrets;
mod stderr;
mod watchdog;

pub(super) use child::{Child, SpawnError, spawn};
pub(super) use output::Output;
