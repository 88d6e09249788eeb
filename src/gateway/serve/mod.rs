//! Connections: how a router is served to people who may be slow, gone, or many.
//!
//! A connection may cost little and nothing for ever: its first request has to come soon, an idle one is closed, and one
//! whose client takes nothing off is given up. Beyond so many connections new ones wait in the system's own queue. What a
//! request is about is no business of this module.

mod account;
mod occupancy;
mod panic;
mod steady;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::Service as _;

pub(super) use account::{Accounts, account};
use occupancy::Occupancy;
pub(super) use panic::caught;
use steady::Steady;

use super::held::holding;

/// How long nothing is accepted after the system refused to hand a connection over: it has no files left, most likely.
const BREATH: Duration = Duration::from_millis(500);

/// How HTTP/2 begins; a method of HTTP/1 that begins so is not given out (RFC 9113, section 3.4).
const PREFACE: &[u8; 4] = b"PRI ";

/// What a connection may cost.
#[derive(Clone, Copy, Debug)]
pub struct ServeSettings {
    /// How long its first request may take to begin.
    pub first_request: Duration,
    /// How long it may be kept open between requests; the head of the next one included.
    pub idle: Duration,
    /// How long a write may make no progress.
    pub stalled_write: Duration,
    /// How many there may be.
    pub connections: usize,
    /// How long those that are open have when the server closes.
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

/// Serves until `closing`, then lets requests under way end, for as long as the settings say.
pub async fn serve(listener: TcpListener, router: Router, settings: ServeSettings, closing: CancellationToken) {
    let room = Arc::new(Semaphore::new(settings.connections.clamp(1, Semaphore::MAX_PERMITS)));
    let mut connections = JoinSet::new();
    let accepted = async {
        loop {
            // A semaphore that nobody closes always has a permit in the end.
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
    // Whoever comes now is refused by the system at once, and asks somebody else.
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if timeout(settings.closing, ended).await.is_err() {
        tracing::warn!("connections were still open when the server closed; they are cut");
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Without it every event of a stream waits for the one before to be acknowledged.
                let _ = stream.set_nodelay(true);
                return (stream, address);
            }
            Err(error) if is_of_the_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted; is the limit of open files high enough?");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

/// Whether only the connection that was to be accepted is at fault.
fn is_of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    [ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind())
}

/// Whether the first bytes can only be of HTTP/1. Where that is open, the builder tells the versions apart; but it takes the first
/// bytes off the socket for it, and hyper doubles its read buffer when it is given a request in two pieces.
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
    let occupancy = Occupancy::default();
    let counted = occupancy.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        // Whoever shows nothing that holds is counted by it.
        request.extensions_mut().insert(ConnectInfo(address));
        let (mut router, occupied) = (router.clone(), counted.one_more());
        async move { router.call(request).await.map(|response| holding(response, occupied)) }
    });
    let mut unused = pin!(occupancy.unused(settings.first_request));
    let is_http1 = tokio::select! {
        is_http1 = is_http1(&stream) => is_http1,
        () = unused.as_mut() => return,
        () = closing.cancelled() => return,
    };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    if is_http1 {
        builder = builder.http1_only();
    }
    builder.http1().timer(TokioTimer::new()).header_read_timeout(settings.idle);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(settings.idle)
        .keep_alive_timeout(settings.first_request)
        .max_concurrent_streams(250);
    let stream = TokioIo::new(Steady::new(stream, settings.stalled_write));
    let mut connection = pin!(builder.serve_connection(stream, service));
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = unused => return,
        () = occupancy.idle(settings.idle) => None,
        () = closing.cancelled() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, "a connection ended before its time");
    }
}
