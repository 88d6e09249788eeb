//! Answer fold: folds the events of an answer into a reply. A complete answer starts and ends in one step, so streamed
//! and unstreamed replies follow the same rules.

use toolgate_core::chat::{ProviderState, Reply, Stop, Usage};
use toolgate_core::lifecycle::Delta;

use super::block::{BlockText, PartialBlock, can_be_kept};
use super::event::{Answer, Event, MessageEnd};
use super::replay::WIRE;
use super::usage::UsageCounts;
use crate::http::{CallIds, ErrorBody, Fault, Fold, StopReason, read};

/// The most blocks of a reply; a reply with more is treated as broken.
const MAX_BLOCKS: usize = 4096;

/// The part of an answer received so far.
#[derive(Debug, Default)]
pub(super) struct MessageFold {
    requested_model: String,
    /// Each block with the index that its deltas name.
    blocks: Vec<(u64, PartialBlock)>,
    has_message: bool,
    is_whole: bool,
    stop_reason: StopReason,
    counts: UsageCounts,
    model: Option<String>,
    response_id: Option<String>,
}

impl MessageFold {
    /// The start of an answer of this model.
    pub(super) fn new(requested_model: &str) -> Self {
        Self { requested_model: requested_model.to_owned(), ..Self::default() }
    }
}

impl Fold for MessageFold {
    fn event(&mut self, data: &str, deltas: &mut dyn FnMut(Delta)) -> Result<(), Fault> {
        match Event::read(data.as_bytes())? {
            Event::MessageStart { mut message } => {
                self.counts.note_beginning(message.usage.take());
                // The API has `null` here; the reason follows in `message_delta`.
                if message.stop_reason == StopReason::NULL {
                    message.stop_reason = StopReason::default();
                }
                self.begin(message, deltas)
            }
            Event::ContentBlockStart { index, content_block } => {
                self.begin_block(index, PartialBlock::new(content_block), deltas)
            }
            Event::ContentBlockDelta { index, delta } => {
                let growing = self.blocks.iter_mut().rfind(|(at, _)| *at == index);
                let (_, block) = growing.ok_or_else(|| Fault::Unreadable("a piece belongs to no block".into()))?;
                emit(block.grow(delta), deltas);
                Ok(())
            }
            Event::MessageDelta { delta: MessageEnd { stop_reason }, usage } => {
                self.stop_reason.note(stop_reason);
                self.counts.note(usage);
                Ok(())
            }
            Event::MessageStop => {
                self.is_whole = true;
                Ok(())
            }
            Event::Error { error } => Err(Fault::Provider(Box::new(ErrorBody::of_error(&error)))),
            Event::Other => Ok(()),
        }
    }

    fn whole(&mut self, body: &[u8]) -> Result<(), Fault> {
        let answer: Answer = read(body)?;
        if answer.content.is_none() {
            return Err(Fault::NoMessage("`content` is missing"));
        }
        self.is_whole = true;
        self.begin(answer, &mut |_| {})
    }

    fn is_done(&self) -> bool {
        self.is_whole
    }

    fn is_finished(&self) -> bool {
        self.is_whole
    }

    fn has_begun(&self) -> bool {
        !self.blocks.is_empty()
    }

    fn usage(&self) -> Usage {
        self.counts.usage()
    }

    fn into_reply(self: Box<Self>, known: &CallIds) -> Result<Reply, Fault> {
        if !self.has_message {
            return Err(Fault::NoMessage("the message never started"));
        }
        let usage = self.usage();
        let Self { requested_model, blocks, stop_reason, model, response_id, .. } = *self;
        let last_call = blocks.iter().rposition(|(_, block)| block.is_call());
        let stop = stop(&stop_reason, last_call.is_some())?;
        let last = blocks.len().saturating_sub(1);
        let (mut content, mut items) = (Vec::new(), Vec::with_capacity(blocks.len()));
        for (position, (_, block)) in blocks.into_iter().enumerate() {
            // A call before the last block may be complete; a block also starts with an empty object.
            let is_in_doubt = Some(position) == last_call && (position == last || block.has_no_arguments());
            let (part, item) = block.end(!stop.is_whole() && is_in_doubt);
            content.extend(part);
            items.push(item);
        }
        known.assign(&mut content);
        let is_kept = !items.is_empty() && items.iter().all(can_be_kept);
        let provider_state =
            is_kept.then(|| ProviderState { wire: WIRE.to_owned(), model: requested_model, origin: None, items });
        Ok(Reply { content, stop, usage, model, response_id, provider_state, first_token_ms: None })
    }
}

impl MessageFold {
    fn begin(&mut self, answer: Answer, deltas: &mut dyn FnMut(Delta)) -> Result<(), Fault> {
        let Answer { id, model, content, stop_reason, usage } = answer;
        self.has_message = true;
        self.response_id = id;
        self.model = model;
        self.stop_reason = stop_reason;
        self.counts.note(usage);
        let blocks = content.unwrap_or_default().into_iter().map(PartialBlock::new);
        (0..).zip(blocks).try_for_each(|(index, block)| self.begin_block(index, block, deltas))
    }

    fn begin_block(&mut self, index: u64, block: PartialBlock, deltas: &mut dyn FnMut(Delta)) -> Result<(), Fault> {
        if self.blocks.len() >= MAX_BLOCKS {
            return Err(Fault::Unreadable(format!("it has more than {MAX_BLOCKS} blocks")));
        }
        emit(block.fragment(), deltas);
        self.blocks.push((index, block));
        Ok(())
    }
}

fn emit(block_text: Option<BlockText>, deltas: &mut dyn FnMut(Delta)) {
    match block_text {
        Some(BlockText::Text(text)) => deltas(Delta::Text { text }),
        Some(BlockText::Reasoning(text)) => deltas(Delta::Reasoning { text }),
        None => {}
    }
}

/// The stop reason: calls decide it, unless the answer was cut or refused.
fn stop(reason: &StopReason, has_calls: bool) -> Result<Stop, Fault> {
    match reason.stated() {
        Some("max_tokens") => Ok(Stop::MaxTokens),
        Some("model_context_window_exceeded") => Ok(Stop::ContextWindow),
        Some("refusal") => Ok(Stop::Refusal),
        _ if has_calls => Ok(Stop::ToolCalls),
        Some("pause_turn") => Ok(Stop::Pause),
        Some(_) | None => reason.without_calls("stop_reason"),
    }
}
