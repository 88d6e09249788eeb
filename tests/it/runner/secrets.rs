//! Known secrets in prompts, results, replies and answers (FEATURES 3.47).

use serde_json::{Value, json};
use toolgate::core::policy::Verdict;
use toolgate::core::run::{Channel, Decision, DecisionKind, ElicitationAnswer, Status};
use toolgate::core::tool::{Arguments, ElicitationResponse, Outcome, ToolOutput};
use toolgate::runner::{Answer, Request, Resume, RunnerError};

use super::world::{Given, World, given_an_agent, say};

const SECRET: &str = "sk-canary-0123456789";

fn a_clerk(turns: Value) -> Given {
    given_an_agent().with_tools("files", &["read"]).whose_model_says(turns).that_knows_the_secret(SECRET)
}

async fn journal_text(world: &World, run: &toolgate::core::id::RunId) -> String {
    serde_json::to_string(&world.runner.journal(run).await.unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn row_3_47_a_secret_in_a_prompt_or_a_result_enters_no_journal() {
    let turns = json!([
        {"calls": [{"name": "mcp_files_read"}, {"name": "ext_ask"}]},
        {"say": "Your key is sk-canary-0123456789."},
    ]);
    let world = a_clerk(turns).with_an_external_tool("ask").ready().await;
    let mut output = ToolOutput::text(format!("KEY={SECRET}"));
    output.structured = Some(json!({"env": {"KEY": SECRET}}));
    world.servers.answer("read", Outcome::Returned(output));

    let request = Request { metadata: json!({"note": SECRET}).as_object().unwrap().clone(), ..world.request() };
    let request = Request { input: toolgate::core::chat::Message::user(format!("Is {SECRET} valid?")), ..request };
    let waiting = world.runner.execute(request).await.unwrap();
    let call = waiting.pending[0].call_id().unwrap().clone();
    let answers = Resume::new().output(call.clone(), json!({"key": SECRET, "others": [SECRET]}));
    let report = world.runner.resume(&waiting.run_id, answers.clone()).await.unwrap();
    let again = world.runner.resume(&waiting.run_id, answers).await.unwrap();

    assert_eq!((report.status, again.version), (Status::Completed, report.version));
    assert_eq!(report.output.unwrap().text, "Your key is [redacted].");
    let text = journal_text(&world, &report.run_id).await;
    assert!(!text.contains("canary"), "{text}");
    assert!(text.contains("Is [redacted] valid?") && text.contains("KEY=[redacted]"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn row_3_47_a_call_with_a_secret_in_its_arguments_is_rejected() {
    let turns = json!([{"calls": [{"name": "mcp_files_read", "arguments": {"path": SECRET}}]}, say("Done.")]);
    let world = a_clerk(turns).ready().await;

    let report = world.run().await;

    let text = journal_text(&world, &report.run_id).await;
    assert_eq!((report.status, world.servers.calls().len()), (Status::Completed, 0));
    assert!(!text.contains("canary") && text.contains("withheld: they contained a secret"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn row_3_47_an_answer_that_would_be_sent_on_with_a_secret_is_refused() {
    let turns = json!([{"calls": [{"name": "mcp_files_read", "arguments": {"path": "a"}}]}, say("Done.")]);
    let world = a_clerk(turns).whose_policy_says(Verdict::Ask, "mcp_files_read").ready().await;
    let waiting = world.run().await;
    let call = waiting.pending[0].call_id().unwrap().clone();

    let edited = Some(Arguments::from_value(json!({"path": SECRET})));
    let decision = Decision { edited_arguments: edited, ..Decision::new(DecisionKind::Approve, "ada") };
    let refused = world.runner.resume(&waiting.run_id, Resume::new().with(call.clone(), decision)).await;
    let Err(RunnerError::Refused(refusals)) = refused else { panic!("{refused:?}") };
    assert!(refusals[0].to_string().contains("contains a secret of the configuration"), "{refusals:?}");

    let form = ElicitationResponse::accept(json!({"key": SECRET}).as_object().unwrap().clone());
    let given = ElicitationAnswer {
        reactions: [("q".to_owned(), form)].into(),
        by: "ada".into(),
        via: Channel::Library,
        repeat: false,
    };
    let input = toolgate::core::run::Input::Resume(Resume::new().with(call.clone(), Answer::from(given)));
    let secrets =
        toolgate::core::redact::SecretsBuilder::of_values([SECRET]).build(toolgate::core::redact::Style::MESSAGE);
    assert_eq!(input.calls_with_secrets(&secrets), [call]);
}
