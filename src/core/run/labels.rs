//! What each span of a run stands for. The driver hashes these labels with the trace id to name the parent of an
//! outgoing request, telemetry to name the span itself: the two have to agree.

use crate::core::id::CallId;

/// The root span of one execution; `seq` is the position of its `execution.started` or `execution.resumed`.
pub fn execution(seq: u64) -> String {
    format!("execution/{seq}")
}

/// Asking servers for their tools; `seq` is the position of the execution for the listing that it begins with, and of the
/// fact that came of it for any later one.
pub fn listing(seq: u64) -> String {
    format!("listing/{seq}")
}

/// One logical call of one model, retries inside; `seq` is the position of its first attempt within the execution.
pub fn model_call(seq: u64) -> String {
    format!("llm/{seq}")
}

/// One tool call; `round` counts how often its server was answered before it was sent.
pub fn tool_call(call: &CallId, round: u32) -> String {
    match round {
        0 => format!("tool/{call}"),
        // The id is the model's word and may look like anything.
        _ => format!("tool-again/{round}/{call}"),
    }
}

/// A check of an answer or a decision about a call; `seq` is the position of its event.
pub fn guardrail(seq: u64) -> String {
    format!("guardrail/{seq}")
}
