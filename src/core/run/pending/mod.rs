//! Pending items of a suspended run, one file for each kind. Derived from the journal; never written (law 8).
//!
//! The file of a kind has its data, the state of a call that it waits in, its [`Description`], its deadline, and its
//! [`PendingCounts`]. Surfaces render the description, and match on the form of the answer instead of the kind.

mod approval;
mod counts;
mod description;
mod external_result;
mod input;
mod pause;
mod question;
mod task;

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::approval::PendingApproval;
pub use self::counts::PendingCounts;
pub use self::description::{AnswerForm, BackgroundWork, Delivery, Description, Review};
pub use self::external_result::PendingExternalResult;
pub use self::input::PendingInput;
pub use self::pause::PendingPause;
pub use self::question::PendingQuestion;
pub use self::task::PendingTask;
use super::{Binding, Call, Pause, Settlement};
use crate::id::CallId;
use crate::tool::{Arguments, ToolName, ToolRef};

/// A pending item: an input from outside that the run needs before it continues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PendingItem {
    /// The caller has to run this tool and return its result.
    ExternalResult(PendingExternalResult),
    /// This call requires approval.
    Approval(PendingApproval),
    /// The model has a question for the user.
    Question(PendingQuestion),
    /// The tool's server requests input before it continues.
    #[serde(rename = "elicitation")]
    Input(PendingInput),
    /// The call runs as a task at the tool's server. No answer is required: the run continues when the server is done.
    Task(PendingTask),
    /// The run was paused. It belongs to no call.
    Pause(PendingPause),
}

/// The call that a pending item belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCall<'a> {
    /// Its id; answers are addressed to it.
    pub id: &'a CallId,
    /// The name of the tool that the model sees.
    pub name: &'a ToolName,
    pub tool: Cow<'a, ToolRef>,
    pub arguments: Cow<'a, Arguments>,
}

/// A kind of pending item, as the file of the kind defines it.
trait Kind {
    /// The item for people and programs.
    fn describe(&self) -> Description<'_>;

    /// The call that the item belongs to; `None` for an item of the run itself.
    fn call(&self) -> Option<PendingCall<'_>> {
        None
    }

    /// Adds the item to the counts of its run.
    fn count(&self, counts: &mut PendingCounts);

    /// The settlement of the call when the deadline passes; `None` for a kind without deadlines.
    fn expired(&self) -> Option<Settlement> {
        None
    }

    /// The content that a decision would be bound to; `None` unless the item waits for a decision.
    fn binding(&self) -> Option<Binding> {
        None
    }
}

impl Call {
    /// The settlement of a call that expires without a decision or an answer.
    pub fn expired_settlement(&self) -> Settlement {
        let item = PendingItem::new(self);
        item.and_then(|item| item.definition().expired()).unwrap_or_else(Settlement::no_result_in_time)
    }
}

impl PendingItem {
    /// The item of a call; `None` unless the call waits for input from outside.
    pub(super) fn new(call: &Call) -> Option<Self> {
        let tool = call.tool.as_deref()?;
        let approval = || PendingApproval::new(call, tool).map(Self::Approval);
        let external_result = || PendingExternalResult::new(call, tool).map(Self::ExternalResult);
        let question = || PendingQuestion::new(call, tool).map(Self::Question);
        let input = || PendingInput::new(call, tool).map(Self::Input);
        let task = || PendingTask::new(call, tool).map(Self::Task);
        approval().or_else(external_result).or_else(question).or_else(input).or_else(task)
    }

    /// The item of a paused run.
    pub(super) fn of_pause(pause: &Pause) -> Self {
        Self::Pause(PendingPause::new(pause))
    }

    fn definition(&self) -> &dyn Kind {
        match self {
            Self::ExternalResult(item) => item,
            Self::Approval(item) => item,
            Self::Question(item) => item,
            Self::Input(item) => item,
            Self::Task(item) => item,
            Self::Pause(item) => item,
        }
    }

    /// The description that surfaces render.
    pub fn describe(&self) -> Description<'_> {
        self.definition().describe()
    }

    /// The form of its answer.
    pub fn form(&self) -> AnswerForm<'_> {
        self.describe().form
    }

    /// The call it belongs to; `None` for an item of the run itself.
    pub fn call(&self) -> Option<PendingCall<'_>> {
        self.definition().call()
    }

    /// The id of that call.
    pub fn call_id(&self) -> Option<&CallId> {
        self.describe().call_id
    }

    /// The `type` in JSON.
    pub fn kind(&self) -> &'static str {
        self.describe().kind
    }

    /// When the wait began, if the time of the events is known.
    pub fn requested_at(&self) -> Option<Timestamp> {
        self.describe().requested_at
    }

    /// Its deadline; `None` if it stays pending as long as the run lives.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.describe().expires_at
    }

    /// The content that a decision would be bound to; `None` unless it waits for a decision. An approver sends its
    /// digest back as `digest`.
    pub fn binding(&self) -> Option<Binding> {
        self.definition().binding()
    }

    /// Whether it is a question on a call that is held open for the answer.
    pub fn is_held(&self) -> bool {
        matches!(self.form(), AnswerForm::Elicitation { delivery: Delivery::Held, .. })
    }

    /// Whether it can be answered while the run is executing.
    pub fn is_answered_in_flight(&self) -> bool {
        self.is_held() || matches!(self, Self::Pause(_))
    }

    /// Whether the user or the caller has to answer it.
    pub fn wants_answer(&self) -> bool {
        self.form().wants_answer()
    }

    /// Whether both are the same request, so that an answer to one settles the other.
    pub fn is_same_request(&self, other: &Self) -> bool {
        let (one, other) = (self.describe(), other.describe());
        let is_same_form = one.form == other.form || !one.form.wants_answer();
        (one.kind, one.call_id, one.event) == (other.kind, other.call_id, other.event) && is_same_form
    }
}
