//! Rules of a session: limits of all of its runs together, expiry, changes of the configuration, and permission modes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate::core::chat::Usd;
use toolgate::core::error::ErrorCode;
use toolgate::core::id::{SessionId, Tenant};
use toolgate::core::policy::{Policy, Verdict};
use toolgate::core::run::{Channel, Limits, OnExceed, Restart, RunWarning, Status, TighterLimits, Unpause};
use toolgate::ports::{SessionLimits, SessionRow, SessionSettings};
use toolgate::runner::{
    AgentRunner, Fork, MemberChange, NewSession, Report, Request, Resume, Retry, RunnerError, SessionChange,
    SessionLimitsChange, SessionRules,
};

use super::sessions::{chat, message, say_to, session};
use super::world::{Given, Kept, World, given_an_agent, on_every_store, results, said, say};

async fn create(world: &World, settings: SessionSettings) -> SessionRow {
    let new = NewSession {
        id: Some(chat()),
        tenant: Tenant::default(),
        agent: "clerk".into(),
        principal: None,
        title: None,
        settings,
        by: None,
    };
    world.runner.create_session(new).await.unwrap()
}

async fn change(runner: &AgentRunner, change: SessionChange) -> SessionRow {
    runner.change_session(&Tenant::default(), &chat(), change, None).await.unwrap()
}

fn limited(limits: SessionLimits) -> SessionSettings {
    SessionSettings { limits, ..SessionSettings::default() }
}

/// Runs of two turns, one after another.
fn turns() -> Value {
    let reads = json!({"calls": [{"name": "mcp_files_read"}], "final_text": "So far."});
    json!([reads, say("Done."), reads, say("Done."), reads, say("Done.")])
}

fn reading() -> Given {
    given_an_agent().with_tools("files", &["read"]).whose_model_says(turns())
}

/// The turns that the run had left when it began.
async fn turns_of(world: &World, report: &Report) -> u32 {
    world.runner.load(&report.run_id).await.unwrap().started().spec.limits.max_iterations
}

on_every_store! {
    async fn the_limits_of_a_session_are_what_the_runs_before_left(kept: Kept) {
        let world = reading().kept(kept).await;
        create(&world, limited(SessionLimits { max_iterations: Some(3), ..SessionLimits::default() })).await;

        let first = say_to(&world.runner, "First").await;
        let second = say_to(&world.runner, "Second").await;
        let refused = world.runner.execute(message("Third")).await.unwrap_err();

        assert_eq!((first.status, turns_of(&world, &first).await), (Status::Completed, 3));
        assert_eq!((second.status, turns_of(&world, &second).await), (Status::Incomplete, 1));
        assert_eq!(refused.code(), ErrorCode::BudgetExhausted);
        let told = "session `chat` has used up its `max_iterations` of 3; raise the limit, or start another session";
        assert_eq!((refused.to_string().as_str(), session(&world).await.runs), (told, 2), "nothing was started");

        let limits = SessionLimitsChange { max_iterations: MemberChange::Set(20), ..SessionLimitsChange::default() };
        let raised = SessionChange { limits: MemberChange::Set(limits), ..SessionChange::default() };
        change(&world.runner, raised).await;
        assert_eq!(say_to(&world.runner, "Third").await.status, Status::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_begins_with_what_is_left_of_the_limits_of_its_source() {
    let world = reading().ready().await;
    let limits = SessionLimits { max_iterations: Some(5), deadline_s: Some(600), ..SessionLimits::default() };
    create(&world, limited(limits)).await;
    let first = say_to(&world.runner, "First").await;
    tokio::time::sleep(Duration::from_secs(100)).await;

    let message = Some(toolgate::core::chat::Message::user("And now?"));
    let fork = Fork { message, ..Fork::default() };
    let fork = world.runner.fork(&first.run_id, fork).await.unwrap().until_idle().await.unwrap();

    let own = SessionId::from(fork.run_id.as_str());
    let row = world.runner.session(&Tenant::default(), &own).await.unwrap().unwrap();
    let left = SessionLimits { max_iterations: Some(3), deadline_s: Some(500), ..SessionLimits::default() };
    assert_eq!(row.settings.limits, left);
    assert_eq!(turns_of(&world, &fork).await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_within_the_limits_of_its_session() {
    let world = reading().ready().await;
    create(&world, limited(SessionLimits { max_iterations: Some(3), ..SessionLimits::default() })).await;
    let first = say_to(&world.runner, "First").await;

    let retried = world.runner.retry(&first.run_id, Retry::default()).await.unwrap().until_idle().await.unwrap();
    let refused = world.runner.retry(&retried.run_id, Retry::default()).await.unwrap_err();

    assert_eq!(turns_of(&world, &retried).await, 1);
    assert_eq!(refused.code(), ErrorCode::BudgetExhausted, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_raised_limit_of_a_run_stays_within_its_session() {
    let (world, paused) = paused_at_its_limit().await;
    let refused = go_on(&world, &paused, Some(5)).await.unwrap_err();
    assert!(matches!(refused, RunnerError::WiderThanSession { .. }), "{refused}");
    assert!(refused.to_string().contains("leaves this run a `max_iterations` of 4, not 5"), "{refused}");
    assert_eq!(go_on(&world, &paused, Some(4)).await.unwrap().status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_lowered_limit_of_a_session_leaves_the_continuation_of_its_run_alone() {
    let (world, paused) = paused_at_its_limit().await;
    let spent = SessionLimitsChange { max_cost_usd: MemberChange::Set(Usd::ZERO), ..SessionLimitsChange::default() };
    change(&world.runner, SessionChange { limits: MemberChange::Set(spent), ..SessionChange::default() }).await;
    assert_eq!(go_on(&world, &paused, None).await.unwrap().status, Status::Incomplete);
}

/// A run of a session with 4 turns, paused after its one turn.
async fn paused_at_its_limit() -> (World, Report) {
    let agent = |agent: &mut toolgate::runner::Agent| agent.rules.on_exceed = OnExceed::Ask;
    let limits = Limits { max_iterations: 1, ..Limits::default() };
    let world = reading().that(agent).within(limits).ready().await;
    create(&world, limited(SessionLimits { max_iterations: Some(4), ..SessionLimits::default() })).await;
    let paused = say_to(&world.runner, "First").await;
    assert_eq!(paused.status, Status::Pending);
    (world, paused)
}

async fn go_on(world: &World, paused: &Report, max_iterations: Option<u32>) -> Result<Report, RunnerError> {
    let limits = TighterLimits { max_iterations, ..TighterLimits::default() };
    let unpause = Some(Unpause { by: "ann".into(), via: Channel::Library, limits });
    world.resume(&paused.run_id, Resume { unpause, ..Resume::default() }).await
}

#[tokio::test(start_paused = true)]
async fn a_session_beyond_its_deadline_or_its_cost_starts_no_run() {
    let world = given_an_agent().whose_model_says(json!([say("One."), say("Two.")])).ready().await;
    create(&world, limited(SessionLimits { deadline_s: Some(60), ..SessionLimits::default() })).await;
    say_to(&world.runner, "First").await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    let refused = world.runner.execute(message("Second")).await.unwrap_err();
    assert!(refused.to_string().contains("its `deadline_s` of 60"), "{refused}");

    let free = SessionLimitsChange {
        deadline_s: MemberChange::Clear,
        max_cost_usd: MemberChange::Set(Usd::ZERO),
        ..SessionLimitsChange::default()
    };
    change(&world.runner, SessionChange { limits: MemberChange::Set(free), ..SessionChange::default() }).await;
    let refused = world.runner.execute(message("Second")).await.unwrap_err();
    assert!(refused.to_string().contains("its `max_cost_usd` of 0"), "{refused}");
    change(&world.runner, SessionChange { limits: MemberChange::Clear, ..SessionChange::default() }).await;
    assert_eq!(say_to(&world.runner, "Second").await.status, Status::Completed);
}

#[tokio::test(start_paused = true)]
async fn row_0_08_an_expired_session_begins_afresh() {
    let rules = SessionRules { expire_after_s: Some(3600), ..SessionRules::default() };
    let given = given_an_agent().whose_model_says(json!([say("One."), say("Two."), say("Three.")]));
    let world = given.that(|agent| agent.sessions = rules).ready().await;
    say_to(&world.runner, "First").await;
    tokio::time::sleep(Duration::from_secs(3599)).await;
    let in_time = say_to(&world.runner, "Second").await;
    assert_eq!((said(&in_time).len(), in_time.warnings), (4, vec![]), "its last use counts");

    tokio::time::sleep(Duration::from_secs(3600)).await;
    let afresh = say_to(&world.runner, "Third").await;
    assert_eq!(said(&afresh), ["user: Third", "model: One."]);
    let expired = vec![RunWarning::SessionRestarted { restart: Restart::Expired }];
    assert_eq!((afresh.warnings, session(&world).await.runs), (expired, 3));

    let longer = SessionChange { expire_after_s: MemberChange::Set(7200), ..SessionChange::default() };
    let row = change(&world.runner, longer).await;
    let expires_at = world.runner.session_expires_at(&row).unwrap();
    assert_eq!(expires_at.duration_since(row.last_used_at()).as_secs(), 7200, "the session's own time");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(said(&say_to(&world.runner, "Fourth").await).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn row_0_07_a_session_begins_afresh_after_the_changes_that_its_agent_names() {
    let given = given_an_agent().with_tools("files", &["read"]).whose_model_says(json!([say("One."), say("Two.")]));
    let world = given.ready().await;
    say_to(&world.runner, "First").await;
    let before = session(&world).await.runtime.unwrap();
    assert_eq!((before.servers.len(), before.policy.map(|policy| policy.name)), (1, Some("allow".to_owned())));

    type Change = fn(&mut toolgate::runner::Agent);
    let other_policy: Change =
        |agent| agent.policy = Arc::new(Policy { version: "2".into(), ..(*agent.policy).clone() });
    let other_model: Change = |agent| agent.model_name = "other".into();
    let changes: [(Restart, Change); 3] = [
        (Restart::Servers, |agent| agent.servers.clear()),
        (Restart::Policy, other_policy),
        (Restart::Model, other_model),
    ];
    for (restart, change) in changes {
        let known = world.another_process().await;
        say_to(&known, "Back").await;
        let ignoring = world.another_process_where(change).await;
        assert_eq!(say_to(&ignoring, "Continued").await.warnings, vec![], "{restart:?} is not named");
        say_to(&known, "Back").await;
        let watching = world.another_process_where(|agent| {
            change(agent);
            agent.sessions.restart_on = [restart].into();
        });
        let afresh = say_to(&watching.await, "Afresh").await;
        assert_eq!((said(&afresh).len(), afresh.warnings), (2, vec![RunWarning::SessionRestarted { restart }]));
    }
}

#[tokio::test(start_paused = true)]
async fn row_0_53_a_session_has_a_permission_mode() {
    let mode = |name: &str, fallback| Arc::new(Policy { name: name.to_owned(), fallback, ..Policy::default() });
    let modes = vec![mode("careful", Verdict::Ask), mode("closed", Verdict::Deny)];
    let reads = json!({"calls": [{"name": "mcp_files_read"}]});
    let given = given_an_agent().with_tools("files", &["read"]).whose_model_says(json!([reads, reads, say("Done.")]));
    let world = given.that(|agent| agent.modes = modes).ready().await;
    create(&world, SessionSettings { mode: Some("careful".to_owned()), ..SessionSettings::default() }).await;

    let asks = say_to(&world.runner, "First").await;
    assert_eq!((asks.status, asks.pending.len()), (Status::Pending, 1), "the policy of the agent allows the call");
    let elsewhere = world.another_process().await;
    assert_eq!(elsewhere.load(&asks.run_id).await.unwrap().started().spec.mode.as_deref(), Some("careful"));
    world.runner.cancel(&asks.run_id, None, None).await.unwrap();

    let closed = Request { mode: Some("closed".to_owned()), ..message("Second") };
    let denied = world.runner.execute(closed).await.unwrap();
    assert_eq!((denied.status, world.servers.calls().len()), (Status::Completed, 0));
    assert!(said(&denied).iter().any(|line| line.contains("Denied by policy `closed`")), "{:?}", said(&denied));

    let unknown = Request { mode: Some("open".to_owned()), ..message("Third") };
    let refused = world.runner.execute(unknown).await.unwrap_err();
    let told = "agent `clerk` has no permission mode `open`; it has allow, careful, closed";
    assert_eq!((refused.to_string().as_str(), refused.code()), (told, ErrorCode::Validation));
    let unknown = SessionChange { mode: MemberChange::Set("open".to_owned()), ..SessionChange::default() };
    let refused = world.runner.change_session(&Tenant::default(), &chat(), unknown, None).await.unwrap_err();
    assert_eq!(refused.to_string(), told);
}

#[tokio::test(start_paused = true)]
async fn a_run_does_not_continue_without_its_permission_mode() {
    let mode = Arc::new(Policy { name: "careful".to_owned(), ..Policy::default() });
    let given = given_an_agent().with_an_external_tool("order");
    let given = given.whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("Done.")]));
    let world = given.that(|agent| agent.modes = vec![mode]).ready().await;
    let request = Request { mode: Some("careful".to_owned()), ..world.request() };
    let waiting = world.runner.execute(request).await.unwrap();
    let call = waiting.pending[0].call_id().unwrap().to_string();

    let without = world.another_process_where(|agent| agent.modes.clear()).await;
    let resume = results([(call.as_str(), json!("ok"))]);
    let resumed = without.resume_run(&waiting.run_id, toolgate::core::run::Input::Resume(resume), None).await;
    let refused = resumed.err().unwrap();
    assert!(matches!(refused, RunnerError::ModeMissing { .. }), "{refused}");
}
