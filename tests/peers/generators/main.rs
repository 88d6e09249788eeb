//! Program over the generated client: starts a run, answers its call, and follows its events.

use std::env;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap};
use serde_json::json;

progenitor::generate_api!(spec = "openapi.json", interface = Builder);

use types::builder::{ExternalTool, NewRun, ResultAnswer, Resume};
use types::{ErrorCode, Event, Pending, Status, StreamEvent};

#[tokio::main]
async fn main() {
    let url = env::var("TOOLGATE_URL").unwrap();
    let key = format!("Bearer {}", env::var("TOOLGATE_KEY").unwrap());
    let headers = HeaderMap::from_iter([(AUTHORIZATION, key.parse().unwrap())]);
    let http = reqwest::Client::builder().default_headers(headers).build().unwrap();
    let client = Client::new_with_client(&url, http.clone());

    let tool: types::ExternalTool = ExternalTool::default().name("lookup_order").try_into().unwrap();
    let body =
        NewRun::default().input(types::NewInput::String("How is order A-1077?".into())).external_tools(vec![tool]);
    let started = client.create_run().body(body).send().await.unwrap();
    assert!(started.headers().contains_key("location"), "a new run has an address");
    let run = started.into_inner();
    assert_eq!(run.status, Status::Pending, "the run waits");

    let Some(Pending::ExternalResult(call)) = run.pending.first() else { panic!("the pending item is typed") };
    assert_eq!(call.tool.name, "lookup_order");
    let result = ResultAnswer::default().call_id(&call.call_id).type_(types::ResultAnswerType::Result);
    let result: types::ResultAnswer = result.output(json!({"state": "late"})).try_into().unwrap();
    let answers = Resume::default().answers(vec![result.into()]);
    let run = client.resume_run().run(&run.id).body(answers).send().await.unwrap().into_inner();
    assert_eq!(run.status, Status::Completed, "the run completed");

    let page = client.watch_run().run(&run.id).limit(100).include("content").send().await.unwrap().into_inner();
    let Some(Event::ExecutionCompleted(last)) = page.data.last() else { panic!("the last event of the page is typed") };
    assert!(last.output.as_ref().is_some_and(|output| !output.text.is_empty()));

    let followed = follow(&http, &format!("{url}/v1/runs/{}/events?include=content", run.id)).await;
    assert_eq!(followed.len(), page.data.len(), "the stream has the events of the page");
    let Some(StreamEvent::EventExecutionCompleted(_)) = followed.last() else { panic!("the stream is typed") };

    let Err(Error::ErrorResponse(refused)) = client.read_run().run("run_unknown").send().await else {
        panic!("an unknown run is refused")
    };
    assert!(refused.status() == 404 && refused.into_inner().code == ErrorCode::NotFound, "a problem is typed");
    println!("{} events", followed.len());
}

/// The generated operation reads a page. A stream is read by hand; its messages are typed.
async fn follow(http: &reqwest::Client, address: &str) -> Vec<StreamEvent> {
    let response = http.get(address).header(ACCEPT, "text/event-stream").send().await.unwrap();
    let text = response.text().await.unwrap();
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}
