//! Egress guard without a network: names have the addresses that the test gives them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::*;

/// Names with a scripted address for each resolution; the last one repeats.
struct Names(Mutex<BTreeMap<&'static str, Vec<&'static str>>>);

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let mut names = self.0.lock().expect("no panic");
        let answers = names.get_mut(name.as_str()).expect("a name of the test");
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0] };
        let parsed = answer.split(' ').map(|address| SocketAddr::new(address.parse().expect("an address"), 0));
        let found: Vec<_> = parsed.collect();
        Box::pin(async move { Ok(Box::new(found.into_iter()) as Addrs) })
    }
}

async fn dialled(reach: &AllowedAddresses, name: &str, answers: &[&'static str]) -> Result<Vec<String>, String> {
    let names = Names(Mutex::new(BTreeMap::from([(name.to_owned().leak() as &str, answers.to_vec())])));
    let guard = reach.resolver().expect("a guard").around(names);
    let found = guard.resolve(name.parse().expect("a name")).await;
    found.map(|found| found.map(|address| address.ip().to_string()).collect()).map_err(|error| error.to_string())
}

fn url(text: &str) -> Url {
    Url::parse(text).expect("a URL")
}

#[tokio::test]
async fn a_name_that_leads_into_the_network_of_the_operator_is_not_dialled() {
    let reach = AllowedAddresses::of_server(&Egress::Public);
    for address in ["127.0.0.1", "10.1.2.3", "169.254.169.254", "fd00::1", "::1", "::ffff:10.0.0.1", "0.0.0.0"] {
        let refused = dialled(&reach, "evil.test", &[address]).await.expect_err(address);
        assert_eq!(
            refused,
            format!(
                "`evil.test` is at the address {address}, which is not on the public internet; an address from there is \
                 not dialled"
            )
        );
    }
    assert_eq!(dialled(&reach, "good.test", &["93.184.216.34"]).await, Ok(vec!["93.184.216.34".to_owned()]));
}

#[tokio::test]
async fn of_several_addresses_only_the_public_ones_are_dialled() {
    let reach = AllowedAddresses::of_server(&Egress::Public);
    let found = dialled(&reach, "mixed.test", &["10.0.0.1 93.184.216.34 ::1"]).await;
    assert_eq!(found, Ok(vec!["93.184.216.34".to_owned()]));
}

#[tokio::test]
async fn a_name_is_checked_on_every_resolution() {
    let names = Names(Mutex::new(BTreeMap::from([("rebinding.test", vec!["93.184.216.34", "127.0.0.1"])])));
    let guard = AllowedAddresses::of_server(&Egress::Public).resolver().expect("a guard").around(names);
    let ask = || guard.resolve("rebinding.test".parse().expect("a name"));
    assert_eq!(
        ask().await.expect("public").map(|address| address.ip().to_string()).collect::<Vec<_>>(),
        ["93.184.216.34"]
    );
    assert!(ask().await.is_err(), "the second answer is not dialled on the strength of the first");
}

#[test]
fn an_address_in_figures_is_checked_too() {
    let reach = AllowedAddresses::of_server(&Egress::Public);
    for refused in [
        "http://127.0.0.1:8080/mcp",
        "http://[::1]/",
        "http://[::ffff:7f00:1]/",
        "http://2130706433/",
        "http://0x7f.1/",
    ] {
        assert!(reach.check(&url(refused)).is_err(), "{refused}");
    }
    assert_eq!(reach.check(&url("https://93.184.216.34/mcp")), Ok(()));
    assert_eq!(AllowedAddresses::of_server(&Egress::Operator).check(&url("http://127.0.0.1/mcp")), Ok(()));
}

#[tokio::test]
async fn metadata_leads_where_the_server_itself_was_placed_and_no_further() {
    let from = |server: &str, allow| AllowedAddresses::from_server(&Egress::Operator, &url(server), allow);
    let (public, local) = (from("https://mcp.test/mcp", false), from("http://127.0.0.1:3000/mcp", false));
    let (named, private) = (from("http://localhost:3000/mcp", false), from("http://192.168.1.5:3000/mcp", false));
    let allowed = from("https://mcp.test/mcp", true);
    for (reach, address, admitted) in [
        (&public, "127.0.0.1", false),
        (&public, "10.0.0.9", false),
        (&local, "127.0.0.1", true),
        (&local, "10.0.0.9", false),
        (&named, "127.0.0.1", true),
        (&private, "10.0.0.9", true),
        (&private, "127.0.0.1", false),
        (&allowed, "10.0.0.9", true),
        (&allowed, "127.0.0.1", true),
        (&allowed, "169.254.169.254", false),
        (&private, "169.254.169.254", false),
        (&local, "169.254.169.254", false),
    ] {
        let name = dialled(reach, "auth.test", &[address.to_owned().leak()]).await;
        assert_eq!(name.is_ok(), admitted, "{reach:?} {address} by name");
        assert_eq!(reach.check(&url(&format!("http://{address}/token"))).is_ok(), admitted, "{reach:?} {address}");
    }
    // The operator configured the host of the server itself.
    assert!(dialled(&public, "mcp.test", &["10.0.0.4"]).await.is_ok());
    let injected = AllowedAddresses::from_server(&Egress::Public, &url("https://mcp.test/mcp"), true);
    assert!(dialled(&injected, "mcp.test", &["10.0.0.4"]).await.is_err(), "the operator did not name this server");
}
