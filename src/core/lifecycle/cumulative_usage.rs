//! The usage of a run so far, in the events of its model calls.

use serde::Serialize;

use crate::chat::Usd;

/// The usage of a run up to and including one attempt, as its limits count it. A figure that no attempt reported is
/// absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CumulativeUsage {
    /// Tokens read, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Usd>,
}
