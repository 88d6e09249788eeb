//! Concurrent requests that want different outcomes for one run: one succeeds, and both receive a sensible response.
//! Each race is run several times, because the winner is random.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::served::{HttpAnswer, Served};
use super::streamed::{Stream, events};
use crate::runner::world::{Given, Kept, given_an_agent, say};
use toolgate::core::policy::Verdict;

const ROUNDS: usize = 12;

fn one_order() -> Given {
    given_an_agent().whose_model_says(json!([{"calls": [{"name": "ext_order"}]}, say("It says: {{last_result}}.")]))
}

fn guarded() -> Given {
    given_an_agent()
        .with_tools("files", &["delete"])
        .whose_policy_says(Verdict::Ask, "mcp_files_delete")
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_delete"}]}, say("Done.")]))
}

async fn served(given: Given) -> Served {
    Served::to_all(given.kept(Kept::InAFile).await).await
}

/// A pending run, and the id of the call.
async fn waiting(served: &Served) -> (String, String) {
    let created = served.post("/v1/runs", json!({"input": "Hello", "external_tools": [{"name": "order"}]})).await;
    let call = created.body["pending"][0]["call_id"].as_str().unwrap_or_else(|| panic!("{created:?}")).to_owned();
    (format!("/v1/runs/{}", created.text("id")), call)
}

fn result(call: &str, output: &str) -> Value {
    json!({"answers": [{"type": "result", "call_id": call, "output": output}]})
}

async fn count(served: &Served, path: &str, fact: &str) -> usize {
    let run = path.rsplit('/').next().unwrap();
    served.world.journal(&run.into()).await.iter().filter(|name| **name == fact).count()
}

/// The status, and the code of a problem.
fn seen(answer: &HttpAnswer) -> (u16, &str) {
    let status = answer.status.as_u16();
    (status, if status < 400 { "" } else { answer.problem() })
}

const CONFLICT: (u16, &str) = (409, "conflict");

#[tokio::test]
async fn concurrent_equal_resumes_count_once() {
    let served = served(one_order()).await;
    for _ in 0..ROUNDS {
        let (path, call) = waiting(&served).await;
        let resume = format!("{path}/resume");

        let answers = join_all((0..6).map(|_| served.post(&resume, result(&call, "paid")))).await;

        for answer in &answers {
            assert_eq!((answer.status.as_u16(), answer.text("status")), (200, "completed"), "{answer:?}");
            assert_eq!(answer.body["output"]["text"], "It says: paid.");
        }
        assert_eq!(count(&served, &path, "tool.completed").await, 1);
        assert_eq!(count(&served, &path, "llm.call.completed").await, 2);
    }
}

#[tokio::test]
async fn only_one_of_several_results_for_a_call_is_accepted() {
    let served = served(one_order()).await;
    for _ in 0..ROUNDS {
        let (path, call) = waiting(&served).await;
        let resume = format!("{path}/resume");

        let names = ["one", "two", "three", "four"];
        let answers = join_all(names.map(|name| served.post(&resume, result(&call, name)))).await;

        let taken: Vec<usize> = (0..names.len()).filter(|nth| answers[*nth].status == 200).collect();
        let [taken] = taken[..] else { panic!("{answers:?}") };
        assert_eq!(answers[taken].body["output"]["text"], format!("It says: {}.", names[taken]));
        for (nth, answer) in answers.iter().enumerate().filter(|(nth, _)| *nth != taken) {
            assert_eq!(seen(answer), CONFLICT, "{nth}: {answer:?}");
        }
        assert_eq!(count(&served, &path, "tool.completed").await, 1);
        assert_eq!(count(&served, &path, "llm.call.completed").await, 2);
    }
}

#[tokio::test]
async fn only_one_of_two_opposite_decisions_counts() {
    let served = served(guarded()).await;
    for _ in 0..ROUNDS {
        let calls = served.world.servers.calls().len();
        let (path, call) = waiting(&served).await;
        let approval = served.get("/v1/approvals").await.text("first_id").to_owned();
        let (decision, resume) = (format!("/v1/approvals/{approval}/decision"), format!("{path}/resume"));
        let no = json!({"answers": [{"type": "decision", "call_id": call, "decision": "deny"}]});

        let (yes, no) = tokio::join!(served.post(&decision, json!({"decision": "approve"})), served.post(&resume, no));

        let rested = served.post(&resume, json!({})).await;
        assert_eq!(rested.text("status"), "completed", "{rested:?}");
        let made = served.world.servers.calls().len() - calls;
        match (seen(&yes), seen(&no)) {
            ((200, _), CONFLICT) => assert_eq!(made, 1, "the approval counted"),
            (CONFLICT, (200, _)) => assert_eq!(made, 0, "the denial counted"),
            neither => panic!("{neither:?}"),
        }
        assert_eq!(count(&served, &path, "approval.decided").await, 1);
    }
}

#[tokio::test]
async fn a_cancel_and_a_resume_agree_on_the_ending() {
    let served = served(one_order()).await;
    for _ in 0..ROUNDS {
        let (path, call) = waiting(&served).await;
        let (resume, cancel) = (format!("{path}/resume"), format!("{path}/cancel"));

        let (resumed, cancelled) =
            tokio::join!(served.post(&resume, result(&call, "paid")), served.post(&cancel, json!({})));

        let ended = served.get(&path).await;
        let status = ended.text("status");
        assert!(["completed", "cancelled"].contains(&status), "{ended:?}");
        assert_eq!((cancelled.status.as_u16(), cancelled.text("status")), (200, status), "{cancelled:?}");
        match seen(&resumed) {
            (200, _) => assert_eq!(resumed.text("status"), status),
            refused => assert_eq!((refused, status), (CONFLICT, "cancelled"), "{resumed:?}"),
        }
        assert_eq!(
            count(&served, &path, "execution.ended").await,
            1,
            "{:?}",
            served.world.journal(&path["/v1/runs/".len()..].into()).await
        );
    }
}

#[tokio::test]
async fn a_stream_of_a_run_being_deleted_has_no_gaps() {
    let served = served(given_an_agent().whose_model_says(json!([say("Done.")]))).await;
    for _ in 0..ROUNDS {
        let path = format!("/v1/runs/{}", served.run(json!({"input": "Hello"})).await);
        let whole = served.watch(&format!("{path}/events")).await.rest().await;
        let told = async {
            let request = served.request(Method::GET, &format!("{path}/events")).header("accept", "text/event-stream");
            let response = request.send().await.unwrap();
            if response.status() == 410 { Vec::new() } else { Stream::over(response).rest().await }
        };
        let deleted = async { served.request(Method::DELETE, &path).send().await.unwrap().status().as_u16() };

        let (told, deleted) = tokio::join!(told, deleted);

        assert_eq!(deleted, 204);
        assert_eq!(told[..], whole[..told.len()], "a prefix of the run");
        assert_eq!(served.get(&format!("{path}/events")).await.problem(), "gone");
    }
}

#[tokio::test]
async fn a_running_run_is_not_deleted_and_its_fork_repeats_no_call() {
    let slow = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.take_ms("read", 300))
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, say("Done.")]));
    let served = served(slow).await;
    let mut begun = Stream::of(served.request(Method::POST, "/v1/runs").json(&json!({"input": "Hello"}))).await;
    let executing = begun.up_to("tool.mcp.executing").await;
    let path = format!("/v1/runs/{}", executing[0].data["run_id"].as_str().unwrap());

    let deleted = HttpAnswer::of(served.request(Method::DELETE, &path).send().await.unwrap()).await;
    let fork = served.post(&format!("{path}/fork"), json!({})).await;

    assert_eq!(seen(&deleted), CONFLICT);
    assert_eq!((fork.status.as_u16(), fork.text("status")), (201, "completed"), "{fork:?}");
    let rest = begun.rest().await;
    assert_eq!(events(&rest).last(), Some(&"execution.completed"));
    assert_eq!(served.world.servers.calls().len(), 1, "the fork repeats no call of the first run");
}
