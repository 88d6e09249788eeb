//! HTTP answer parser, without a network: it takes status and headers, then bytes in any pieces, and returns the reply
//! or the failure. Status and content type select the format, and the size is limited.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_core::chat::{ProviderState, Reply, Usage};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::json::{MAX_DEPTH, is_deeper_than};
use toolgate_core::lifecycle::Delta;
use toolgate_core::sse::Decoder;
use toolgate_ports::ModelFailure;

use super::CallIds;
use super::error_body::ErrorBody;
use super::errors;
use super::fault::Fault;
use super::protocol::{Fold, ProviderProtocol};
use super::retry_hints::RetryHints;

/// The most bytes of one event: an image comes in one event.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// The most bytes read of an error body.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// The most log records about unknown events of one answer.
const MAX_UNKNOWN_LOGGED: usize = 8;

/// The status and headers of an answer.
#[derive(Clone, Debug)]
pub struct Head {
    server: String,
    status: u16,
    form: BodyForm,
    is_page: bool,
    hints: RetryHints,
}

#[derive(Clone, Copy, Debug)]
enum BodyForm {
    Error,
    Whole,
    Events,
}

/// Whether more bytes are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    More,
    /// The answer is complete.
    Enough,
}

/// The part of an answer received so far.
#[derive(Debug)]
pub struct Answer {
    head: Head,
    body: Body,
    seen: usize,
    /// Events that are no events of the API.
    unknown: usize,
    wire: Arc<dyn ProviderProtocol>,
}

#[derive(Debug)]
enum Body {
    Error(Vec<u8>),
    Whole(Vec<u8>),
    Events(Box<Decoder>, Box<dyn Fold>),
}

impl Head {
    /// The head of an answer of `server` (its display name). The content type selects the format; without a known
    /// content type, `streaming` (the requested format) does. `now` resolves a `retry-after` date.
    pub fn new<'a>(
        server: &str,
        status: u16,
        header: impl Fn(&str) -> Option<&'a str>,
        streaming: bool,
        now: Timestamp,
    ) -> Self {
        let content_type = header("content-type").unwrap_or_default().to_ascii_lowercase();
        let form = match status {
            200..300 if content_type.contains("event-stream") => BodyForm::Events,
            200..300 if content_type.contains("json") || content_type.contains("html") || !streaming => BodyForm::Whole,
            200..300 => BodyForm::Events,
            _ => BodyForm::Error,
        };
        let is_page = content_type.contains("html");
        Self { server: server.to_owned(), status, form, is_page, hints: RetryHints::read(header, now) }
    }
}

impl Answer {
    /// An answer with this head and no body yet.
    pub(super) fn new(head: Head, wire: &Arc<dyn ProviderProtocol>) -> Self {
        let body = match head.form {
            BodyForm::Error => Body::Error(Vec::new()),
            BodyForm::Whole => Body::Whole(Vec::new()),
            BodyForm::Events => Body::Events(Box::new(Decoder::up_to(MAX_EVENT_BYTES)), wire.fold()),
        };
        Self { head, body, seen: 0, unknown: 0, wire: Arc::clone(wire) }
    }

    /// Adds bytes. Fragments of a streamed reply go to `deltas`.
    pub fn push(&mut self, bytes: &[u8], deltas: &mut dyn FnMut(Delta)) -> Result<Progress, Failure> {
        self.seen = self.seen.saturating_add(bytes.len());
        let limit = self.wire.max_answer_bytes();
        if self.seen > limit {
            return Err(self.head.too_large(&format!("the answer is larger than {} MiB", limit >> 20)));
        }
        match &mut self.body {
            Body::Error(body) => {
                body.extend_from_slice(bytes);
                Ok(if body.len() < MAX_ERROR_BYTES { Progress::More } else { Progress::Enough })
            }
            Body::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(Progress::More)
            }
            Body::Events(decoder, fold) => {
                // Events before an error count, independent of how the network splits bytes.
                for event in decoder.push(bytes) {
                    let event = event.map_err(|fault| self.head.too_large(&fault.to_string()))?;
                    let Some(data) = event.data else { continue };
                    let expected = || format!("an event of the API `{}`, as JSON", self.wire.name());
                    // Not repaired, unlike in MCP: a damaged reply must not look whole (decision 0003).
                    let data = String::from_utf8(data).map_err(|error| {
                        self.head.invalid("an event is not UTF-8").with_reply(error.as_bytes(), expected())
                    })?;
                    match fold.event(&data, deltas) {
                        Ok(()) => {}
                        Err(Fault::UnknownEvent(form)) => {
                            self.unknown += 1;
                            if self.unknown <= MAX_UNKNOWN_LOGGED {
                                let (server, wire) = (self.head.server.as_str(), self.wire.name());
                                tracing::warn!(server, wire, form, "unknown event in a model's stream ignored");
                            }
                        }
                        Err(fault) => {
                            let failure = self.head.failure(fault, self.wire.as_ref());
                            return Err(quoting(failure, data.as_bytes(), expected));
                        }
                    }
                    if fold.is_done() {
                        return Ok(Progress::Enough);
                    }
                }
                Ok(Progress::More)
            }
        }
    }

    /// Whether the outcome is certain before the end of the body: the model finished, or the server returned an error.
    pub fn is_settled(&self) -> bool {
        match &self.body {
            Body::Error(_) => true,
            Body::Whole(_) => false,
            Body::Events(_, fold) => fold.is_finished(),
        }
    }

    /// Whether the reply arrives in fragments.
    pub fn is_streamed(&self) -> bool {
        matches!(self.body, Body::Events(..))
    }

    /// Whether the reply has any content or call yet.
    pub fn has_begun(&self) -> bool {
        match &self.body {
            Body::Error(_) => false,
            Body::Whole(body) => !body.is_empty(),
            Body::Events(_, fold) => fold.has_begun(),
        }
    }

    /// The usage, as far as it is known.
    pub fn usage(&self) -> Usage {
        match &self.body {
            Body::Error(_) | Body::Whole(_) => Usage::default(),
            Body::Events(_, fold) => fold.usage(),
        }
    }

    /// The reply or the failure, after the last bytes. `known` holds the call ids of the conversation.
    pub fn end(self, known: &CallIds) -> Result<Reply, ModelFailure> {
        let Self { head, body, wire, .. } = self;
        match body {
            Body::Error(body) => {
                let said = ErrorBody::of_body(&body);
                let failure = errors::failure(&head.server, Some(head.status), said, wire.as_ref());
                Err(head.hints.apply(failure).into())
            }
            Body::Whole(body) => {
                let mut fold = wire.fold();
                let arrived = read_whole(fold.as_mut(), &body);
                let expected = || format!("a reply of the API `{}`, as JSON", wire.name());
                head.conclude(fold, arrived, known, wire.as_ref())
                    .map_err(|failed| ModelFailure { failure: quoting(failed.failure, &body, expected), ..failed })
            }
            Body::Events(_, fold) => {
                let arrived = if fold.is_finished() { Ok(()) } else { Err(Fault::Truncated) };
                head.conclude(fold, arrived, known, wire.as_ref())
            }
        }
    }
}

/// The failure with the text that could not be read, if that is the reason.
fn quoting(failure: Failure, raw: &[u8], expected: impl Fn() -> String) -> Failure {
    match failure.code == ErrorCode::ProviderInvalidResponse {
        true => failure.with_reply(raw, expected()),
        false => failure,
    }
}

fn read_whole(fold: &mut dyn Fold, body: &[u8]) -> Result<(), Fault> {
    if body.trim_ascii().is_empty() {
        return Err(Fault::Unreadable("the answer is empty".into()));
    }
    fold.whole(body).map_err(|fault| match (&fault, ErrorBody::of_body(body)) {
        // Errors with status 200 come in many forms.
        (Fault::NoMessage(_) | Fault::Unreadable(_), Some(error)) => Fault::Provider(Box::new(error)),
        _ => fault,
    })
}

impl Head {
    fn conclude(
        &self,
        fold: Box<dyn Fold>,
        arrived: Result<(), Fault>,
        known: &CallIds,
        wire: &dyn ProviderProtocol,
    ) -> Result<Reply, ModelFailure> {
        let usage = fold.usage();
        let reply = arrived.and_then(|()| fold.into_reply(known));
        let reply = reply.map_err(|fault| ModelFailure { failure: self.failure(fault, wire), usage })?;
        // State nested too deep could be journaled but not read back.
        let is_readable = |state: &ProviderState| !state.items.iter().any(|item| is_deeper_than(item, MAX_DEPTH));
        let provider_state = reply.provider_state.filter(is_readable);
        Ok(Reply { provider_state, ..reply })
    }
}

impl Head {
    fn failure(&self, fault: Fault, wire: &dyn ProviderProtocol) -> Failure {
        match fault {
            Fault::Provider(error) => self.hints.apply(errors::failure(&self.server, None, Some(*error), wire)),
            Fault::Unreadable(_) if self.is_page => self.invalid("it is a web page. Check base_url"),
            Fault::Unreadable(_)
            | Fault::UnknownEvent(_)
            | Fault::Truncated
            | Fault::NoStopReason(_)
            | Fault::MissingCall(_)
            | Fault::NoMessage(_) => self.invalid(&fault.to_string()),
        }
    }

    /// Fails without retry: the same request would return as much again.
    fn too_large(&self, why: &str) -> Failure {
        self.invalid(why).retryable(false)
    }

    fn invalid(&self, why: &str) -> Failure {
        let server = &self.server;
        Failure::new(ErrorCode::ProviderInvalidResponse, format!("{server} gave no readable answer: {why}"))
    }
}
