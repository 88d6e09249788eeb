//! Egress rule for webhooks (protection against SSRF): an address that a tenant configures must not lead into the operator's own network.
//!
//! Host names are checked when they are resolved, for each connection ([`GuardedResolver`]). The operator vouches for the endpoints of
//! the configuration, which may be anywhere. No proxy is used: behind one, the proxy would resolve the names.

use std::net::IpAddr;

use reqwest::Url;
use toolgate_core::address::{AddressClass, AllowedClasses, is_localhost, normal_host, place};
use toolgate_egress::{GuardedResolver, RejectedAddress};

/// Destinations that are allowed besides HTTPS to the public internet. Metadata services and the like never are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookEgress {
    /// Whether HTTP without TLS is allowed.
    pub http: bool,
    /// The classes of addresses that are allowed. This machine is allowed without TLS as well.
    pub classes: AllowedClasses,
}

impl WebhookEgress {
    /// The URL, if it is allowed as far as its text shows, without resolving its name.
    pub(super) fn check(&self, url: &str) -> Result<Url, RejectedAddress> {
        let url = Url::parse(url).map_err(|error| RejectedAddress(format!("this is not a URL: {error}")))?;
        let host = url.host_str().map(normal_host).ok_or_else(|| RejectedAddress("the URL has no host".to_owned()))?;
        let literal: Option<IpAddr> = host.parse().ok();
        let is_here = is_localhost(&host) || literal.is_some_and(|address| place(address) == AddressClass::Loopback);
        match url.scheme() {
            "https" => {}
            "http" if self.http || (self.classes.loopback && is_here) => {}
            _ => return Err(RejectedAddress("webhook URLs must begin with `https://`".to_owned())),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(RejectedAddress(
                "leave name and password out of the URL; messages are signed instead".to_owned(),
            ));
        }
        match literal {
            Some(address) => self.admit(&host, vec![address]).map(|_| url),
            None => Ok(url),
        }
    }

    /// A DNS resolver that returns only allowed addresses.
    pub(super) fn resolver(self) -> GuardedResolver {
        GuardedResolver::new(move |host, addresses| self.admit(host, addresses))
    }

    /// The allowed addresses of a host; at least one.
    fn admit(self, host: &str, mut addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, RejectedAddress> {
        let first = addresses.first().copied();
        addresses.retain(|address| self.classes.admits(place(*address)));
        match (addresses.is_empty(), first) {
            (false, _) | (true, None) => Ok(addresses),
            // The error does not contain the address: a tenant must not learn the addresses of the operator's network.
            (true, Some(_)) => {
                Err(RejectedAddress(format!("`{host}` is not on the public internet; webhooks are not sent there")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowing(classes: AllowedClasses) -> WebhookEgress {
        WebhookEgress { http: false, classes }
    }

    #[test]
    fn only_allowed_addresses_are_admitted() {
        let admits = |egress: WebhookEgress, address: &str| {
            egress.admit("hooks.test", vec![address.parse().expect("an address")]).is_ok()
        };
        for address in ["127.0.0.1", "10.1.2.3", "100.64.0.1", "169.254.169.254", "fd00::1", "::1", "::ffff:10.0.0.1"] {
            assert!(!admits(WebhookEgress::default(), address), "{address}");
        }
        let inside = allowing(AllowedClasses { private: true, loopback: false });
        assert!(admits(inside, "10.1.2.3") && !admits(inside, "127.0.0.1"));
        let all = WebhookEgress { http: true, classes: AllowedClasses { private: true, loopback: true } };
        assert!(!admits(all, "169.254.169.254"), "metadata services are never allowed");
        let refused = WebhookEgress::default().admit("hooks.test", vec!["10.0.0.1".parse().expect("an address")]);
        let told = "`hooks.test` is not on the public internet; webhooks are not sent there";
        assert_eq!(refused, Err(RejectedAddress(told.into())));
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
