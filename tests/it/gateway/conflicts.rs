//! Conflicts about a run (row 4.05): the problem has the run's current status and version, so that a loser decides what
//! to do next without reading the run.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use toolgate::core::policy::Verdict;

use super::served::{HttpAnswer, Served};
use crate::runner::world::{Kept, given_an_agent, on_every_store, say};

/// A run that waits for the result of an external tool, and the call.
async fn waiting(kept: Kept) -> (Served, String, Value) {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Done.")]);
    let served = Served::to_all(given_an_agent().whose_model_says(turns).kept(kept).await).await;
    let run = served.run(json!({"input": "Hello", "external_tools": [{"name": "lookup"}]})).await;
    let call = served.get(&format!("/v1/runs/{run}")).await.body["pending"][0]["call_id"].clone();
    (served, run, call)
}

/// The `current` of a problem, whose form is checked.
fn current<'a>(refused: &'a HttpAnswer, run: &str) -> (&'a str, u64) {
    let current = &refused.body["current"];
    assert_eq!((&current["object"], &current["id"]), (&json!("run"), &json!(run)), "{refused:?}");
    let version = current["version"].as_u64().unwrap();
    assert_eq!(refused.header("etag"), format!("\"{version}\""), "{refused:?}");
    (current["status"].as_str().unwrap(), version)
}

fn result(call: &Value, output: usize) -> Value {
    json!({"answers": [{"type": "result", "call_id": call, "output": output}]})
}

on_every_store! {
    async fn a_late_expected_version_reads_status_and_version(kept: Kept) {
        let (served, run, call) = waiting(kept).await;
        let version = served.get(&format!("/v1/runs/{run}")).await.body["version"].as_u64().unwrap();
        let late = json!({"answers": [{"type": "result", "call_id": call, "output": 1}], "expected_version": 1});

        let refused = served.post(&format!("/v1/runs/{run}/resume"), late).await;

        assert_eq!((refused.status.as_u16(), refused.problem()), (409, "conflict"));
        assert_eq!(current(&refused, &run), ("pending", version));
    }

    async fn of_four_racing_resumes_the_losers_read_the_winner(kept: Kept) {
        let (served, run, call) = waiting(kept).await;
        let path = format!("/v1/runs/{run}/resume");
        let before = served.get(&format!("/v1/runs/{run}")).await.body["version"].as_u64().unwrap();

        let answers = join_all((0..4).map(|output| served.post(&path, result(&call, output)))).await;

        let (winners, losers): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
        assert_eq!((winners.len(), losers.len()), (1, 3), "{answers:?}");
        assert_eq!(winners[0].text("status"), "completed");
        let last = winners[0].body["version"].as_u64().unwrap();
        for loser in losers {
            assert_eq!(loser.problem(), "conflict");
            let (status, version) = current(loser, &run);
            assert!(["running", "completed"].contains(&status), "{loser:?}");
            assert!((before + 1..=last).contains(&version), "{loser:?}");
        }
    }
}

#[tokio::test]
async fn a_late_if_match_has_the_etag() {
    let (served, run, call) = waiting(Kept::InAFile).await;
    let path = format!("/v1/runs/{run}");
    let sent = async |child: &str, tag: &str, body: Value| {
        let request = served.request(Method::POST, &format!("{path}/{child}")).header("if-match", tag).json(&body);
        HttpAnswer::of(request.send().await.unwrap()).await
    };

    let cancel = sent("cancel", "\"1\"", json!({})).await;
    let pause = sent("pause", "\"1\"", json!({})).await;
    let resume = sent("resume", "\"1\"", result(&call, 1)).await;

    for refused in [&cancel, &pause, &resume] {
        assert_eq!((refused.status.as_u16(), refused.problem()), (412, "precondition_failed"));
        assert_eq!(current(refused, &run).0, "pending");
    }
    let again = sent("resume", resume.header("etag"), result(&call, 1)).await;
    assert_eq!(again.text("status"), "completed", "the tag of the problem is the run's");
}

#[tokio::test]
async fn every_conflict_about_a_run_has_its_state() {
    let (served, run, call) = waiting(Kept::InMemory).await;
    let path = format!("/v1/runs/{run}");
    let live = HttpAnswer::of(served.request(Method::DELETE, &path).send().await.unwrap()).await;
    assert_eq!((live.problem(), current(&live, &run).0), ("conflict", "pending"));
    served.post(&format!("{path}/resume"), result(&call, 1)).await;

    let said = served.post(&format!("{path}/messages"), json!({"text": "More"})).await;
    let other = served.post(&format!("{path}/resume"), result(&call, 2)).await;

    for refused in [said, other] {
        assert_eq!((refused.problem(), current(&refused, &run).0), ("conflict", "completed"));
    }
}

#[tokio::test]
async fn a_late_decision_reads_the_state_of_its_run() {
    let world = given_an_agent()
        .with_tools("files", &["delete"])
        .whose_policy_says(Verdict::Ask, "mcp_files_delete")
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_delete"}]}, say("Done.")]))
        .kept(Kept::InMemory)
        .await;
    let served = Served::to_all(world).await;
    let run = served.run(json!({"input": "Clean up"})).await;
    let approval = served.get("/v1/approvals").await.body["data"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/approvals/{approval}");

    let unseen = served.post(&format!("{path}/decision"), json!({"decision": "approve", "digest": "old"})).await;
    assert_eq!((unseen.problem(), current(&unseen, &run).0), ("conflict", "pending"));
    served.post(&format!("{path}/decision"), json!({"decision": "approve"})).await;
    served.post(&format!("/v1/runs/{run}/resume"), json!({})).await;

    let denied = served.post(&format!("{path}/decision"), json!({"decision": "deny"})).await;
    let extended = served.post(&format!("{path}/extend"), json!({"seconds": 60})).await;

    for refused in [denied, extended] {
        assert_eq!((refused.problem(), current(&refused, &run).0), ("conflict", "completed"));
    }
}

#[tokio::test]
async fn an_error_of_another_kind_has_no_state() {
    let (served, run, _) = waiting(Kept::InMemory).await;
    let unknown = json!({"answers": [{"type": "result", "call_id": "call_unknown", "output": 1}]});
    let refused = served.post(&format!("/v1/runs/{run}/resume"), unknown).await;
    assert_eq!((refused.problem(), &refused.body["current"]), ("not_found", &Value::Null));
    assert!(!refused.headers.contains_key("etag"), "{refused:?}");
}
