//! Prometheus endpoint: `GET /metrics` on a port of its own.

use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::task::JoinSet;

use super::pipeline::{Metrics, MetricsError, PROMETHEUS_TEXT};
use super::settings::Listen;

/// Serves metrics over HTTP until it is dropped.
#[derive(Debug)]
pub struct MetricsEndpoint {
    addresses: Vec<std::net::SocketAddr>,
    _serving: JoinSet<io::Result<()>>,
}

impl MetricsEndpoint {
    /// Listens on every address of that host: `localhost` has two, and a reader may try either. Call it within an async
    /// runtime.
    pub fn open(listen: &Listen, metrics: &Arc<Metrics>) -> Result<Self, MetricsError> {
        let refused = |error: io::Error| MetricsError::Listen {
            address: format!("{}:{}", listen.host, listen.port),
            reason: error.to_string(),
        };
        let (mut addresses, mut serving) = (Vec::new(), JoinSet::new());
        for listener in listeners(listen).map_err(refused)? {
            addresses.push(listener.local_addr().map_err(refused)?);
            let listener = tokio::net::TcpListener::from_std(listener).map_err(refused)?;
            serving.spawn(axum::serve(listener, router(metrics.clone())).into_future());
        }
        Ok(Self { addresses, _serving: serving })
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> &[std::net::SocketAddr] {
        &self.addresses
    }
}

fn router(metrics: Arc<Metrics>) -> Router {
    let read = move || async move { ([(CONTENT_TYPE, PROMETHEUS_TEXT)], metrics.prometheus()) };
    Router::new().route("/metrics", get(read))
}

/// Binds every address of the host. An address family that the machine lacks is skipped; a port in use is an error.
fn listeners(listen: &Listen) -> io::Result<Vec<TcpListener>> {
    let mut bound = Vec::new();
    let mut missing = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (listen.host.as_str(), listen.port).to_socket_addrs()? {
        match TcpListener::bind(address) {
            Ok(listener) => {
                listener.set_nonblocking(true)?;
                bound.push(listener);
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            Err(error) => missing = error,
        }
    }
    if bound.is_empty() { Err(missing) } else { Ok(bound) }
}
