//! HTTP server: serves a router to clients that may be slow, gone, or many.
//!
//! A connection must not hold resources for ever: its first request has to arrive soon, an idle connection is closed,
//! and one whose client does not read is aborted. Beyond the connection limit, new connections wait in the operating
//! system's queue. This module does not depend on the content of requests.

mod event_stream;
mod idle_tracker;
mod write_timeout;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use axum::{BoxError, Router};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use event_stream::Handover;
use idle_tracker::IdleTracker;
use write_timeout::{Flushed, WriteTimeout};

use super::guarded_body::holding;

/// The pause after the operating system failed to accept a connection, most likely because no file descriptor is free.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The HTTP/2 preface; no HTTP/1 method begins like it (RFC 9113, section 3.4).
const PREFACE: &[u8; 4] = b"PRI ";

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct ServeSettings {
    /// How long a connection may take to begin its first request.
    pub first_request: Duration,
    /// How long a connection may be idle between requests, including the head of the next one.
    pub idle: Duration,
    /// How long a write may make no progress.
    pub stalled_write: Duration,
    /// The limit of open connections.
    pub connections: usize,
    /// How long open connections have to finish when the server closes.
    pub closing: Duration,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            first_request: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            stalled_write: Duration::from_secs(60),
            connections: 10_000,
            closing: Duration::from_secs(5),
        }
    }
}

/// Serves until `closing`, then lets requests in progress finish, within the time that the settings allow.
pub async fn serve(listener: TcpListener, router: Router, settings: ServeSettings, closing: CancellationToken) {
    let room = Arc::new(Semaphore::new(settings.connections.clamp(1, Semaphore::MAX_PERMITS)));
    let mut connections = JoinSet::new();
    let accepted = async {
        loop {
            // A semaphore that is never closed always has a permit in the end.
            let Ok(place) = room.clone().acquire_owned().await else { return };
            let (stream, address) = accept(&listener).await;
            let (router, closing) = (router.clone(), closing.clone());
            connections.spawn(async move {
                converse(stream, address, router, settings, closing).await;
                drop(place);
            });
            while connections.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = accepted => {}
        () = closing.cancelled() => {}
    }
    // The operating system now refuses new clients at once, which can then try another server.
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if timeout(settings.closing, ended).await.is_err() {
        tracing::warn!("open connections aborted at shutdown");
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Without it every event of a stream waits for the acknowledgement of the one before.
                let _ = stream.set_nodelay(true);
                return (stream, address);
            }
            Err(error) if is_of_the_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "failed to accept connection; is the limit of open files high enough?");
                tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
            }
        }
    }
}

/// Whether the error concerns only the one connection.
fn is_of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    [ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind())
}

/// Whether the first bytes can only be HTTP/1. If that is undecided, the builder detects the version; but for that it
/// takes the first bytes off the socket, and hyper doubles its read buffer when a request arrives in two pieces.
async fn is_http1(stream: &TcpStream) -> bool {
    let mut first = [0; PREFACE.len()];
    matches!(stream.peek(&mut first).await, Ok(read) if read == first.len()) && first != *PREFACE
}

async fn converse(
    stream: TcpStream,
    address: SocketAddr,
    router: Router,
    settings: ServeSettings,
    closing: CancellationToken,
) {
    let (occupancy, handover) = (IdleTracker::default(), Handover::default());
    let mut unused = pin!(occupancy.unused(settings.first_request));
    let is_http1 = tokio::select! {
        is_http1 = is_http1(&stream) => is_http1,
        () = unused.as_mut() => return,
        () = closing.cancelled() => return,
    };
    let (counted, diverted) = (occupancy.clone(), handover.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        // Failed authentications are counted by address.
        request.extensions_mut().insert(ConnectInfo(address));
        let (mut router, occupied) = (router.clone(), counted.one_more());
        let handover = (is_http1 && Handover::is_possible(&request)).then(|| diverted.clone());
        async move {
            let response = holding(router.call(request).await?, occupied);
            Ok::<_, Infallible>(match handover {
                Some(handover) => handover.hand_over_stream(response).await,
                None => response,
            })
        }
    });
    let idle = occupancy.idle(settings.idle);
    let stop = async {
        tokio::select! {
            () = unused => Stop::Abort,
            () = idle => Stop::Finish,
            () = closing.cancelled() => Stop::Finish,
        }
    };
    let socket = WriteTimeout::new(stream, settings.stalled_write);
    let flushed = socket.flushed();
    let ended = if is_http1 {
        // Boxed, so that its memory is free while its event stream is written.
        let mut connection = Box::new(http1(&settings).serve_connection(TokioIo::new(socket), service));
        let taken = driven(&mut connection, &handover, &flushed, stop, |connection| {
            Pin::new(&mut **connection).graceful_shutdown();
        });
        match taken.await {
            Ok(Some(response)) => {
                event_stream::send(connection.into_parts().io.into_inner(), response).await.map_err(Into::into)
            }
            ended => ended.map(drop).map_err(BoxError::from),
        }
    } else {
        let builder = any_version(&settings);
        let mut connection = Box::pin(builder.serve_connection(TokioIo::new(socket), service));
        let ended =
            driven(&mut connection, &handover, &flushed, stop, |connection| connection.as_mut().graceful_shutdown());
        ended.await.map(drop)
    };
    if let Err(error) = ended {
        tracing::debug!(error, "connection failed");
    }
}

fn http1(settings: &ServeSettings) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(settings.idle);
    builder
}

/// The version of the connection is detected.
fn any_version(settings: &ServeSettings) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(settings.idle);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(settings.idle)
        .keep_alive_timeout(settings.first_request)
        .max_concurrent_streams(250);
    builder
}

/// How a connection stops.
enum Stop {
    /// At once: it never had a request.
    Abort,
    /// After the requests in progress.
    Finish,
}

/// Drives a connection of hyper until it has ended or stopped, or an event stream was handed over.
async fn driven<C: Future<Output = Result<(), E>> + Unpin, E>(
    connection: &mut C,
    handover: &Handover,
    flushed: &Flushed,
    stop: impl Future<Output = Stop>,
    finish: impl FnOnce(&mut C),
) -> Result<Option<Response>, E> {
    let stop = tokio::select! {
        taken = handover.taken(connection, flushed) => return taken,
        stop = stop => stop,
    };
    match stop {
        Stop::Abort => Ok(None),
        Stop::Finish => {
            finish(connection);
            handover.taken(connection, flushed).await
        }
    }
}
