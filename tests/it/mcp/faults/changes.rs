//! A tool that becomes another one while it is used.

use toolgate::core::id::ServerId;
use toolgate::ports::McpServers as _;

use super::*;

/// The definition of `mutant` now.
async fn mutant(servers: &Servers) -> (String, Value) {
    let listed = list(servers, &["bad"]).await.remove(0);
    assert_eq!(listed.left_out, []);
    let mutant = listed.tools.into_iter().find(|tool| tool.name == "mutant").expect("it is listed");
    (mutant.description, mutant.input_schema["required"].clone())
}

#[tokio::test]
async fn a_tool_that_changes_is_listed_as_it_is_now_and_a_storm_of_announcements_is_one_change() {
    let (settings, wire) = watched(&["tools-change"]);
    let servers = servers([("bad", settings)]);
    assert_eq!(mutant(&servers).await, ("Doubles a number.".into(), json!(["number"])));
    let (before, asked) = (servers.generation(&[ServerId::from("bad")]), wire.received("tools/list").len());
    assert_eq!(echo(&servers, "bad", "hello").await, "hello");
    eventually("the change is known", async || servers.generation(&[ServerId::from("bad")]) != before).await;
    let (description, required) = mutant(&servers).await;
    assert!(description.contains("password"), "{description}");
    assert_eq!(required, json!(["number", "note"]));
    let told = wire.noted("sent").iter().filter(|sent| sent["method"] == "notifications/tools/list_changed").count();
    assert_eq!(told, 20);
    let asked = wire.received("tools/list").len() - asked;
    assert!((1..=3).contains(&asked), "twenty announcements made it ask {asked} times");
    servers.close().await;
}
