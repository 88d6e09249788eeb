//! Tools that are hidden from the model until a grant covers them.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use toolgate::core::chat::Reply;
use toolgate::core::policy::{Condition, Match, Policy, Rule, Verdict};
use toolgate::core::run::{Decision, Scope, Status};
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::ports::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest};

use super::world::{World, decisions, given_an_agent, say, yes};

type Shown = Arc<Mutex<Vec<Vec<String>>>>;

/// A scripted model that records the names of the tools that it is shown.
struct Watched {
    inner: ScriptedModel,
    shown: Shown,
}

impl Model for Watched {
    fn identity(&self) -> &ModelIdentity {
        self.inner.identity()
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(WatchedConversation { inner: self.inner.converse(), shown: self.shown.clone() })
    }
}

struct WatchedConversation {
    inner: Box<dyn Conversation>,
    shown: Shown,
}

#[async_trait]
impl Conversation for WatchedConversation {
    async fn reply(&mut self, request: &ModelRequest<'_>, deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        self.shown.lock().unwrap().push(request.tools.iter().map(|tool| tool.name.to_string()).collect());
        self.inner.reply(request, deltas).await
    }
}

fn rule(verdict: Verdict, tool: &str) -> Rule {
    let matches = Match { tool: Some(tool.into()), ..Match::default() };
    Rule::new(tool, verdict, "because", matches, vec![], vec![]).unwrap()
}

async fn careful() -> (World, Shown) {
    let small = Condition::parse("args.amount < 100").unwrap();
    let rules = vec![
        rule(Verdict::Allow, "mcp_files_read"),
        rule(Verdict::Allow, "mcp_files_pay").with_condition(small.clone()),
        rule(Verdict::Ask, "mcp_files_send").with_condition(small),
    ];
    let policy = Policy { rules, ..Policy::ask_always() };
    let turns = json!({"turns": [{"calls": [{"name": "mcp_files_delete", "arguments": {}}]}, say("Done.")]});
    let shown = Shown::default();
    let inner = ScriptedModel::new("scripted", Script::from_json(&turns.to_string()).unwrap());
    let world = given_an_agent()
        .with_tools("files", &["delete", "pay", "read", "send"])
        .with_the_model(Watched { inner, shown: shown.clone() })
        .that(|agent| (agent.policy, agent.hide_unapproved) = (policy.into(), true));
    (world.ready().await, shown)
}

#[tokio::test(start_paused = true)]
async fn section_2_row_10_tools_that_always_ask_are_hidden_until_they_are_granted() {
    let (world, shown) = careful().await;

    // A call that the model makes all the same requires approval.
    let asked = world.run().await;
    assert_eq!(asked.status, Status::Pending);
    let always = Decision { scope: Scope::Always, ..yes() };
    let done = world.resume(&asked.run_id, decisions([("call_1_1", always)])).await.unwrap();
    assert_eq!((done.status, world.servers.calls().len()), (Status::Completed, 1));

    let (without, with) =
        (vec!["mcp_files_pay", "mcp_files_read"], vec!["mcp_files_delete", "mcp_files_pay", "mcp_files_read"]);
    assert_eq!(*shown.lock().unwrap(), [without.clone(), with.clone()], "the grant holds from the next turn on");

    let again = world.run().await;
    assert_eq!((again.status, world.servers.calls().len()), (Status::Completed, 2));
    assert_eq!(shown.lock().unwrap()[2..], [with.clone(), with]);
}

#[tokio::test(start_paused = true)]
async fn section_2_row_10_without_the_setting_every_tool_is_shown() {
    let (world, shown) = careful().await;
    let open = world.another_process_where(|agent| agent.hide_unapproved = false).await;
    open.execute(world.request()).await.unwrap();
    assert_eq!(shown.lock().unwrap()[0].len(), 4);
}
