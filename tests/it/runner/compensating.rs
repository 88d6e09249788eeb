//! Compensation (row 3.49): a run that fails or is cancelled undoes the calls that took effect.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate::core::error::ErrorCode;
use toolgate::core::policy::Verdict;
use toolgate::core::run::{Limits, Status, UndoState};
use toolgate::core::tool::{Origin, Outcome, ToolOutput, Undo};
use toolgate::runner::Report;

use super::world::{Given, Kept, LEASE, World, answer_to, decisions, given_an_agent, no, on_every_store, yes};

const POLL: Duration = Duration::from_millis(50);

/// The undo of a tool of the server `shop`, whose argument is the whole result of the call.
fn undo(tool: &str, by: &str) -> (Origin, Undo) {
    let arguments = [("of".to_owned(), "/result".to_owned())].into();
    (Origin::Mcp { server: "shop".into(), tool: tool.into() }, Undo { tool: by.into(), arguments })
}

/// An agent that books two things, one after the other, and says this afterwards.
fn booking(then: Value) -> Given {
    given_an_agent()
        .with_tools("shop", &["book", "pay", "unbook", "refund"])
        .with_an_external_tool("confirm")
        .that(|agent| {
            agent.rules.compensate = true;
            agent.undos = [undo("book", "unbook"), undo("pay", "refund")].into();
        })
        .that_polls_every(POLL)
        .whose_model_says(json!([
            {"calls": [{"name": "mcp_shop_book"}]},
            {"calls": [{"name": "mcp_shop_pay"}]},
            then,
        ]))
}

/// The agent waits for its application after it booked.
fn waiting() -> Given {
    booking(json!({"calls": [{"name": "ext_confirm"}]}))
}

fn failing() -> Given {
    booking(json!({"fail": {"code": "provider_auth", "message": "no key"}}))
}

/// What became of the undo calls, in their order.
fn undone(report: &Report) -> Vec<(&str, UndoState)> {
    let undone = &report.compensation.as_ref().expect("the run compensates").undone;
    undone.iter().map(|undo| (undo.undoes.as_str(), undo.state)).collect()
}

/// Waits until the run is idle in any process.
async fn rested(world: &World, report: &Report) -> Report {
    world.runner.resume_or_follow(&report.run_id).await.unwrap().until_idle().await.unwrap()
}

const BOTH: [(&str, UndoState); 2] = [("call_2_1", UndoState::Undone), ("call_1_1", UndoState::Undone)];

on_every_store! {
    async fn row_3_49_a_failed_run_is_undone_in_reverse(kept: Kept) {
        let world = failing().kept(kept).await;

        let report = world.run().await;

        assert_eq!((report.status, undone(&report)), (Status::Failed, BOTH.to_vec()));
        assert_eq!(report.error.as_ref().unwrap().code, ErrorCode::ProviderAuth);
        assert_eq!(world.servers.calls(), ["call_1_1", "call_2_1", "undo_call_2_1", "undo_call_1_1"]);
        assert_eq!(world.servers.arguments_of("undo_call_1_1"), json!({"of": "book done"}));
        assert_eq!(world.servers.most_in_flight(), 1);
        assert_eq!(answer_to(&report, "call_2_1"), "pay done", "the conversation is unchanged");
        let journal = world.journal(&report.run_id).await;
        let decided = journal.iter().position(|name| *name == "compensation.started").unwrap();
        // A loaded machine waits a moment for the servers.
        let undoing: Vec<_> = journal[decided + 1..].iter().copied().filter(|name| *name != "execution.waited").collect();
        let after = [
            "tool.checked", "tool.checked", "tool.started", "tool.completed", "tool.started", "tool.completed",
            "execution.ended",
        ];
        assert_eq!(undoing, after);
    }

    async fn row_3_49_a_cancelled_run_that_waits_is_undone_and_then_cancelled(kept: Kept) {
        let world = waiting().kept(kept).await;
        let run = world.run().await;

        let cancelled = world.runner.cancel(&run.run_id, Some("enough".into()), None).await.unwrap();
        let over = rested(&world, &cancelled).await;

        assert_eq!(cancelled.status, Status::Running);
        assert_eq!((over.status, undone(&over)), (Status::Cancelled, BOTH.to_vec()));
        assert_eq!(over.error.unwrap().message, "the run was cancelled: enough");
    }
}

#[tokio::test(start_paused = true)]
async fn row_3_49_a_cancel_in_a_call_undoes_the_calls_before_it_and_tells_the_doubt() {
    let world = waiting().where_servers(|servers| servers.hang_in("pay")).ready().await;
    let execution = world.start().await;
    tokio::time::sleep(POLL).await;

    world.another_process().await.cancel(&execution.run, None, None).await.unwrap();
    let over = execution.until_idle().await.unwrap();

    assert_eq!((over.status, undone(&over)), (Status::Cancelled, vec![("call_1_1", UndoState::Undone)]));
    assert_eq!(over.compensation.unwrap().outcome_unknown, ["call_2_1".into()]);
    assert_eq!(world.servers.given_up(), ["call_2_1"]);
}

#[tokio::test(start_paused = true)]
async fn row_3_49_a_failed_undo_is_told_and_the_next_one_goes_on() {
    let shipped = Outcome::Returned(ToolOutput::error("already settled"));
    let world = failing().where_servers(|servers| servers.answer("refund", shipped)).ready().await;

    let report = world.run().await;

    assert_eq!(undone(&report), [("call_2_1", UndoState::Failed), ("call_1_1", UndoState::Undone)]);
    assert_eq!(report.compensation.unwrap().undone[0].reason.as_deref(), Some("already settled"));
    assert_eq!(report.status, Status::Failed);
}

#[tokio::test(start_paused = true)]
async fn row_3_49_the_policy_refuses_an_undo_or_requires_approval_of_it() {
    let denied = failing().whose_policy_says(Verdict::Deny, "*_refund").ready().await;
    let report = denied.run().await;
    assert_eq!(undone(&report), [("call_2_1", UndoState::Refused), ("call_1_1", UndoState::Undone)]);
    let reason = report.compensation.unwrap().undone[0].reason.clone().unwrap();
    assert!(reason.contains("because it matters"), "{reason}");

    for (decision, state) in [(yes(), UndoState::Undone), (no("keep it"), UndoState::Refused)] {
        let asked = failing().whose_policy_says(Verdict::Ask, "*_refund").ready().await;
        let waiting = asked.run().await;
        assert_eq!((waiting.status, waiting.pending[0].kind()), (Status::Pending, "approval"));
        assert_eq!(asked.servers.calls().len(), 2, "the later undo waits as well");

        let over = asked.resume(&waiting.run_id, decisions([("undo_call_2_1", decision)])).await.unwrap();

        assert_eq!(undone(&over), [("call_2_1", state), ("call_1_1", UndoState::Undone)]);
        assert_eq!(over.status, Status::Failed);
    }
}

#[tokio::test(start_paused = true)]
async fn row_3_49_an_undo_that_the_agent_may_not_use_is_refused() {
    let filter = |agent: &mut toolgate::runner::Agent| agent.tools.deny = vec!["mcp_shop_refund".into()];
    let world = failing().that(filter).ready().await;

    let report = world.run().await;

    assert_eq!(undone(&report), [("call_2_1", UndoState::Refused), ("call_1_1", UndoState::Undone)]);
    let listed = world.runner.load(&report.run_id).await.unwrap();
    let warnings: Vec<String> = listed.tools().unwrap().warnings().collect();
    assert!(warnings.iter().any(|warning| warning.contains("servers.shop.tools.pay.undo: refund")), "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn row_3_49_an_undo_in_doubt_after_a_crash_is_told_and_not_repeated() {
    let world = failing().where_servers(|servers| servers.hang_in("refund")).ready().await;
    world.store.stop_renewing();
    world.start().await;
    while world.servers.calls().len() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(LEASE * 2).await;

    let mut recovered = world.another_process().await.recover().await.unwrap();
    let report = recovered.remove(0).until_idle().await.unwrap();

    assert_eq!(undone(&report), [("call_2_1", UndoState::OutcomeUnknown), ("call_1_1", UndoState::Undone)]);
    assert_eq!(world.servers.calls(), ["call_1_1", "call_2_1", "undo_call_2_1", "undo_call_1_1"]);
    assert_eq!(report.status, Status::Failed);
}

#[tokio::test(start_paused = true)]
async fn row_3_49_a_cancel_by_a_process_without_the_agent_is_executed_by_another_one() {
    let world = waiting().ready().await;
    let run = world.run().await.run_id;
    let stranger = world.another_process_where(|agent| agent.name = "stranger".into()).await;

    let cancelled = stranger.cancel(&run, None, None).await.unwrap();
    assert_eq!((cancelled.status, world.servers.calls().len()), (Status::Running, 2));
    let mut recovered = world.runner.recover().await.unwrap();

    let over = recovered.remove(0).until_idle().await.unwrap();
    assert_eq!((over.status, undone(&over)), (Status::Cancelled, BOTH.to_vec()));
}

#[tokio::test(start_paused = true)]
async fn row_3_49_a_second_cancel_ends_the_run_at_once() {
    let world = waiting().where_servers(|servers| servers.hang_in("refund")).ready().await;
    let run = world.run().await.run_id;
    world.runner.cancel(&run, Some("first".into()), None).await.unwrap();
    while world.servers.calls().len() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    let over = world.runner.cancel(&run, Some("second".into()), None).await.unwrap();

    assert_eq!(undone(&over), [("call_2_1", UndoState::OutcomeUnknown), ("call_1_1", UndoState::NotMade)]);
    assert_eq!((over.status, over.error.unwrap().message), (Status::Cancelled, "the run was cancelled: first".into()));
}

#[tokio::test(start_paused = true)]
async fn row_3_49_a_run_beyond_its_deadline_has_the_time_to_undo() {
    let slow = waiting().where_servers(|servers| {
        servers.hang_in("pay");
        servers.take_ms("unbook", 5000);
    });
    let world = slow.within(Limits { deadline_s: Some(1), ..Limits::default() }).ready().await;

    let report = world.run().await;

    assert_eq!((report.status, undone(&report)), (Status::Failed, vec![("call_1_1", UndoState::Undone)]));
    assert_eq!(report.error.unwrap().code, ErrorCode::DeadlineExceeded);
}

#[tokio::test(start_paused = true)]
async fn row_3_49_a_run_of_another_agent_or_with_another_ending_undoes_nothing() {
    let off = failing().that(|agent| agent.rules.compensate = false).ready().await;
    let failed = off.run().await;
    let journal = off.runner.journal(&failed.run_id).await.unwrap();
    assert_eq!((failed.compensation, off.servers.calls().len()), (None, 2));
    assert!(!serde_json::to_string(&journal).unwrap().contains("undo"), "the journal is as before");

    let completed = booking(json!({"say": "Done."})).ready().await;
    let report = completed.run().await;
    assert_eq!((report.status, report.compensation), (Status::Completed, None));
    assert_eq!(completed.servers.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn row_3_49_a_call_that_the_model_undid_itself_is_not_undone_again() {
    let unbook = json!({"calls": [{"name": "mcp_shop_unbook", "arguments": {"of": "book done"}}]});
    let failed = json!({"fail": {"code": "provider_auth", "message": "no key"}});
    let book = json!({"calls": [{"name": "mcp_shop_book"}]});
    let world = failing().whose_model_says(json!([book, unbook, failed])).ready().await;

    let report = world.run().await;

    assert_eq!((report.status, report.compensation), (Status::Failed, None));
    assert_eq!(world.servers.calls(), ["call_1_1", "call_2_1"]);
}

#[tokio::test(start_paused = true)]
async fn row_3_49_a_fork_undoes_none_of_the_calls_that_it_copied() {
    let world = waiting().ready().await;
    let run = world.run().await.run_id;

    let fork = world.runner.fork(&run, toolgate::runner::Fork::default()).await.unwrap().until_idle().await.unwrap();
    let cancelled = world.runner.cancel(&fork.run_id, None, None).await.unwrap();

    assert_eq!((cancelled.status, cancelled.compensation), (Status::Cancelled, None));
    assert_eq!(world.servers.calls().len(), 2);
}
