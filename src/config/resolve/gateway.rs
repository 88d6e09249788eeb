//! The HTTP gateway: where it listens, and whom it lets in.

use std::net::SocketAddr;

use crate::config::error::Fault;
use crate::config::placed::Placed;
use crate::config::scope::Scope;
use crate::config::settings::GatewaySettings;
use crate::config::written::Gateway;

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8484);

pub(super) fn resolve(written: Option<&Placed<Gateway>>, scope: &mut Scope<'_>) -> GatewaySettings {
    let unwritten = Gateway::default();
    let written = written.map_or(&unwritten, Placed::value);
    let listen = written.listen.as_ref().map_or(LISTEN, |text| {
        scope.text(text).parse().unwrap_or_else(|_| {
            let fault = Fault::new("this is no address to listen at");
            scope.fault(
                fault.with_remedy("write an IP address and a port, such as `127.0.0.1:8484` or `[::]:8484`"),
                text.place(),
            );
            LISTEN
        })
    });
    GatewaySettings {
        listen,
        public_url: written.public_url.as_ref().map(|url| scope.url(url).trim_end_matches('/').to_owned()),
    }
}
