//! Strict fakes of the ports for all scenarios. They do as configured, record every use, and report every violation
//! that the real system would not tolerate.

mod approvals;
mod clock;
mod ids;
mod intruder;
mod recording_model;
mod servers;
mod sessions;
mod sink;
mod store;
mod streaming_model;
mod validators;

pub(crate) use approvals::CountingApprovals;
pub(crate) use clock::FakeClock;
pub(crate) use ids::FakeIds;
pub(crate) use recording_model::{RecordingModel, SentMessages};
pub(crate) use servers::{Change, FakeServers, endpoint_of, tool, tools};
pub(crate) use sessions::{delegate_event_log, delegate_sessions};
pub(crate) use sink::RecordingSink;
pub(crate) use store::{FailingStore, Fault};
pub(crate) use streaming_model::{StreamControl, StreamingModel};
pub(crate) use validators::{JsonAnswers, StrictInputs};
