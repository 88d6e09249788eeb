//! A run is its journal: an append-only list of facts. State is their fold, what to do next is a function of the state.

mod ending;
mod event;
pub mod labels;
mod limits;
mod pending;
mod spec;

pub use ending::{Ending, Output, Status};
pub use event::{Answer, CallVerdict, Decision, Event, Offer, OutputVerdict, Recorded, Rejection, Right, Scope};
pub use limits::{Budget, Limit, Limits};
pub use pending::Debt;
pub use spec::{InDoubt, OnDeny, Spec, Started, Trigger};
