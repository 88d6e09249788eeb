//! A run is its journal: an append-only list of facts. State is their fold, what to do next is a function of the state.
//!
//! [`Run::replay`] folds a journal, [`Run::next`] says what to do, [`Run::accept`] turns input from outside into facts,
//! and [`Run::apply`] appends one. Nothing here does I/O: the driver acts, or an embedder does by hand.

mod admit;
mod approval;
mod chain;
mod deadline;
mod drift;
mod ending;
mod event;
mod fold;
mod fork;
mod impossible;
mod input;
pub mod labels;
mod limits;
mod next;
mod pending;
mod spec;
mod state;
mod tasks;
mod turn;
mod unusable;

pub use approval::{Answer, Binding, Channel, Coverage, Decision, Granted, PolicyMark, Scope};
pub use chain::Candidate;
pub use deadline::Term;
pub use ending::{Ending, Output, Status};
pub use event::{CallVerdict, Event, HumanAnswer, InputGiven, Offer, OutputVerdict, Recorded, Rejection, Right};
pub use impossible::Impossible;
pub use input::{Input, Refusal, Resume};
pub use limits::{Budget, LONGEST_RETRY_AFTER_MS, Limit, Limits, TighterLimits, WiderLimit};
pub use next::Step;
pub use pending::{Debt, Owes};
pub use spec::{AskHuman, DEFAULT_COOLDOWN_S, InDoubt, OnDeny, Spec, Started, Trigger};
pub use state::Run;
pub use tasks::OpenTask;
pub use turn::{Answered, Call, CallState, Clearance, HeldElicitation, Settlement};
