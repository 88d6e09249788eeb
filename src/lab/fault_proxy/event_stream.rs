//! Event stream of an answer: each event of the server passes as it is, or as the fault changes it.

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::stream;
use tokio::sync::mpsc;
use toolgate_core::sse::{Decoder, Event};

use super::MAX_MESSAGE;
use super::exchange::{BEFORE_BREAK, Exchange};
use super::interceptor::Outgoing;
use crate::check::wire::http::in_words;
use crate::check::wire::log::Direction;

/// A stream to a client.
pub(super) struct EventStream {
    exchange: Exchange,
    client: mpsc::Sender<std::io::Result<Bytes>>,
}

/// Whether the stream continues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Open,
    /// The client left, or the fault ended the connection.
    Ended,
}

impl EventStream {
    /// A response with the events of the server's response.
    pub(super) fn respond(exchange: Exchange, response: reqwest::Response) -> Response {
        let (stream, body) = Self::open(exchange);
        tokio::spawn(stream.pump(response));
        body
    }

    /// A response with these messages, in place of one body.
    pub(super) fn respond_with(exchange: Exchange, messages: Vec<Outgoing>) -> Response {
        let (mut stream, body) = Self::open(exchange);
        tokio::spawn(async move {
            for outgoing in messages {
                if stream.send_or_leave("", outgoing).await == Flow::Ended {
                    return;
                }
            }
            stream.exchange.end();
        });
        body
    }

    fn open(exchange: Exchange) -> (Self, Response) {
        let (client, pieces) = mpsc::channel(16);
        let pieces = stream::unfold(pieces, |mut pieces| async move { Some((pieces.recv().await?, pieces)) });
        let body = ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(pieces)).into_response();
        (Self { exchange, client }, body)
    }

    async fn pump(mut self, mut response: reqwest::Response) {
        let mut decoder = Decoder::up_to(MAX_MESSAGE);
        let client = self.client.clone();
        loop {
            let chunk = tokio::select! {
                chunk = response.chunk() => chunk,
                () = client.closed() => return,
            };
            let is_over = matches!(chunk, Ok(None));
            let events = match chunk {
                Ok(Some(chunk)) => decoder.push(&chunk),
                Ok(None) => decoder.finish().map(Ok).into_iter().collect(),
                Err(error) => return self.fail(&in_words(&error)).await,
            };
            for event in events {
                let flow = match event {
                    Ok(event) => self.pass(event).await,
                    Err(error) => return self.fail(&error.to_string()).await,
                };
                if flow == Flow::Ended {
                    return;
                }
            }
            if is_over {
                return self.exchange.end();
            }
        }
    }

    /// Ends a stream that the server did not end.
    async fn fail(&mut self, reason: &str) {
        self.exchange.server_failed(reason);
        self.break_off().await;
    }

    async fn pass(&mut self, event: Event) -> Flow {
        let mut head = String::new();
        for (name, value) in [("event", event.kind), ("id", event.id), ("retry", event.retry.map(|ms| ms.to_string()))]
        {
            if let Some(value) = value {
                head += &format!("{name}: {value}\n");
            }
        }
        let data = event.data.unwrap_or_default();
        if data.trim_ascii().is_empty() {
            let text = if head.is_empty() { ":\n\n".to_owned() } else { format!("{head}data:\n\n") };
            return self.write(text.into()).await;
        }
        for outgoing in self.exchange.take(&data) {
            if self.send_or_leave(&std::mem::take(&mut head), outgoing).await == Flow::Ended {
                return Flow::Ended;
            }
        }
        self.exchange.sent();
        Flow::Open
    }

    /// Sends a message, unless the client leaves first.
    async fn send_or_leave(&mut self, head: &str, outgoing: Outgoing) -> Flow {
        let client = self.client.clone();
        tokio::select! {
            flow = self.send(head, outgoing) => flow,
            () = client.closed() => Flow::Ended,
        }
    }

    async fn send(&mut self, head: &str, outgoing: Outgoing) -> Flow {
        match outgoing {
            Outgoing::Send(bytes, delay) => {
                delay.wait().await;
                self.exchange.log("client", Direction::Sent, &bytes);
                self.write(encoded(head, &bytes, b"\n\n")).await
            }
            Outgoing::Unterminated(bytes) => {
                self.exchange.log("client", Direction::Sent, &bytes);
                self.write(encoded(head, &bytes, b"")).await
            }
            Outgoing::Cut(half) => {
                self.exchange.log("client", Direction::Sent, &half);
                self.write(encoded(head, &half, b"")).await;
                self.break_off().await
            }
            Outgoing::Break => self.break_off().await,
            Outgoing::Hold | Outgoing::Swap => std::future::pending().await,
        }
    }

    async fn break_off(&mut self) -> Flow {
        self.exchange.end();
        tokio::time::sleep(BEFORE_BREAK).await;
        let _ = self.client.send(Err(std::io::Error::other("the proxy breaks the connection"))).await;
        Flow::Ended
    }

    async fn write(&self, bytes: Vec<u8>) -> Flow {
        match self.client.send(Ok(bytes.into())).await {
            Ok(()) => Flow::Open,
            Err(_) => Flow::Ended,
        }
    }
}

/// An event with this data. Each line of the data is a field.
fn encoded(head: &str, data: &[u8], end: &[u8]) -> Vec<u8> {
    let mut event = head.as_bytes().to_vec();
    for (at, line) in data.split(|byte| *byte == b'\n').enumerate() {
        event.extend_from_slice(if at == 0 { b"data: " } else { b"\ndata: " });
        event.extend_from_slice(line);
    }
    event.extend_from_slice(end);
    event
}
