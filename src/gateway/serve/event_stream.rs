//! Event streams over HTTP/1.1, written without hyper: an open stream needs neither of hyper's two buffers of 8 KiB, which
//! cannot be made smaller (decision 0022).

use std::future::{pending, poll_fn};
use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use axum::extract::Request;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use axum::http::response::Parts;
use axum::http::{Method, Version};
use axum::response::Response;
use futures::StreamExt as _;
use hyper::body::Buf;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};

use super::write_timeout::Flushed;
use crate::negotiation::is_stream;

/// How much a client may send while it receives a stream, which is the last response of its connection.
const IGNORED: u64 = 64 * 1024;

/// A slot for the event stream that ends hyper's part in a connection. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Handover(Arc<Mutex<Option<Response>>>);

impl Handover {
    /// Whether the response to a request can be handed over: HTTP/1.0 has no chunks, and a HEAD request gets no body.
    pub(super) fn is_possible<B>(request: &Request<B>) -> bool {
        request.version() == Version::HTTP_11 && request.method() != Method::HEAD
    }

    /// The response, or if it is an event stream, a future that never completes: the connection takes the response.
    pub(super) async fn hand_over_stream(&self, response: Response) -> Response {
        if !response.status().is_success() || !is_stream(response.headers()) {
            return response;
        }
        *self.slot() = Some(response);
        pending().await
    }

    /// Drives a connection of hyper until it ends or an event stream was handed over. In the second case, hyper has sent
    /// all that it buffered, such as `100 Continue`, and the connection can be dropped.
    pub(super) async fn taken<E>(
        &self,
        connection: &mut (impl Future<Output = Result<(), E>> + Unpin),
        flushed: &Flushed,
    ) -> Result<Option<Response>, E> {
        poll_fn(|cx| {
            if let Poll::Ready(ended) = Pin::new(&mut *connection).poll(cx) {
                return Poll::Ready(ended.map(|()| None));
            }
            match flushed.get().then(|| self.slot().take()).flatten() {
                Some(response) => Poll::Ready(Ok(Some(response))),
                None => Poll::Pending,
            }
        })
        .await
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Response>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a response and closes the connection. Drops the body when it is sent, or when the client disconnects.
pub(super) async fn send(socket: impl AsyncRead + AsyncWrite, response: Response) -> io::Result<()> {
    let (reads, writes) = split(socket);
    tokio::select! {
        sent = write(writes, response) => sent,
        ended = disconnected(reads) => ended,
    }
}

async fn write(mut socket: impl AsyncWrite + Unpin, response: Response) -> io::Result<()> {
    let (head, body) = response.into_parts();
    let mut body = body.into_data_stream();
    socket.write_all(&encoded(head)?).await?;
    socket.flush().await?;
    while let Some(data) = body.next().await {
        let data = data.map_err(io::Error::other)?;
        // A chunk of length zero is the last one.
        if data.is_empty() {
            continue;
        }
        let size = format!("{:x}\r\n", data.len());
        socket.write_all_buf(&mut Buf::chain(size.as_bytes(), data).chain(&b"\r\n"[..])).await?;
        socket.flush().await?;
    }
    socket.write_all(b"0\r\n\r\n").await?;
    socket.shutdown().await
}

fn encoded(head: Parts) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(512);
    write!(text, "HTTP/1.1 {}\r\n", head.status)?;
    for (name, value) in
        head.headers.iter().filter(|(name, _)| ![CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING].contains(name))
    {
        text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    if !head.headers.contains_key(DATE) {
        let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&Timestamp::now()).map_err(io::Error::other)?;
        write!(text, "date: {date}\r\n")?;
    }
    text.extend(b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n");
    Ok(text)
}

/// Completes when the client disconnects. Ignores what it sends, such as pipelined requests.
async fn disconnected(mut socket: impl AsyncRead + Unpin) -> io::Result<()> {
    let (mut piece, mut ignored) = ([0; 64], 0);
    while ignored < IGNORED {
        match socket.read(&mut piece).await? {
            0 => return Ok(()),
            read => ignored += read as u64,
        }
    }
    Err(io::Error::other("the client sends more requests instead of reading its stream"))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use axum::body::{Body, Bytes};
    use axum::http::StatusCode;
    use futures::stream;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::duplex;
    use tokio::sync::mpsc;

    use super::super::write_timeout::WriteTimeout;
    use super::*;

    const HEAD: &str = "HTTP/1.1 201 Created\r\ncontent-type: text/event-stream\r\ndate: today\r\nconnection: close\r\n\
                        transfer-encoding: chunked\r\n\r\n";

    fn response(body: Body) -> Response {
        let response = Response::builder().status(StatusCode::CREATED).header("content-type", "text/event-stream");
        response.header("date", "today").header("connection", "keep-alive").body(body).unwrap()
    }

    /// A response whose body sends what the channel receives.
    fn open() -> (mpsc::Sender<Bytes>, Response) {
        let (sender, receiver) = mpsc::channel(1);
        let pieces = stream::unfold(receiver, async |mut receiver| {
            let piece = receiver.recv().await?;
            Some((Ok::<_, Infallible>(piece), receiver))
        });
        (sender, response(Body::from_stream(pieces)))
    }

    #[tokio::test]
    async fn head_chunks_and_end_are_exact() {
        let (ours, mut theirs) = duplex(4096);
        let (sender, response) = open();
        let sending = tokio::spawn(send(ours, response));
        let mut text = String::new();
        for piece in ["data: one\n\n", "", "data: a longer one\n\n"] {
            sender.send(Bytes::from(piece)).await.unwrap();
        }
        drop(sender);

        theirs.read_to_string(&mut text).await.unwrap();

        sending.await.unwrap().unwrap();
        let chunks = "b\r\ndata: one\n\n\r\n14\r\ndata: a longer one\n\n\r\n0\r\n\r\n";
        assert_eq!(text, format!("{HEAD}{chunks}"));
    }

    #[tokio::test]
    async fn a_date_is_added_in_the_format_of_http() {
        let (mut head, _) = response(Body::empty()).into_parts();
        head.headers.remove(DATE);
        let text = String::from_utf8(encoded(head).unwrap()).unwrap();
        let date = text.lines().find_map(|line| line.strip_prefix("date: ")).unwrap();
        assert!(date.len() == "Sun, 06 Nov 1994 08:49:37 GMT".len() && date.ends_with(" GMT"), "{date}");
    }

    #[tokio::test]
    async fn a_client_that_disconnects_ends_its_stream() {
        let (ours, mut theirs) = duplex(4096);
        let (sender, response) = open();
        let sending = tokio::spawn(send(ours, response));
        theirs.read_exact(&mut vec![0; HEAD.len()]).await.unwrap();
        theirs.write_all(b"GET /next HTTP/1.1\r\n\r\n").await.unwrap();
        sender.send(Bytes::from_static(b"still open")).await.unwrap();
        theirs.read_exact(&mut [0; 15]).await.unwrap();

        drop(theirs);

        sender.closed().await;
        sending.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_client_that_sends_without_end_is_disconnected() {
        let (ours, mut theirs) = duplex(4096);
        let (sender, response) = open();
        let sending = tokio::spawn(send(ours, response));
        let _ = theirs.write_all(&vec![b'x'; 2 * 64 * 1024]).await;
        sender.closed().await;
        sending.await.unwrap().unwrap_err();
    }

    #[tokio::test]
    async fn a_body_that_fails_has_no_last_chunk() {
        let (ours, mut theirs) = duplex(4096);
        let failing = stream::iter([Ok(Bytes::from_static(b"one")), Err(io::Error::other("lost"))]);
        send(ours, response(Body::from_stream(failing))).await.unwrap_err();
        let mut text = String::new();
        theirs.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, format!("{HEAD}3\r\none\r\n"));
    }

    #[tokio::test]
    async fn all_that_hyper_buffered_is_sent_before_the_stream() {
        // After the first response there is no room for `100 Continue`, which hyper then buffers.
        const ROOM: usize = 512;
        let first =
            "z".repeat(ROOM - "HTTP/1.1 200 OKcontent-length: 000date: Sun, 06 Nov 1994 08:49:37 GMT".len() - 18);
        let (ours, mut theirs) = duplex(ROOM);
        let ours = WriteTimeout::new(ours, Duration::from_secs(60));
        let (flushed, handover) = (ours.flushed(), Handover::default());
        let (diverted, body) = (handover.clone(), first.clone());
        let service = service_fn(move |request: Request<hyper::body::Incoming>| {
            let (handover, body) = (diverted.clone(), body.clone());
            async move {
                if request.uri().path() == "/first" {
                    return Ok::<_, Infallible>(Response::new(Body::from(body)));
                }
                axum::body::to_bytes(Body::new(request.into_body()), 5).await.unwrap();
                Ok(handover.hand_over_stream(response(Body::from("data: streamed\n\n"))).await)
            }
        });
        let serving = tokio::spawn(async move {
            let mut connection = http1::Builder::new().serve_connection(TokioIo::new(ours), service);
            let response = handover.taken(&mut connection, &flushed).await.unwrap().unwrap();
            send(connection.into_parts().io.into_inner(), response).await
        });
        let requests = "GET /first HTTP/1.1\r\nhost: x\r\n\r\n\
                        POST /stream HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n";
        theirs.write_all(requests.as_bytes()).await.unwrap();
        theirs.write_all(b"hello").await.unwrap();
        // Lets the server answer before the client reads.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }

        let mut text = String::new();
        theirs.read_to_string(&mut text).await.unwrap();

        serving.await.unwrap().unwrap();
        let stream = format!("{HEAD}10\r\ndata: streamed\n\n\r\n0\r\n\r\n");
        assert!(text.ends_with(&format!("{first}HTTP/1.1 100 Continue\r\n\r\n{stream}")), "{text}");
    }
}
