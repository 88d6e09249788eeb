//! Runs. A run is its journal: an append-only list of events. The state is their fold, and the next step is a function
//! of the state.
//!
//! [`Run::replay`] folds a journal, [`Run::next`] returns the next step, [`Run::accept`] turns input from outside into
//! events, and [`Run::apply`] appends one. Nothing here does I/O: the driver acts, or an embedder does.

mod admit;
mod answer;
mod approval;
mod attempts;
mod backoff;
mod compaction;
mod compaction_fold;
mod compensation;
mod compensation_fold;
mod deadline;
mod drift;
mod empty_answer;
mod ending;
mod event;
mod expiry;
mod fallback;
mod fold;
mod fork;
mod grant_coverage;
mod history;
mod input;
mod invalid_event;
pub mod labels;
mod limits;
mod model_options;
mod next;
mod pause;
mod pause_fold;
mod pending;
mod predecessor;
mod redaction;
mod replies;
mod required;
mod result;
mod resume_error;
mod rules;
mod segment;
mod segment_fold;
mod server_wait;
mod shown_tools;
mod spec;
mod spending;
mod spending_fold;
mod state;
mod step;
mod stop_conditions;
mod tasks;
mod tool_error;
mod transcript;
mod trigger_kind;
mod turn;
mod unusable;
mod verdict;
mod warning;

pub use answer::Answer;
pub use approval::{AskedBy, Binding, Channel, Coverage, Decision, DecisionKind, Scope, ToolGrant};
pub use backoff::Backoff;
pub use compaction::{COMPACTION_INSTRUCTION, Compaction, DEFAULT_KEEP_TOKENS, compaction_request};
pub use compensation::{Compensation, UndoCall, UndoResult, UndoState};
pub use deadline::Deadline;
pub use ending::{Ending, Output, Status};
pub use event::{ElicitationAnswer, Event, HumanAnswer, JournalEntry, ToolAccess};
pub use history::{AttemptEnd, AttemptHistory, CallHistory, History, TurnHistory};
pub use input::{Answerable, Input, PartialReply, Resume};
pub use invalid_event::InvalidEvent;
pub use limits::{Budget, LONGEST_RETRY_AFTER_MS, Limit, Limits, TighterLimits, WiderLimit};
pub use model_options::ModelOptions;
pub use pause::{Pause, Unpause};
pub use pending::{
    AnswerForm, BackgroundWork, Delivery, Description, PendingApproval, PendingCall, PendingCounts,
    PendingExternalResult, PendingInput, PendingItem, PendingPause, PendingQuestion, PendingTask, Review,
};
pub use predecessor::Predecessor;
pub use result::{RunPhase, RunResult};
pub use resume_error::ResumeError;
pub use rules::{OnDeny, OnToolError, OnUnknownOutcome, RunRules};
pub use segment::{CompactedSegment, Segment};
pub use server_wait::ServerWait;
pub use spec::{Candidate, DEFAULT_COOLDOWN_S, DIRECT_CALL_MODEL, Restart, Spec, Started, Trigger};
pub use spending::{CallEstimate, OnExceed};
pub use state::Run;
pub use step::Step;
pub use tasks::OpenTask;
pub use trigger_kind::TriggerKind;
pub use turn::{AnsweredElicitation, Call, CallAuthorization, CallState, HeldElicitation, Settlement};
pub use verdict::{Authorization, CallVerdict, OutputVerdict, Rejection};
pub use warning::RunWarning;
