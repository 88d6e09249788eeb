//! Closed sets of strings in the API: the schemas of core's enums, whose values core writes.

use std::borrow::Cow;

use serde_json::Value;
use toolgate_core::chat::Stop;
use toolgate_core::error::{ErrorCode, FailedStep};
use toolgate_core::lifecycle::LifecycleEvent;
use toolgate_core::policy::OnTimeout;
use toolgate_core::run::{Channel, Limit, Rejection, Restart, RunPhase, Status, ToolAccess, TriggerKind, UndoState};
use toolgate_core::tool::{AuthorizationStatus, FailureKind, StoredForm};
use toolgate_ports::{AnnotatorKind, WebhookKind};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// A schema with a name, whose values are strings.
macro_rules! named_set {
    ($(#[doc = $doc:literal])* $view:ident as $name:literal: $values:expr) => {
        $(#[doc = $doc])*
        pub(crate) struct $view;

        impl PartialSchema for $view {
            fn schema() -> RefOr<Schema> {
                set(&[$($doc),*], $values)
            }
        }

        impl ToSchema for $view {
            fn name() -> Cow<'static, str> {
                $name.into()
            }
        }
    };
}

/// Schemas of enums. The compiler refuses a value of the enum that is not listed.
macro_rules! closed_sets {
    ($($(#[doc = $doc:literal])* $view:ident as $name:literal: $set:ident { $($value:ident),* $(,)? } $(+ [$($other:literal),*])?)*) => { $(
        named_set! { $(#[doc = $doc])* $view as $name: {
            let listed = |value: $set| match value { $($set::$value => serde_json::to_value(value)),* };
            let values = [$($set::$value),*].map(listed).into_iter().flatten();
            values$(.chain([$($other.into()),*]))?
        } }
    )* };
}

closed_sets! {
    /// What started a run: `manual` is the command line, or a program that embeds toolgate; `api` a request over HTTP.
    /// Open: later versions may add values.
    TriggerView as "Trigger": TriggerKind { Manual, Api, Schedule, Compaction, Fork, Retry }

    /// The kind of author of a judgement: a person, a model, or a program.
    AnnotatorKindView as "AnnotatorKind": AnnotatorKind { Human, Llm, Code }

    /// The hard limit that a run reached; `governor` is a refusal of the governor. Open: later versions may add values.
    LimitView as "Limit": Limit { Iterations, Tokens, Cost, Governor }

    /// How far a run came that did not complete: `initialization` if no model replied before, otherwise `execution`.
    PhaseView as "RunPhase": RunPhase { Initialization, Execution }

    /// The step of a turn that failed. Open: later versions may add values.
    FailedStepView as "FailedStep": FailedStep { ContextBuild }

    /// Why a run did not continue the conversation of its session: what changed, or that the session expired. Open: later
    /// versions may add values.
    RestartView as "Restart": Restart { WorkingDirectory, Model, Servers, Policy, Expired }

    /// Where a decision was made or an action was taken: `timeout` if the policy decided because there was no answer in time,
    /// `limit` if toolgate itself acted at a limit of the run. Open: later versions may add values.
    ChannelView as "Channel": Channel { Terminal, CommandLine, Api, Limit, Library, Timeout }

    /// The policy's decision if an approval expires; `expire` without one.
    OnTimeoutView as "OnTimeout": OnTimeout { Approve, Deny, Expire }

    /// The state of an undo call: `refused` was not made (by policy or a person, or because it cannot be made),
    /// `outcome_unknown` was sent, and `not_made` was dropped because the run was cancelled again.
    UndoStateView as "UndoState": UndoState { Open, Undone, Failed, Refused, OutcomeUnknown, NotMade }

    /// Whether the model may call tools: not if the tool budget is used up, if the agent's stop condition holds, or in the
    /// final answer at a hard limit. Open: later versions may add values.
    ToolAccessView as "ToolAccess": ToolAccess { Enabled, BudgetExhausted, Stopped, FinalAnswer }

    /// Why a model stopped; `unknown` if its provider states no reason. Open: later versions may add values.
    StopView as "StopReason": Stop {
        End, ToolCalls, MaxTokens, ContextWindow, ContentFilter, Refusal, Pause, Unknown,
    }

    /// Why a call was rejected and did not run. Open: later versions may add values.
    RejectionView as "Rejection": Rejection { Unknown, InvalidArguments, Denied, Budget, Deferred, Expired }

    /// Whether an MCP server grants access.
    AuthorizationView as "AuthorizationStatus": AuthorizationStatus { Required, Authorized, Failed }

    /// The status of a run in a list: `interrupted` if it is `running` and no process executes it, because its process
    /// has died; a server or `toolgate runs recover` continues it.
    SummaryStatusView as "SummaryStatus": Status {
        Running, Pending, Completed, Failed, Cancelled, Incomplete, Expired,
    } + ["interrupted"]

    /// The type of a call's error: `tool_error` if the tool reports one, `unknown` if the call may or may not have taken
    /// effect. Open: later versions may add values.
    ToolErrorView as "ToolErrorType": FailureKind {
        Refused, Timeout, Disconnected, Unavailable, Changed, Unreadable, Cancelled, Panicked, Abandoned, Expired,
    } + ["tool_error", "unknown"]

    /// The type of a webhook message. Open: later versions may add values.
    WebhookTypeView as "WebhookMessageType": WebhookKind {
        Pending, Completed, Failed, Cancelled, Expired, Incomplete, ApprovalRequested, Test,
    }

    /// The part of a result that is stored outside the journal. Open: later versions may add values.
    StoredFormView as "StoredForm": StoredForm { Text, Structured, Both, Same, Wrapped, Media }
}

named_set! {
    /// A stable error code. Open: later versions may add values.
    ErrorCodeView as "ErrorCode": ErrorCode::ALL.iter().map(|code| code.as_str().into())
}

named_set! {
    /// A family of model APIs; `unknown` if the configuration of the model has an error. Open: later versions may add
    /// values.
    ModelApiView as "ModelApi": ["anthropic", "gemini", "openai", "scripted", "unknown"].into_iter().map(Value::from)
}

named_set! {
    /// The type of an event in streams of all runs. Open: later versions may add values.
    EventTypeView as "EventType": LifecycleEvent::JOURNALED.into_iter().map(Value::from)
}

fn set(doc: &[&str], values: impl Iterator<Item = Value>) -> RefOr<Schema> {
    let description: Vec<&str> = doc.iter().map(|line| line.trim()).collect();
    let object = ObjectBuilder::new().schema_type(Type::String).description(Some(description.join("\n")));
    object.enum_values(Some(values)).build().into()
}
