//! Servers that are child processes: how one is spawned, watched and brought down.

mod child;
mod envelope;
mod environment;
mod group;
mod line_cap;
mod line_tap;
mod messages;
mod noise;
mod output;
mod secrets;
mod stderr;
mod watchdog;

pub(super) use child::{Child, SpawnError, spawn};
pub(super) use envelope::loosely;
pub(super) use line_cap::{LineCap, Overflow};
pub(super) use line_tap::LineTap;
pub(super) use messages::Messages;
pub(super) use output::Output;
