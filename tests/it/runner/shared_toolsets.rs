//! Toolsets that runs share: assembled once for the same agent, settings and servers, and again after any change.

use std::sync::Arc;

use serde_json::json;
use toolgate::core::policy::{Match, Policy, Rule, Verdict};
use toolgate::core::run::Event;
use toolgate::core::tool::{McpTool, ToolFilter, Toolset};
use toolgate::runner::Request;

use super::world::{Given, World, given_an_agent, say};
use crate::fakes::tool;

fn a_reader() -> Given {
    given_an_agent().with_tools("files", &["read", "write"]).whose_model_says(json!([say("Hi.")]))
}

/// The toolset of a new run.
async fn listed(world: &World, request: Request) -> Arc<Toolset> {
    let report = world.runner.start(request).await.unwrap().until_idle().await.unwrap();
    let journal = world.runner.journal(&report.run_id).await.unwrap();
    let toolset = |event| if let Event::ToolsListed { toolset } = event { Some(toolset) } else { None };
    let listed = journal.into_iter().find_map(|entry| toolset(entry.event));
    listed.expect("tools are listed")
}

fn request() -> Request {
    Request::new("clerk", "Hello")
}

#[tokio::test]
async fn runs_with_the_same_tools_share_one_toolset() {
    let world = a_reader().ready().await;
    assert!(Arc::ptr_eq(&listed(&world, request()).await, &listed(&world, request()).await));

    let as_principal = |principal: &str| Request { principal: Some(principal.into()), ..request() };
    assert!(Arc::ptr_eq(&listed(&world, as_principal("ann")).await, &listed(&world, as_principal("bob")).await));
}

#[tokio::test]
async fn a_run_after_a_change_of_a_tool_has_the_new_definition() {
    let world = a_reader().ready().await;
    let before = listed(&world, request()).await;
    world.servers.tool_access("files", McpTool { description: "Reads a file.".into(), ..tool("read") });
    let after = listed(&world, request()).await;

    let read = |toolset: &Toolset| toolset.get("mcp_files_read").expect("it is listed").clone();
    assert_ne!(read(&before).hash, read(&after).hash);
    assert_eq!((read(&after).description.as_str(), read(&after).changed), ("Reads a file.", false));
    let trusted = {
        world.servers.trust("files", true);
        listed(&world, request()).await
    };
    assert!(read(&trusted).trusted && !read(&after).trusted);
}

#[tokio::test]
async fn a_run_that_narrows_its_tools_has_its_own_toolset() {
    let world = a_reader().ready().await;
    let tools = ToolFilter { deny: vec!["*write".into()], ..ToolFilter::default() };
    let narrowed = listed(&world, Request { tools, ..request() }).await;
    assert_eq!((narrowed.len(), listed(&world, request()).await.len()), (1, 2));
}

#[tokio::test]
async fn a_policy_that_reads_the_principal_judges_tools_for_each_one() {
    let matches = Match { principal: Some("guest".into()), tool: Some("*write".into()), ..Match::default() };
    let rule = Rule::new("guests", Verdict::Deny, "guests read", matches, vec![], vec![]).unwrap();
    let policy = Arc::new(Policy { rules: vec![rule], ..Policy::allow_always() });
    let world = a_reader().that(|agent| agent.policy = policy).ready().await;

    for (principal, verdict) in [("ann", Verdict::Allow), ("guest", Verdict::Deny), ("ann", Verdict::Allow)] {
        let toolset = listed(&world, Request { principal: Some(principal.into()), ..request() }).await;
        assert_eq!(toolset.get("mcp_files_write").unwrap().verdict, verdict, "{principal}");
    }
}
