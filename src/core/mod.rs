//! The pure core: the state of a run, its events, and the decision about the next step.
//!
//! Nothing here is async, reads a clock, draws a random number, looks at the environment or logs. Every input from
//! outside is an event; every effect on the outside is a step.

pub mod address;
pub mod blob;
pub mod chat;
pub mod error;
pub mod id;
pub mod json;
pub mod lifecycle;
pub mod pattern;
pub mod policy;
pub mod redact;
pub mod run;
pub mod similar;
pub mod sse;
pub mod timestamp;
pub mod tool;
pub mod trace;
pub mod unique_members;
