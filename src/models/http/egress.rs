//! Egress guard of a model's server: its address, and each address that its name resolves to, has to be allowed. A name that
//! changes its address gains nothing, because the connection uses the checked address. Behind a proxy, the proxy resolves
//! the name; toolgate then checks a literal address alone (decision 0027).

use std::error::Error;
use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use toolgate_core::address::{AllowedClasses, EgressPolicy, normal_host, place};

/// An address that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is at an address that the egress policy does not allow; see `egress` in the configuration")]
pub(super) struct AddressRefusal(pub(super) String);

/// A DNS resolver that returns only allowed addresses of the model's host. Other names are those of proxies.
pub(super) struct Guard {
    host: String,
    classes: AllowedClasses,
}

impl Guard {
    /// The guard of that host.
    pub(super) fn new(host: &str, policy: &EgressPolicy) -> Result<Self, AddressRefusal> {
        if policy.refuses_text(host) {
            return Err(AddressRefusal(host.to_owned()));
        }
        let host = normal_host(host);
        Ok(Self { classes: policy.classes_of(&host), host })
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guarded = normal_host(name.as_str()) == self.host;
        let (host, classes) = (self.host.clone(), self.classes);
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let is_allowed = |address: &SocketAddr| !guarded || classes.admits(place(address.ip()));
            let allowed: Vec<SocketAddr> = found.iter().copied().filter(is_allowed).collect();
            match allowed.is_empty() && !found.is_empty() {
                true => Err(AddressRefusal(host).into()),
                false => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

/// The refusal that caused an error of the HTTP client, if it was one.
pub(super) fn refusal<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e AddressRefusal> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<AddressRefusal>() {
            return Some(refused);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: AllowedClasses = AllowedClasses { private: false, loopback: false };

    #[test]
    fn an_address_that_is_not_allowed_makes_no_guard() {
        let policy = EgressPolicy { classes: NOWHERE, hosts: vec!["10.0.0.7".into()] };
        for host in ["127.0.0.1", "[::1]", "LOCALHOST", "10.0.0.8", "169.254.169.254"] {
            assert!(Guard::new(host, &policy).is_err(), "{host}");
        }
        assert!(Guard::new("10.0.0.7", &policy).is_ok() && Guard::new("example.com", &policy).is_ok());
        let usual = EgressPolicy::default();
        assert!(Guard::new("10.0.0.8", &usual).is_ok() && Guard::new("169.254.169.254", &usual).is_err());
    }

    #[tokio::test]
    async fn a_name_is_refused_at_an_address_that_is_not_allowed() {
        let resolved = async |host: &str, classes| {
            let guard = Guard { host: host.to_owned(), classes };
            guard.resolve("localhost".parse().unwrap()).await.map(|_| ()).map_err(|error| refusal(&*error).is_some())
        };
        assert_eq!(resolved("localhost", NOWHERE).await, Err(true));
        assert_eq!(resolved("localhost", EgressPolicy::default().classes).await, Ok(()));
        assert_eq!(resolved("example.com", NOWHERE).await, Ok(()), "the name of a proxy");
    }
}
