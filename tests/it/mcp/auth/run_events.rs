//! Authorization status of servers in the event stream of a run.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::core::lifecycle::{Content, Lifecycle};
use toolgate::core::policy::Policy;
use toolgate::core::run::Status;
use toolgate::core::tool::ExternalTool;
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::runner::{Agent, AgentRunner, Answer, Report, Request, Resume};
use toolgate::stores::MemoryStore;

use super::super::support::*;
use super::*;

/// A run with the server `crm`.
struct Watched {
    runner: AgentRunner,
    servers: Arc<Servers>,
    report: Report,
}

impl Watched {
    /// Runs until the run is idle. The call `ext_wait` makes it pending.
    async fn run(servers: Servers, turns: Value) -> Self {
        let servers = Arc::new(servers);
        let script = Script::from_json(&json!({"turns": turns}).to_string()).expect("a script");
        let agent = Agent {
            policy: Arc::new(Policy::allow_always()),
            servers: vec!["crm".into()],
            ..Agent::new("clerk", Arc::new(ScriptedModel::new("scripted", script)))
        };
        let builder = AgentRunner::builder().store(Arc::new(MemoryStore::new())).servers(servers.clone()).agent(agent);
        let runner = builder.build().expect("a runner");
        let wait: ExternalTool = serde_json::from_value(json!({"name": "wait"})).expect("a tool");
        let report = runner.execute(Request::new("clerk", "Hello").external_tool(wait)).await.expect("it runs");
        Self { runner, servers, report }
    }

    /// Answers the pending call of `ext_wait`.
    async fn resume(&mut self) {
        let call = self.report.pending[0].call_id().expect("of a call").clone();
        let resume: Resume = [(call.as_str(), Answer::output(json!("continue")))].into_iter().collect();
        self.report = self.runner.resume(&self.report.run_id, resume).await.expect("it continues");
    }

    /// The events of the run, as JSON.
    async fn events(&self) -> Vec<Value> {
        let journal = self.runner.journal(&self.report.run_id).await.expect("a journal");
        let mut lifecycle = Lifecycle::new(self.report.run_id.clone(), Content::Include);
        let events = journal.iter().flat_map(|recorded| lifecycle.observe(recorded));
        events.map(|event| serde_json::to_value(event).expect("JSON")).collect()
    }

    /// Every status of the server in the events, with its reason.
    async fn statuses(&self) -> Vec<(String, String)> {
        let events = self.events().await;
        assert!(!json!(events).to_string().contains("s3cret"), "{events:?}");
        let of_server = events.iter().filter(|event| event["type"] == "server.auth");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        of_server
            .inspect(|event| assert_eq!(event["server"], "crm", "{event}"))
            .map(|event| (text(&event["status"]), text(&event["reason"])))
            .collect()
    }
}

fn calls(tool: &str) -> Value {
    json!({"calls": [{"name": tool}]})
}

fn authorized() -> (String, String) {
    ("authorized".into(), String::new())
}

#[tokio::test]
async fn row_0_31_a_server_without_a_login_is_reported_before_the_tools() {
    let world = World::new(Manner::default()).await;
    let run = Watched::run(world.process(), json!([{"say": "Done."}])).await;

    let events = run.events().await;
    let at = events.iter().position(|event| event["type"] == "server.auth").expect("reported");
    let (told, next) = (&events[at], &events[at + 1]);
    assert_eq!((&told["server"], &told["status"]), (&json!("crm"), &json!("required")));
    assert_eq!(told["reason"], "it answered HTTP 401, and no user has logged in; run `toolgate mcp login crm`");
    assert_eq!((&next["type"], &next["seq"]), (&json!("tools.listed"), &told["seq"]), "two events of one fact");
    assert_eq!(next["skipped"][0]["server"], "crm");
    run.servers.close().await;
}

#[tokio::test]
async fn row_0_31_access_that_ends_and_returns_during_a_run_is_reported() {
    let world = World::new(Manner::default()).await;
    world.login(&[]).await.expect("logged in");
    let (look, wait) = (calls("mcp_crm_look"), calls("ext_wait"));
    let turns = json!([look, wait, look, wait, look, look, {"say": "Done."}]);
    let mut run = Watched::run(world.process(), turns).await;
    assert_eq!(run.statuses().await, [authorized()]);

    world.vault.authority().expire_access();
    world.vault.authority().revoke();
    run.resume().await;
    let statuses = run.statuses().await;
    assert_eq!((statuses.len(), statuses[1].0.as_str()), (2, "required"), "{statuses:?}");
    let reason = &statuses[1].1;
    assert!(reason.starts_with("the access that was granted has expired"), "{reason}");
    assert!(reason.ends_with("run `toolgate mcp login crm`"), "{reason}");

    world.login(&[]).await.expect("logged in again");
    run.resume().await;
    assert_eq!(run.report.status, Status::Completed);
    let statuses: Vec<_> = run.statuses().await.into_iter().map(|(status, _)| status).collect();
    assert_eq!(statuses, ["authorized", "required", "authorized"]);
    run.servers.close().await;
}

#[tokio::test]
async fn row_0_31_a_renewal_that_fails_during_a_run_is_reported_without_the_token() {
    let world = World::new(Manner::default()).await;
    world.login(&[]).await.expect("logged in");
    let look = calls("mcp_crm_look");
    let mut run = Watched::run(world.process(), json!([look, calls("ext_wait"), look, {"say": "Done."}])).await;

    world.vault.authority().books().manner.answers = Some(|answer| answer["expires_in"] = "soon-s3cret".into());
    world.vault.authority().expire_access();
    run.resume().await;

    let statuses = run.statuses().await;
    assert_eq!((statuses.len(), statuses[1].0.as_str()), (2, "failed"), "{statuses:?}");
    assert!(statuses[1].1.contains("cannot be read"), "{statuses:?}");
    run.servers.close().await;
}

#[tokio::test]
async fn row_0_31_missing_scopes_are_reported_until_a_call_succeeds() {
    let world = World::new(Manner::default()).await;
    world.login(&[]).await.expect("logged in");
    let turns = json!([calls("mcp_crm_change"), calls("mcp_crm_look"), {"say": "Done."}]);
    let run = Watched::run(world.process(), turns).await;

    let statuses = run.statuses().await;
    let kinds: Vec<_> = statuses.iter().map(|(status, _)| status.as_str()).collect();
    assert_eq!(kinds, ["authorized", "required", "authorized"]);
    assert!(statuses[1].1.contains("run `toolgate mcp login crm --scope read --scope write`"), "{statuses:?}");
    run.servers.close().await;
}

#[tokio::test]
async fn row_0_31_a_server_that_wants_credentials_and_has_no_auth_settings_is_reported() {
    let world = World::new(Manner::default()).await;
    let without = toolgate::mcp::ServerSettings::http(world.vault.url.as_str());
    let run = Watched::run(servers([("crm", without)]), json!([{"say": "Done."}])).await;

    let statuses = run.statuses().await;
    assert_eq!((statuses.len(), statuses[0].0.as_str()), (1, "required"), "{statuses:?}");
    assert!(statuses[0].1.contains("set its `auth`"), "{statuses:?}");
    run.servers.close().await;
}
