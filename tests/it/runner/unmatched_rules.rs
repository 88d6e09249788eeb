//! Rules that ask or deny by a name that no tool has.

use serde_json::json;
use toolgate::core::policy::Verdict;
use toolgate::core::run::{PendingItem, Status};
use toolgate::core::tool::ToolFilter;

use super::world::{Given, given_an_agent, say};

fn a_clerk_that_pushes() -> Given {
    let turns = json!([{"calls": [{"name": "mcp_git_push"}, {"name": "mcp_files_read"}]}, say("Done.")]);
    given_an_agent().with_tools("git", &["push"]).with_tools("files", &["read"]).whose_model_says(turns)
}

#[tokio::test(start_paused = true)]
async fn a_denial_of_a_misspelled_tool_makes_its_servers_calls_require_approval() {
    let world = a_clerk_that_pushes().whose_policy_says(Verdict::Deny, "mcp_git_psuh").ready().await;

    let report = world.run().await;

    let asked: Vec<(&str, &str)> = report
        .pending
        .iter()
        .filter_map(|item| match item {
            PendingItem::Approval(approval) => Some((approval.tool_name.as_str(), approval.reason.as_str())),
            _ => None,
        })
        .collect();
    let reason = "rule `mcp_git_psuh` of policy `allow` matches no tool (`tool: mcp_git_psuh`; did you mean \
                  `mcp_git_push`?): correct the name, or add `allow_unmatched: true` to the rule; until then the calls that it may have meant \
                  require approval";
    assert_eq!((report.status, asked), (Status::Pending, vec![("mcp_git_push", reason)]));
    assert_eq!(world.servers.calls(), ["call_1_2"]);
}

#[tokio::test(start_paused = true)]
async fn a_misspelled_rule_that_allows_is_a_warning_and_makes_no_call_ask() {
    for (pattern, meant) in [
        ("mcp_git_psuh", "; did you mean `mcp_git_push`?"),
        ("mcp_files_raed*", "; did you mean `mcp_files_read`?"),
        ("push", "; did you mean `mcp_git_push`?"),
        ("mcp_git_checkout", ""),
    ] {
        let world = a_clerk_that_pushes().whose_policy_says(Verdict::Allow, pattern).ready().await;
        let report = world.run().await;
        let run = world.runner.load(&report.run_id).await.unwrap();
        let warnings: Vec<String> = run.tools().unwrap().warnings().collect();
        let warning = format!(
            "rule `{pattern}` of policy `allow` allows nothing: no tool has the name (`tool: {pattern}`{meant}): correct \
             the name, or add `allow_unmatched: true` to the rule"
        );
        assert_eq!((report.status, warnings), (Status::Completed, vec![warning]));
    }
    let given = a_clerk_that_pushes().whose_policy_says(Verdict::Allow, "mcp_git_psuh").that(|agent| {
        let policy = std::sync::Arc::make_mut(&mut agent.policy);
        policy.rules = policy.rules.drain(..).map(|rule| rule.with_allow_unmatched(true)).collect();
    });
    let world = given.ready().await;
    let report = world.run().await;
    let run = world.runner.load(&report.run_id).await.unwrap();
    assert_eq!(run.tools().unwrap().warnings().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_rule_without_a_prefix_makes_every_mcp_call_require_approval() {
    let world = a_clerk_that_pushes().whose_policy_says(Verdict::Ask, "push").ready().await;
    assert_eq!(world.run().await.pending.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn rules_that_need_not_match_change_nothing() {
    for pattern in ["*delete*", "mcp_*_delete_*", "ext_refund", "ask_human", "mcp_git_*", "mcp_prod_*"] {
        let given = a_clerk_that_pushes().that(|agent| agent.other_servers = vec!["prod".into()]);
        let world = given.whose_policy_says(Verdict::Ask, pattern).ready().await;
        let names = if pattern == "mcp_git_*" { 1 } else { 0 };
        assert_eq!(world.run().await.pending.len(), names, "{pattern}");
    }
    let given = a_clerk_that_pushes().whose_policy_says(Verdict::Deny, "mcp_git_psuh").that(|agent| {
        let policy = std::sync::Arc::make_mut(&mut agent.policy);
        policy.rules = policy.rules.drain(..).map(|rule| rule.with_allow_unmatched(true)).collect();
    });
    assert_eq!(given.ready().await.run().await.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_rule_about_a_server_that_did_not_start_is_not_unmatched() {
    let world = a_clerk_that_pushes().whose_policy_says(Verdict::Deny, "mcp_git_psuh").ready().await;
    world.servers.take_down("git", "it did not start");
    assert_eq!(world.run().await.pending.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pattern_of_the_agent_that_matches_no_tool_is_a_warning() {
    let given = a_clerk_that_pushes().that(|agent| {
        agent.tools = ToolFilter { deny: vec!["mcp_git_psuh".into(), "mcp_*_delete".into()], ..ToolFilter::default() };
        agent.priorities = vec![("mcp_files_raed".into(), 5), ("mcp_files_read".into(), 5), ("push".into(), 5)];
    });
    let world = given.ready().await;

    let report = world.run().await;

    let run = world.runner.load(&report.run_id).await.unwrap();
    let warnings: Vec<String> = run.tools().unwrap().warnings().collect();
    let expected = [
        "`tools.deny: mcp_git_psuh` of the agent matches no tool; correct or remove it",
        "`priorities: mcp_files_raed` of the agent matches no tool; correct or remove it",
        "`priorities: push` of the agent matches no tool; correct or remove it: the names of MCP tools begin with \
         `mcp_<server>_`, those of external tools with `ext_`",
    ];
    assert_eq!((report.status, warnings), (Status::Completed, expected.map(String::from).to_vec()));
}
