//! Egress rule of a model's server: its address, and each address that its name resolves to, has to be allowed. Behind a
//! proxy, the proxy resolves the name; toolgate then checks a literal address alone (decision 0027).

use std::net::IpAddr;

use toolgate_core::address::{EgressPolicy, normal_host, place};
use toolgate_egress::{GuardedResolver, RejectedAddress};

/// A DNS resolver that returns only allowed addresses of this host. Other names are those of proxies.
pub(super) fn guard(host: &str, policy: &EgressPolicy) -> Result<GuardedResolver, RejectedAddress> {
    if policy.refuses_text(host) {
        return Err(rejected(host));
    }
    let own = normal_host(host);
    let classes = policy.classes_of(&own);
    Ok(GuardedResolver::new(move |host, mut addresses: Vec<IpAddr>| {
        let has_addresses = !addresses.is_empty();
        addresses.retain(|address| host != own || classes.admits(place(*address)));
        if addresses.is_empty() && has_addresses { Err(rejected(&own)) } else { Ok(addresses) }
    }))
}

fn rejected(host: &str) -> RejectedAddress {
    let problem = "is at an address that the egress policy does not allow; see `egress` in the configuration";
    RejectedAddress(format!("`{host}` {problem}"))
}

#[cfg(test)]
mod tests {
    use reqwest::dns::Resolve as _;
    use toolgate_core::address::AllowedClasses;
    use toolgate_egress::rejection;

    use super::*;

    const NOWHERE: AllowedClasses = AllowedClasses { private: false, loopback: false };

    #[test]
    fn an_address_that_is_not_allowed_makes_no_guard() {
        let policy = EgressPolicy { classes: NOWHERE, hosts: vec!["10.0.0.7".into()] };
        for host in ["127.0.0.1", "[::1]", "LOCALHOST", "10.0.0.8", "169.254.169.254"] {
            assert!(guard(host, &policy).is_err(), "{host}");
        }
        assert!(guard("10.0.0.7", &policy).is_ok() && guard("example.com", &policy).is_ok());
        let usual = EgressPolicy::default();
        assert!(guard("10.0.0.8", &usual).is_ok() && guard("169.254.169.254", &usual).is_err());
    }

    #[tokio::test]
    async fn a_name_is_refused_at_an_address_that_is_not_allowed() {
        /// The rule alone: the text of the host is checked when the guard is made.
        async fn resolved(host: &str, classes: AllowedClasses) -> Result<(), bool> {
            let policy = EgressPolicy { classes, hosts: Vec::new() };
            let guard = guard(host, &policy).expect("a name");
            let here = "127.0.0.1".parse().expect("an address");
            let found = guard.around(Always(here)).resolve(host.parse().expect("a name")).await;
            found.map(|_| ()).map_err(|error| rejection(&*error).is_some())
        }
        assert_eq!(resolved("inside.test", NOWHERE).await, Err(true));
        assert_eq!(resolved("inside.test", EgressPolicy::default().classes).await, Ok(()));
        let policy = EgressPolicy { classes: NOWHERE, hosts: Vec::new() };
        let guard = guard("example.com", &policy).expect("a name").around(Always("10.0.0.1".parse().expect("one")));
        assert!(guard.resolve("proxy.test".parse().expect("a name")).await.is_ok(), "the name of a proxy");
    }

    /// A resolver with one address for every name.
    struct Always(IpAddr);

    impl reqwest::dns::Resolve for Always {
        fn resolve(&self, _name: reqwest::dns::Name) -> reqwest::dns::Resolving {
            let address = std::net::SocketAddr::new(self.0, 0);
            Box::pin(async move { Ok(Box::new([address].into_iter()) as reqwest::dns::Addrs) })
        }
    }
}
