//! Strict fakes of the ports, shared by all scenarios. They do what they are told, record what was done to them, and
//! hold against the program whatever the real thing could not forgive.

mod approvals;
mod clock;
mod ids;
mod intruder;
mod servers;
mod sink;
mod store;
mod validators;

pub(crate) use approvals::CountingApprovals;
pub(crate) use clock::FakeClock;
pub(crate) use ids::FakeIds;
pub(crate) use servers::{Change, FakeServers, tool};
pub(crate) use sink::RecordingSink;
pub(crate) use store::{FailingStore, Fault};
pub(crate) use validators::{JsonAnswers, StrictInputs};
