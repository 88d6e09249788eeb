//! Egress guard (protection against SSRF): a DNS resolver that returns only the addresses that a rule allows. The
//! connection uses the checked address, so a name that changes its address in between (DNS rebinding) gains nothing. Each
//! adapter has a rule of its own (decision 0027).

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use toolgate_core::address::normal_host;

/// An address that a rule does not allow; the text is for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RejectedAddress(pub String);

/// A rule: the allowed ones of the addresses of a host, which is in its [normal form](normal_host).
type Rule = dyn Fn(&str, Vec<IpAddr>) -> Result<Vec<IpAddr>, RejectedAddress> + Send + Sync;

/// A DNS resolver that returns only allowed addresses.
#[derive(Clone)]
pub struct GuardedResolver {
    rule: Arc<Rule>,
    names: Arc<dyn Resolve>,
}

impl GuardedResolver {
    /// A guard around the resolver of the operating system.
    pub fn new(
        rule: impl Fn(&str, Vec<IpAddr>) -> Result<Vec<IpAddr>, RejectedAddress> + Send + Sync + 'static,
    ) -> Self {
        Self { rule: Arc::new(rule), names: Arc::new(SystemResolver) }
    }

    /// The guard around another resolver, such as one of a test.
    #[must_use]
    pub fn around(self, names: impl Resolve + 'static) -> Self {
        Self { names: Arc::new(names), ..self }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (rule, host) = (self.rule.clone(), normal_host(name.as_str()));
        let resolving = self.names.resolve(name);
        Box::pin(async move {
            let allowed = rule(&host, resolving.await?.map(|address| address.ip()).collect())?;
            Ok(Box::new(allowed.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

impl fmt::Debug for GuardedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GuardedResolver")
    }
}

/// The resolver of the operating system.
struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The rejection that caused an error of the HTTP client, if it was one.
pub fn rejection<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e RejectedAddress> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(rejected) = error.downcast_ref() {
            return Some(rejected);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use toolgate_core::address::{AllowedClasses, place};

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

    fn public_only(answers: &[&str]) -> GuardedResolver {
        let answers = answers.iter().map(|answer| answer.parse().expect("an address")).collect();
        let rule = |host: &str, mut addresses: Vec<IpAddr>| {
            addresses.retain(|address| AllowedClasses::default().admits(place(*address)));
            if addresses.is_empty() { Err(RejectedAddress(format!("`{host}` is private"))) } else { Ok(addresses) }
        };
        GuardedResolver::new(rule).around(Names(Mutex::new(answers)))
    }

    #[tokio::test]
    async fn a_name_is_checked_at_each_lookup() {
        let rebinding = public_only(&["93.184.216.34", "127.0.0.1"]);
        let lookup = || rebinding.resolve("Hooks.Test".parse().expect("a name"));
        assert!(lookup().await.is_ok());
        let error =
            lookup().await.map(|_| ()).expect_err("the second answer is not dialled on the strength of the first");
        assert_eq!(rejection(&*error), Some(&RejectedAddress("`hooks.test` is private".into())));
    }

    #[tokio::test]
    async fn no_connection_is_made_to_a_rejected_address() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let client = reqwest::Client::builder().no_proxy().dns_resolver(public_only(&["127.0.0.1"]));
        let client = client.build().expect("a client");
        let error = client.post(format!("http://hooks.test:{port}/")).send().await.expect_err("it is rejected");
        assert!(rejection(&error).is_some(), "{error:?}");
        let knock = tokio::time::timeout(std::time::Duration::from_millis(50), listener.accept()).await;
        assert!(knock.is_err(), "a connection was made");
    }
}
