//! What the spans of a trace stand for, as text.
//!
//! `Trace::span` hashes such a label into a span id. The driver uses a label before the fact, to tell the other side of a
//! request which span is its parent; telemetry uses it after the fact, to give the span that id. Both must build the same
//! text, so it is built here only.

use crate::core::id::CallId;

/// One execution: `seq` is the journal position of the `Started` or `Resumed` that began it.
pub fn execution(seq: u64) -> String {
    format!("execution/{seq}")
}

/// One model call, attempts included: `seq` is the journal position of the turn's first `ModelCalled` within the
/// execution.
pub fn model_call(seq: u64) -> String {
    format!("llm/{seq}")
}

/// One tool call.
pub fn tool_call(call: &CallId) -> String {
    format!("tool/{call}")
}

/// One check or decision: `seq` is the journal position of its `OutputValidated` or `ApprovalDecided`.
pub fn guardrail(seq: u64) -> String {
    format!("guardrail/{seq}")
}
