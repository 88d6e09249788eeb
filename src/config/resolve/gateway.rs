//! The HTTP gateway: where it listens, and whom it lets in.

use std::net::SocketAddr;

use crate::config::error::Fault;
use crate::config::placed::{Placed, Text};
use crate::config::scope::Scope;
use crate::config::settings::GatewaySettings;
use crate::config::written::Gateway;

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8484);

const DRAIN_SECONDS: u64 = 30;

pub(super) fn resolve(written: Option<&Placed<Gateway>>, scope: &mut Scope<'_>) -> GatewaySettings {
    let unwritten = Gateway::default();
    let written = written.map_or(&unwritten, Placed::value);
    let listen = address(written.listen.as_ref(), scope).unwrap_or(LISTEN);
    GatewaySettings {
        listen,
        metrics_listen: address(written.metrics_listen.as_ref(), scope),
        drain: scope.seconds(written.drain_s.as_ref(), DRAIN_SECONDS),
        runs: super::runs::resolve(written.runs.as_ref(), scope),
        public_url: written.public_url.as_ref().map(|url| scope.url(url).trim_end_matches('/').to_owned()),
    }
}

/// An address to listen at. A fault if it is none.
fn address(written: Option<&Text>, scope: &mut Scope<'_>) -> Option<SocketAddr> {
    let text = written?;
    let address = scope.text(text).parse().ok();
    if address.is_none() {
        let fault = Fault::new("this is no address to listen at");
        let remedy = "write an IP address and a port, such as `127.0.0.1:8484` or `[::]:8484`";
        scope.fault(fault.with_remedy(remedy), text.place());
    }
    address
}
