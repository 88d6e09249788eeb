//! Where requests may go. An address that comes from a stranger must not lead into the operator's own network.
//!
//! A URL of the configuration is the operator's word and is dialled as it stands. A URL that comes from elsewhere (a server
//! added at run time, an endpoint in a server's OAuth metadata) is dialled only at the kinds of addresses that are let
//! through. Names are checked where they are resolved, and the connection is made to what was checked, so a name that
//! changes its mind in between gains nothing. Behind a proxy that the environment names it is the proxy that resolves;
//! only addresses in figures are checked then.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::core::address::{Place, is_public, place};

/// Who stands behind the address of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Egress {
    /// The operator, who configured it: it may be anywhere.
    #[default]
    Operator,
    /// Somebody else: it must be on the public internet.
    Public,
}

/// The addresses that requests are let through to.
#[derive(Clone, Debug)]
pub(in crate::mcp) enum Reach {
    /// All.
    Anywhere,
    /// Public ones, and what the operator added to them.
    Public(Exceptions),
}

/// What the operator lets through besides the public internet.
#[derive(Clone, Debug, Default)]
pub(in crate::mcp) struct Exceptions {
    /// Hosts that are dialled wherever they are.
    hosts: Vec<String>,
    private: bool,
    loopback: bool,
}

/// An address that is not let through.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(in crate::mcp) struct Refused(String);

impl Reach {
    /// Where the server itself may be.
    pub(in crate::mcp) fn of_server(egress: Egress) -> Self {
        match egress {
            Egress::Operator => Self::Anywhere,
            Egress::Public => Self::Public(Exceptions::with_proxies()),
        }
    }

    /// Where the metadata of that server may lead. A server that the operator placed on this machine or in a private
    /// network, by address, may have its authorization server there too.
    pub(in crate::mcp) fn from_server(egress: Egress, server: &Url, allow_private: bool) -> Self {
        let mut exceptions = Exceptions::with_proxies();
        if egress == Egress::Operator {
            exceptions.hosts.extend(server.host_str().map(plain));
            let beside = literal(server).map(place);
            let is_localhost = server.host_str().is_some_and(is_localhost);
            exceptions.private = allow_private || beside == Some(Place::Private);
            exceptions.loopback = allow_private || beside == Some(Place::Loopback) || is_localhost;
        }
        Self::Public(exceptions)
    }

    /// Whether private addresses are let through that are no exception by name.
    pub(in crate::mcp) fn admits_private(&self) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Public(exceptions) => exceptions.private,
        }
    }

    /// Refuses an address in figures; a name is checked when it is resolved.
    pub(in crate::mcp) fn check(&self, url: &Url) -> Result<(), Refused> {
        match (literal(url), url.host_str()) {
            (Some(address), Some(host)) => self.admit(&plain(host), &[address]).map(drop),
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Resolves names, and keeps of their addresses those that are let through. `None` where all are.
    pub(in crate::mcp) fn resolver(&self) -> Option<Arc<Guard>> {
        match self {
            Self::Anywhere => None,
            Self::Public(_) => Some(Arc::new(Guard { reach: self.clone(), names: Arc::new(System) })),
        }
    }

    /// The addresses of that host that are let through; at least one.
    fn admit(&self, host: &str, addresses: &[IpAddr]) -> Result<Vec<IpAddr>, Refused> {
        let exceptions = match self {
            Self::Anywhere => return Ok(addresses.to_vec()),
            Self::Public(exceptions) if exceptions.hosts.iter().any(|own| own == host) => return Ok(addresses.to_vec()),
            Self::Public(exceptions) => exceptions,
        };
        let admitted: Vec<_> = addresses.iter().copied().filter(|address| exceptions.admit(*address)).collect();
        match (admitted.is_empty(), addresses.first()) {
            (false, _) | (true, None) => Ok(admitted),
            (true, Some(first)) => Err(Refused(format!(
                "`{host}` is at the address {first}, which is not on the public internet; an address from there is not dialled"
            ))),
        }
    }
}

impl Exceptions {
    /// A proxy is the operator's choice, and resolving it says nothing about where the request goes.
    fn with_proxies() -> Self {
        const VARIABLES: [&str; 6] =
            ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
        let host_of = |proxy: String| {
            let url = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
            Url::parse(&url).ok().and_then(|url| url.host_str().map(plain))
        };
        let proxies = VARIABLES.iter().filter_map(|name| std::env::var(name).ok()).filter_map(host_of);
        Self { hosts: proxies.collect(), ..Self::default() }
    }

    fn admit(&self, address: IpAddr) -> bool {
        match place(address) {
            Place::Public => is_public(address),
            Place::Private => self.private,
            Place::Loopback => self.loopback,
            Place::Forbidden => false,
        }
    }
}

/// A resolver that hands out only addresses that are let through.
pub(in crate::mcp) struct Guard {
    reach: Reach,
    names: Arc<dyn Resolve>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, host) = (self.reach.clone(), plain(name.as_str()));
        let resolving = self.names.resolve(name);
        Box::pin(async move {
            let found: Vec<IpAddr> = resolving.await?.map(|address| address.ip()).collect();
            let admitted = reach.admit(&host, &found)?;
            Ok(Box::new(admitted.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

/// The names as the operating system resolves them.
struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The refusal behind an error of the HTTP client, if it is one.
pub(in crate::mcp) fn refusal<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Refused> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return Some(refused);
        }
        cause = error.source();
    }
    None
}

/// The address of a URL that has one instead of a name.
fn literal(url: &Url) -> Option<IpAddr> {
    plain(url.host_str()?).parse().ok()
}

fn is_localhost(host: &str) -> bool {
    let host = plain(host);
    host == "localhost" || host.ends_with(".localhost")
}

/// A host as it is compared: no brackets, no root dot, small letters.
fn plain(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
