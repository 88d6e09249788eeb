//! Servers that are child processes: how one is spawned, watched and brought down.

mod child;
mod environment;
mod group;
mod line_cap;
mod stderr;

pub(super) use child::{Child, SpawnError, spawn};
pub(super) use line_cap::{LineCap, Overflow};
pub(super) use stderr::StderrTail;
