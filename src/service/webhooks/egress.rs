//! Egress guard for webhooks: an address that a tenant configures must not lead into the operator's own network.
//!
//! Host names are checked when they are resolved, for each connection, and the connection goes to the checked address:
//! a name that changes its address in between (DNS rebinding) gains nothing. The operator vouches for the endpoints of
//! the configuration, which may be anywhere. No proxy is used: behind one, the proxy would resolve the names.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use toolgate_core::address::{AddressClass, AllowedClasses, is_localhost, normal_host, place};

/// Destinations that are allowed besides HTTPS to the public internet. Metadata services and the like never are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookEgress {
    /// Whether HTTP without TLS is allowed.
    pub http: bool,
    /// The classes of addresses that are allowed. This machine is allowed without TLS as well.
    pub classes: AllowedClasses,
}

/// A destination that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct DestinationRejection(String);

impl WebhookEgress {
    /// The URL, if it is allowed as far as its text shows, without resolving its name.
    pub(super) fn check(&self, url: &str) -> Result<Url, DestinationRejection> {
        let url = Url::parse(url).map_err(|error| DestinationRejection(format!("this is not a URL: {error}")))?;
        let host =
            url.host_str().map(normal_host).ok_or_else(|| DestinationRejection("the URL has no host".to_owned()))?;
        let literal: Option<IpAddr> = host.parse().ok();
        let is_here = is_localhost(&host) || literal.is_some_and(|address| place(address) == AddressClass::Loopback);
        match url.scheme() {
            "https" => {}
            "http" if self.http || (self.classes.loopback && is_here) => {}
            _ => return Err(DestinationRejection("webhook URLs must begin with `https://`".to_owned())),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(DestinationRejection(
                "leave name and password out of the URL; messages are signed instead".to_owned(),
            ));
        }
        match literal {
            Some(address) => self.admit(&host, vec![address]).map(|_| url),
            None => Ok(url),
        }
    }

    /// The allowed addresses of a host; at least one.
    fn admit(&self, host: &str, mut addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, DestinationRejection> {
        let first = addresses.first().copied();
        addresses.retain(|address| self.classes.admits(place(*address)));
        match (addresses.is_empty(), first) {
            (false, _) | (true, None) => Ok(addresses),
            // The error does not contain the address: a tenant must not learn the addresses of the operator's network.
            (true, Some(_)) => Err(DestinationRejection(format!(
                "`{host}` is not on the public internet; webhooks are not sent there"
            ))),
        }
    }
}

/// A DNS resolver that returns only allowed addresses.
pub(super) struct Guard {
    egress: WebhookEgress,
    names: Arc<dyn Resolve>,
}

impl Guard {
    /// A guard around the operating system's resolver.
    pub(super) fn new(egress: WebhookEgress) -> Self {
        Self { egress, names: Arc::new(System) }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (egress, host) = (self.egress, normal_host(name.as_str()));
        let resolving = self.names.resolve(name);
        Box::pin(async move {
            let found = resolving.await?.map(|address| address.ip()).collect();
            let admitted = egress.admit(&host, found)?;
            Ok(Box::new(admitted.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

/// The operating system's resolver.
struct System;

impl Resolve for System {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The refusal that caused an error of the HTTP client, if it was one.
pub(super) fn refusal<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e DestinationRejection> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<DestinationRejection>() {
            return Some(refused);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A name whose address changes with each lookup, up to the last one.
    struct Names(Mutex<Vec<IpAddr>>);

    impl Resolve for Names {
        fn resolve(&self, _name: Name) -> Resolving {
            let mut answers = self.0.lock().expect("no panic");
            let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0] };
            Box::pin(async move { Ok(Box::new([SocketAddr::new(answer, 0)].into_iter()) as Addrs) })
        }
    }

    fn allowing(classes: AllowedClasses) -> WebhookEgress {
        WebhookEgress { http: false, classes }
    }

    fn guard(egress: WebhookEgress, answers: &[&str]) -> Guard {
        let answers = answers.iter().map(|answer| answer.parse().expect("an address")).collect();
        Guard { egress, names: Arc::new(Names(Mutex::new(answers))) }
    }

    async fn is_dialled(guard: &Guard) -> bool {
        guard.resolve("hooks.test".parse().expect("a name")).await.is_ok()
    }

    #[tokio::test]
    async fn a_name_is_checked_at_each_lookup() {
        for address in ["127.0.0.1", "10.1.2.3", "100.64.0.1", "169.254.169.254", "fd00::1", "::1", "::ffff:10.0.0.1"] {
            assert!(!is_dialled(&guard(WebhookEgress::default(), &[address])).await, "{address}");
        }
        let rebinding = guard(WebhookEgress::default(), &["93.184.216.34", "127.0.0.1"]);
        assert!(is_dialled(&rebinding).await);
        assert!(!is_dialled(&rebinding).await, "the second answer is not dialled on the strength of the first");
        let inside = allowing(AllowedClasses { private: true, loopback: false });
        assert!(is_dialled(&guard(inside, &["10.1.2.3"])).await);
        assert!(!is_dialled(&guard(inside, &["127.0.0.1"])).await);
        let all = WebhookEgress { http: true, classes: AllowedClasses { private: true, loopback: true } };
        assert!(!is_dialled(&guard(all, &["169.254.169.254"])).await, "metadata services are never allowed");
    }

    #[tokio::test]
    async fn no_connection_is_made_to_a_name_inside_the_network() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let client = reqwest::Client::builder().no_proxy();
        let client = client.dns_resolver(guard(WebhookEgress::default(), &["127.0.0.1"])).build().expect("a client");
        let error = client.post(format!("http://hooks.test:{port}/")).send().await.expect_err("it is refused");
        let refused = refusal(&error).expect("by the guard").to_string();
        assert_eq!(refused, "`hooks.test` is not on the public internet; webhooks are not sent there");
        let knock = tokio::time::timeout(std::time::Duration::from_millis(50), listener.accept()).await;
        assert!(knock.is_err(), "a connection was made");
    }

    #[test]
    fn a_url_is_checked_when_it_is_saved() {
        let strict = WebhookEgress::default();
        assert!(strict.check("https://example.com/hooks?tenant=7").is_ok());
        assert!(strict.check("https://93.184.216.34/").is_ok());
        for refused in [
            "http://example.com/",
            "ftp://example.com/",
            "https://ann:secret@example.com/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://[::ffff:a00:1]/",
            "https://169.254.169.254/latest",
            "http://localhost/",
            "/hooks",
            "",
        ] {
            assert!(strict.check(refused).is_err(), "{refused}");
        }
        let here = allowing(AllowedClasses { private: false, loopback: true });
        assert!(here.check("http://localhost:9000/").is_ok() && here.check("http://127.0.0.1:9000/").is_ok());
        assert!(here.check("http://example.com/").is_err() && here.check("https://10.0.0.1/").is_err());
        let plain = WebhookEgress { http: true, ..strict };
        assert!(plain.check("http://example.com/").is_ok() && plain.check("http://127.0.0.1/").is_err());
    }
}
