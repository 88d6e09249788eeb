//! Faults of the tool list.

use toolgate::core::id::ServerId;
use toolgate::core::tool::LeftOut;
use toolgate::mcp::ServerState;

use super::*;

fn left_out(tool: Option<&str>, reason: &str) -> LeftOut {
    LeftOut { server: Some(ServerId::from("bad")), tool: tool.map(str::to_owned), reason: reason.into() }
}

#[tokio::test]
async fn a_list_that_never_comes_is_a_reason_after_the_start_budget() {
    let (settings, wire) = watched(&["hang-at-list"]);
    let servers = servers([("bad", within(Duration::from_millis(600), settings))]);
    let reason = missing(&servers, "bad").await;
    assert!(reason.starts_with("the MCP server `bad` did not list its tools within 0."), "{reason}");
    assert!(
        reason.ends_with(
            " s; raise its `start_timeout_s`, which also limits this, if it needs longer; it wrote nothing to stderr"
        ),
        "{reason}"
    );
    let (seconds, _) = reason.trim_start_matches(|letter: char| letter != '0').split_once(' ').expect("a number");
    assert!(seconds.len() <= "0.59".len(), "without superfluous digits: {reason}");
    eventually("the server receives the cancellation", async || wire.received("notifications/cancelled").len() == 1)
        .await;
    servers.close().await;
}

#[tokio::test]
async fn five_thousand_tools_are_listed() {
    let servers = servers([("good", fault(&["many-tools=5000"]))]);
    let listed = list(&servers, &["good"]).await.remove(0);
    assert_eq!((listed.tools.len(), listed.left_out), (5006, vec![]));
    servers.close().await;
}

#[tokio::test]
async fn a_list_that_comes_late_is_waited_for() {
    let servers = servers([("bad", fault(&["slow-list=0.5"]))]);
    assert_lists_its_tools(&servers, "bad").await;
    servers.close().await;
}

#[tokio::test]
async fn a_cursor_that_comes_again_ends_the_list_with_a_reason() {
    let (settings, wire) = watched(&["endless-cursor"]);
    let servers = servers([("bad", settings)]);
    let listed = list(&servers, &["bad"]).await.remove(0);
    assert_eq!(sorted(&listed.tools), ["add", "again", "count", "echo", "fail", "mutant", "slow"]);
    let reason = "its list of tools does not end (it gave the cursor `again` twice); the 7 tools up to there are used";
    assert_eq!(listed.left_out, [left_out(None, reason)]);
    assert_eq!(wire.received("tools/list").len(), 2);
    servers.close().await;
}

#[tokio::test]
async fn pages_that_bring_no_tools_end_the_list_with_a_reason() {
    let (settings, wire) = watched(&["page-size=0"]);
    let servers = servers([("bad", settings)]);
    let listed = list(&servers, &["bad"]).await.remove(0);
    let reason = "its list of tools does not end (100 of its pages have no tool); the 0 tools up to there are used";
    assert_eq!((listed.tools.len(), listed.left_out), (0, vec![left_out(None, reason)]));
    assert_eq!(wire.received("tools/list").len(), 100);
    servers.close().await;
}

#[tokio::test]
async fn pages_without_end_are_cut_at_the_most_tools_of_the_server_by_the_name_of_the_setting() {
    let (mut settings, wire) = watched(&["growing-cursor"]);
    settings.max_tools = 40;
    let servers = servers([("bad", settings)]);
    let listed = list(&servers, &["bad"]).await.remove(0);
    let reason = "it has more than 40 tools; the 40 tools up to there are used. Raise its `max_tools` if it needs more";
    assert_eq!((listed.tools.len(), listed.left_out), (40, vec![left_out(None, reason)]), "one more tool on each page");
    assert_eq!(wire.received("tools/list").len(), 1 + 40 - TOOLS.len());
    servers.close().await;
}

#[tokio::test]
async fn a_list_that_takes_too_long_is_used_as_far_as_it_was_read() {
    let endpoint = Endpoint::with(&["growing-cursor"]).await;
    let (process, pipe) = watched(&["growing-cursor"]);
    for (settings, wire) in [(process, &pipe), (endpoint.settings(), &endpoint.wire)] {
        let mut settings = within(Duration::from_secs(2), settings);
        settings.max_tools = usize::MAX;
        let servers = servers([("bad", settings)]);
        let listed = list(&servers, &["bad"]).await.remove(0);
        let kept = listed.tools.len();
        let reason = &listed.left_out.first().expect("a reason").reason;
        assert!(kept > TOOLS.len() && reason.contains(&format!("; the {kept} tools up to there are used")), "{reason}");
        assert!(reason.starts_with("its list of tools was not complete within "), "{reason}");
        assert_eq!(text(call(&servers, "bad", "echo", json!({"text": "hi"})).await), "hi");

        let asked = wire.received("tools/list").len();
        assert_eq!(list(&servers, &["bad"]).await.remove(0).tools.len(), kept, "no run waits for it a second time");
        assert_eq!(wire.received("tools/list").len(), asked, "no run waits for it a second time");
        let refreshed = servers.refresh(&ServerId::from("bad")).await.expect("a server").expect_err("it is late again");
        assert!(
            refreshed.starts_with("the MCP server `bad` did not complete its list of tools within "),
            "{refreshed}"
        );
        let status = status(&servers, "bad");
        assert_eq!((status.state, status.tools, status.stale), (ServerState::Ready, Some(kept), None));
        assert_eq!(status.last_error.map(|error| error.message), Some(refreshed));
        servers.close().await;
    }
}

#[tokio::test]
async fn any_number_of_pages_with_tools_is_read() {
    let (settings, wire) = watched(&["many-tools=1500", "page-size=10"]);
    let servers = servers([("bad", settings)]);
    let listed = list(&servers, &["bad"]).await.remove(0);
    assert_eq!((listed.tools.len(), listed.left_out), (1506, vec![]));
    assert_eq!(wire.received("tools/list").len(), 151);
    servers.close().await;
}

#[tokio::test]
async fn ten_thousand_tools_are_used_and_more_where_the_setting_says_so() {
    let mut more = fault(&["many-tools=10100"]);
    more.max_tools = 12_000;
    let servers = servers([("bad", fault(&["many-tools=10100"])), ("more", more)]);
    let listed = list(&servers, &["bad", "more"]).await;
    let counts: Vec<(usize, usize)> = listed.iter().map(|server| (server.tools.len(), server.left_out.len())).collect();
    assert_eq!(counts, [(10_000, 1), (10_106, 0)]);
    servers.close().await;
}

#[tokio::test]
async fn tools_without_a_schema_are_left_out_alone_and_the_good_ones_work() {
    let servers = servers([("bad", fault(&["malformed-tool"]))]);
    let listed = list(&servers, &["bad"]).await.remove(0);
    assert_eq!(sorted(&listed.tools), ["add", "count", "dangling", "echo", "fail", "mutant", "slow"]);
    assert_eq!(
        listed.left_out,
        [
            left_out(Some("bare"), "its definition is malformed: `inputSchema` is missing. Correct it in the server"),
            left_out(
                Some("permissive"),
                "its definition is malformed: `inputSchema` is true, not an object. Correct it in the server"
            ),
        ]
    );
    assert_eq!(echo(&servers, "bad", "hello").await, "hello");
    servers.close().await;
}

#[tokio::test]
async fn a_page_under_the_empty_cursor_is_read_in_the_newer_era_only() {
    for (era, has_more) in [("2025-11-25", false), ("2026-07-28", true)] {
        let (settings, _wire) = of_era(era, &["empty-cursor"]);
        let servers = servers([("pages", settings)]);
        let listed = list(&servers, &["pages"]).await.remove(0);
        let is_listed = sorted(&listed.tools).contains(&"under_the_empty_cursor");
        assert_eq!((is_listed, listed.left_out), (has_more, vec![]), "{era}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_server_without_the_capability_of_tools_is_ready_without_tools() {
    for era in ["2025-11-25", "2026-07-28"] {
        let (settings, _wire) = of_era(era, &["no-tools-capability"]);
        let servers = servers([("prompts", settings)]);
        let listed = list(&servers, &["prompts"]).await.remove(0);
        assert_eq!((listed.tools.len(), listed.left_out, listed.stale), (0, vec![], None), "{era}");
        let status = status(&servers, "prompts");
        assert_eq!((status.state, status.tools), (toolgate::mcp::ServerState::Ready, Some(0)), "{era}");
        servers.close().await;
    }
}
