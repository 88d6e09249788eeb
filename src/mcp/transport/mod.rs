//! Tolerant transport layer: bytes of a server in, messages of the SDK out.
//!
//! The SDK drops an answer that it cannot read, and the request waits until its time limit. Servers send such answers:
//! half of a surrogate pair in a truncated text, `NaN`, a batch, indented JSON. So this layer reads the bytes first
//! ([`json`], [`message`]). An unambiguous answer reaches the SDK in conforming form. An ambiguous answer becomes an
//! error of its request ([`requests`]), with the bytes quoted.
//!
//! Both directions are bounded ([`outbox`]): a server that sends requests without reading the replies is disconnected
//! with a reason. Decision 0018 explains the choices.

mod frames;
mod json;
mod json_rpc;
mod lines;
mod misplaced;
mod outbox;
mod progress;
mod quote;
mod requests;
mod salvage;

pub(super) use json::JsonFlaw;
pub(super) use json_rpc::{Incoming, read};
pub(super) use lines::{LineTransport, MAX_TEXT, StreamObservers};
pub(super) use outbox::Disconnection;
pub(super) use quote::{character_at, contains, quoted};
pub(super) use requests::{Disposition, Requests, ResponseFinding, Stream};
