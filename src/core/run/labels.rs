//! Span labels: one label for each span of a run. The driver hashes these labels with the trace id to name the parent
//! of an outgoing request, telemetry to name the span itself: the two have to agree.

use crate::id::{CallId, ServerId};

/// The root span of one execution; `seq` is the position of its `execution.started` or `execution.resumed`.
pub fn execution(seq: u64) -> String {
    format!("execution/{seq}")
}

/// Listing the tools of a server, which may include its start; `seq` is the position of the execution for its first
/// listing, and of the next event for any later one.
pub fn listing(seq: u64, server: &ServerId) -> String {
    format!("listing/{seq}/{server}")
}

/// Waiting for admission; `seq` is the position of its `execution.queued`.
pub fn admission(seq: u64) -> String {
    format!("admission/{seq}")
}

/// One logical call of one model, retries included; `seq` is the position of its first attempt within the execution.
pub fn model_call(seq: u64) -> String {
    format!("llm/{seq}")
}

/// One compaction; `seq` is the position of its `compaction.started`.
pub fn compaction(seq: u64) -> String {
    format!("compaction/{seq}")
}

/// One tool call; `round` is the number of elicitation answers that its server received before.
pub fn tool_call(call: &CallId, round: u32) -> String {
    match round {
        0 => format!("tool/{call}"),
        // The model chooses the id, so it may have any form.
        _ => format!("tool-again/{round}/{call}"),
    }
}

/// A check of an answer or a decision about a call; `seq` is the position of its event.
pub fn guardrail(seq: u64) -> String {
    format!("guardrail/{seq}")
}
