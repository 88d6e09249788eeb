//! An HTTP answer as it arrives, without a network: status and headers first, then bytes in whatever pieces, then the
//! reply or the failure. Decides by status and content type what the bytes are, and bounds how many there may be.

use jiff::Timestamp;

use super::CallIds;
use super::errors::{self, ErrorBody};
use super::fold::{self, Fold, FoldFault};
use super::retry_hints::RetryHints;
use super::sse::{SseDecoder, SseFault};
use crate::core::chat::Reply;
use crate::core::error::{ErrorCode, Failure};
use crate::ports::Delta;

/// An answer may have this many bytes.
const MAX_BODY_BYTES: usize = 32 << 20;
/// Of an error body this much is read.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// What is known before the body.
#[derive(Clone, Debug)]
pub struct Head {
    server: String,
    status: u16,
    form: Form,
    hints: RetryHints,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Error,
    Whole,
    Events,
}

/// Whether more bytes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// They are.
    More,
    /// What came is enough.
    Enough,
}

/// An answer as far as it has arrived.
#[derive(Debug)]
pub struct Answer {
    head: Head,
    body: Body,
    seen: usize,
}

#[derive(Debug)]
enum Body {
    Error(Vec<u8>),
    Whole(Vec<u8>),
    Events(Box<(SseDecoder, Fold)>),
}

impl Head {
    /// The head of an answer of `server` (its name, for people). `streaming` is what was asked for; what came is told
    /// by the content type, and only where that says nothing by what was asked for. `now` dates a `retry-after`.
    pub fn new<'a>(
        server: &str,
        status: u16,
        header: impl Fn(&str) -> Option<&'a str>,
        streaming: bool,
        now: Timestamp,
    ) -> Self {
        let content_type = header("content-type").unwrap_or_default().to_ascii_lowercase();
        let form = match status {
            200..300 if content_type.contains("event-stream") => Form::Events,
            200..300 if content_type.contains("json") || content_type.contains("html") || !streaming => Form::Whole,
            200..300 => Form::Events,
            _ => Form::Error,
        };
        Self { server: server.to_owned(), status, form, hints: RetryHints::read(header, now) }
    }
}

impl Answer {
    /// An answer of which the head is known.
    pub fn new(head: Head) -> Self {
        let body = match head.form {
            Form::Error => Body::Error(Vec::new()),
            Form::Whole => Body::Whole(Vec::new()),
            Form::Events => Body::Events(Box::default()),
        };
        Self { head, body, seen: 0 }
    }

    /// Takes the next bytes; what they say of the reply goes to `deltas`, if the answer is streamed.
    pub fn push(&mut self, bytes: &[u8], deltas: &mut dyn FnMut(Delta)) -> Result<Progress, Failure> {
        self.seen = self.seen.saturating_add(bytes.len());
        if self.seen > MAX_BODY_BYTES {
            let limit = MAX_BODY_BYTES >> 20;
            return Err(self.head.too_large(&format!("the answer is larger than {limit} MiB")));
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
            Body::Events(stream) => {
                let (decoder, fold) = stream.as_mut();
                let pushed = decoder.push(bytes);
                // Events before a fault count, wherever the network cut.
                while let Some(data) = decoder.next_event() {
                    fold.event(&data, deltas).map_err(|fault| self.head.failure(fault))?;
                    if fold.is_done() {
                        return Ok(Progress::Enough);
                    }
                }
                match pushed {
                    Ok(()) => Ok(Progress::More),
                    Err(fault @ SseFault::NotUtf8) => Err(self.head.invalid(&fault.to_string())),
                    Err(fault @ SseFault::TooLarge) => Err(self.head.too_large(&fault.to_string())),
                }
            }
        }
    }

    /// Whether the outcome is certain, although more might come: the model finished, or the server answered an error.
    pub fn is_settled(&self) -> bool {
        match &self.body {
            Body::Error(_) => true,
            Body::Whole(_) => false,
            Body::Events(stream) => stream.1.is_finished(),
        }
    }

    /// Whether the reply arrives in fragments.
    pub fn is_streamed(&self) -> bool {
        matches!(self.body, Body::Events(_))
    }

    /// Whether the model has said or asked for anything yet.
    pub fn has_begun(&self) -> bool {
        match &self.body {
            Body::Error(_) => false,
            Body::Whole(body) => !body.is_empty(),
            Body::Events(stream) => stream.1.has_begun(),
        }
    }

    /// The reply or the failure, now that no more bytes come. `known` are the ids that the conversation has already.
    pub fn end(self, known: &CallIds) -> Result<Reply, Failure> {
        let Self { head, body, .. } = self;
        match body {
            Body::Error(body) => {
                let said = ErrorBody::of_body(&body);
                Err(head.hints.apply(errors::failure(&head.server, Some(head.status), said.as_ref())))
            }
            Body::Whole(body) => whole(&body, known).map_err(|fault| head.failure(fault)),
            Body::Events(stream) => stream.1.into_reply(known).map_err(|fault| head.failure(fault)),
        }
    }
}

fn whole(body: &[u8], known: &CallIds) -> Result<Reply, FoldFault> {
    if body.trim_ascii().is_empty() {
        return Err(FoldFault::Unreadable("the answer is empty".into()));
    }
    let read = || {
        let chunk = fold::read(body).map_err(FoldFault::Unreadable)?;
        let mut fold = Fold::default();
        fold.chunk(chunk, &mut |_| {})?;
        fold.into_whole_reply(known)
    };
    read().map_err(|fault| match (&fault, ErrorBody::of_body(body)) {
        // Errors with status 200 come in every shape.
        (FoldFault::NoMessage | FoldFault::Unreadable(_), Some(error)) => FoldFault::Provider(Box::new(error)),
        _ => fault,
    })
}

impl Head {
    fn failure(&self, fault: FoldFault) -> Failure {
        match fault {
            FoldFault::Provider(error) => self.hints.apply(errors::failure(&self.server, None, Some(&error))),
            FoldFault::Unreadable(_) | FoldFault::Truncated | FoldFault::NoMessage | FoldFault::TooManyCalls(_) => {
                self.invalid(&fault.to_string())
            }
        }
    }

    /// Asking again would only bring as much again.
    fn too_large(&self, why: &str) -> Failure {
        self.invalid(why).retryable(false)
    }

    fn invalid(&self, why: &str) -> Failure {
        let server = &self.server;
        Failure::new(ErrorCode::ProviderInvalidResponse, format!("{server} gave no readable chat completion: {why}"))
    }
}
