//! The pure heart: what a run is, what it may become, what is to be done next.
//!
//! Nothing here is async, reads a clock, draws a random number, looks at the environment or logs. Whatever the world
//! says arrives as an event; whatever is to be done to the world leaves as a step.

pub mod address;
pub mod blob;
pub mod chat;
pub mod error;
pub mod id;
pub mod json;
pub mod pattern;
pub mod policy;
pub mod run;
pub mod tool;
pub mod trace;
