//! Compaction: a model summarizes the beginning of a long conversation, and later calls read the summary in its place.
//!
//! The settings, the request, and what a run knows about its compactions. The steps are in `compaction_fold.rs`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::transcript::say;
use crate::chat::{Message, Part};
use crate::error::Failure;
use crate::id::ModelName;

/// The number of tokens at the end of a conversation that a compaction keeps by default.
pub const DEFAULT_KEEP_TOKENS: u64 = 10_000;

/// The instruction to the model that writes the summary: the last user message of its request.
pub const COMPACTION_INSTRUCTION: &str = "[toolgate] Write a summary of the conversation so far. It replaces the \
    conversation: the work continues from the summary alone. State what the user wants and every constraint they gave, \
    what was done and with which results, decisions with their reasons, names, identifiers, numbers and paths that are \
    still needed, errors, and what remains to be done. Do not call tools, do not continue the work, and do not answer \
    the user. Reply with the summary only.";

/// The tokens that an image or another medium counts for.
const MEDIA_TOKENS: u64 = 1_000;

/// When conversations are compacted, and what is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// The size of a conversation in tokens at which it is compacted; `None` for only on request, and after an error
    /// `context_window`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_tokens: Option<u64>,
    /// The most tokens at the end of the conversation that are kept.
    pub keep_tokens: u64,
    /// The model that writes the summary; `None` for the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
}

impl Default for Compaction {
    fn default() -> Self {
        Self { at_tokens: None, keep_tokens: DEFAULT_KEEP_TOKENS, model: None }
    }
}

/// What a run knows about its compactions.
#[derive(Clone, Debug, Default)]
pub(super) struct Compactions {
    /// Whether a compaction was tried since the latest reply.
    pub(super) is_tried: bool,
    /// The result of the latest one.
    pub(super) result: Option<Result<String, Failure>>,
    /// The conversation as people read it, once the transcript no longer has all of it.
    pub(super) conversation: Option<Vec<Arc<Message>>>,
    /// The messages from before the run that the latest compaction kept, if that conversation was not read.
    pub(super) keeps_before: usize,
    /// Whether the latest compaction kept a message of the run.
    pub(super) keeps_own: bool,
    /// The number of parts of the first message that are the summary, if there was a compaction.
    pub(super) summary_parts: usize,
    /// The user's latest message of this run, and its index in the transcript.
    pub(super) latest: Option<(usize, Message)>,
    /// The number of messages that the latest call and reply had, and their tokens as the provider counted them.
    pub(super) measured: Option<(usize, u64)>,
}

/// The request for a summary of these messages: the messages, unchanged, and the instruction.
pub fn compaction_request(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut request = messages.to_vec();
    say(&mut request, Message::user(COMPACTION_INSTRUCTION));
    request
}

/// The index of the last `keeps` messages.
pub(super) fn tail(messages: &[Arc<Message>], keeps: u64) -> usize {
    messages.len().saturating_sub(usize::try_from(keeps).unwrap_or(usize::MAX))
}

/// The first index from this one on at which no call is separated from its result.
pub(super) fn boundary(messages: &[Arc<Message>], index: usize) -> usize {
    let results = messages.iter().skip(index).take_while(|message| has_results(message)).count();
    index.saturating_add(results).min(messages.len())
}

pub(super) fn has_results(message: &Arc<Message>) -> bool {
    message.content.iter().any(|part| part.tool_result().is_some())
}

/// The tokens of a message, estimated from the length of its text.
pub(super) fn estimate(message: &Message) -> u64 {
    message.content.iter().map(tokens).sum()
}

fn tokens(part: &Part) -> u64 {
    let text = |length: usize| (length as u64).div_ceil(4);
    match part {
        Part::Text { text: said } | Part::Reasoning { text: said } => text(said.len()),
        Part::ToolUse { name, input, .. } => text(name.len() + input.to_value().to_string().len()),
        Part::ToolResult { content, .. } => content.iter().map(tokens).sum(),
        Part::Resource { text: Some(said), .. } => text(said.len()),
        Part::Image(_) | Part::Audio(_) | Part::Resource { text: None, .. } => MEDIA_TOKENS,
    }
}
