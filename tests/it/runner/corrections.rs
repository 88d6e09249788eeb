//! Correctable errors of the model: it reads what is wrong, and has a few attempts.

use serde_json::json;
use toolgate::core::error::ErrorCode;
use toolgate::core::id::CallId;
use toolgate::core::lifecycle::{Content, Lifecycle};
use toolgate::core::policy::Verdict;
use toolgate::core::run::{Limits, OnToolError, PendingItem, RunWarning, Status};
use toolgate::core::tool::{FailureKind, McpTool, Outcome, ToolOutput, Validation};
use toolgate::runner::{Answer, Fork, Resume, ServerResults};

use super::world::{Given, World, answer_to, given_an_agent, said, say};
use crate::fakes::tool;

fn reader() -> Given {
    let schema = json!({"type": "object", "required": ["path"]});
    given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.tool_access("files", McpTool { input_schema: schema, ..tool("read") }))
        .that_checks_arguments()
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_exist_is_answered_and_the_run_goes_on() {
    let world = reader()
        .whose_model_says(json!([{"calls": [{"name": "rm"}]}, {"expect": {"contains": "`rm`"}, "say": "Sorry."}]))
        .ready()
        .await;

    let report = world.run().await;

    let told = "Tool does not exist: `rm`. Call one of the tools you were given.";
    assert_eq!((report.status, answer_to(&report, "call_1_1")), (Status::Completed, told.into()));
}

#[tokio::test(start_paused = true)]
async fn invalid_and_malformed_arguments_are_told_and_mended() {
    let world = reader()
        .whose_model_says(json!([
            {"calls": [{"name": "mcp_files_read"}, {"name": "mcp_files_read", "arguments": "{\"pa"}]},
            {"expect": {"contains": "is missing"}, "calls": [{"name": "mcp_files_read", "arguments": {"path": "a"}}]},
            say("Done."),
        ]))
        .ready()
        .await;

    let report = world.run().await;

    assert!(answer_to(&report, "call_1_1").contains("\"rule\":\"required\""), "{:#?}", said(&report));
    assert!(answer_to(&report, "call_1_2").contains("not a JSON object: {\\\"pa"), "{:#?}", said(&report));
    assert_eq!(world.servers.calls(), ["call_2_1"]);
    assert_eq!((report.status, report.budget.corrections), (Status::Completed, 0));
}

#[tokio::test(start_paused = true)]
async fn section_2_row_6_advisory_problems_of_arguments_are_recorded_and_the_call_goes_on() {
    let advisory = ServerResults { validation: Validation::Advisory, ..ServerResults::default() };
    let turns =
        json!([{"calls": [{"name": "mcp_files_read"}, {"name": "mcp_files_read", "arguments": "{"}]}, say("Done.")]);
    let given = reader().with_the_results_of("files", advisory).whose_model_says(turns.clone());
    let world = given.ready().await;

    let report = world.run().await;

    assert_eq!((report.status, world.servers.calls()), (Status::Completed, vec!["call_1_1".to_owned()]));
    assert!(answer_to(&report, "call_1_2").contains("not a JSON object"), "no server can judge these");
    let journal = world.runner.journal(&report.run_id).await.unwrap();
    let mut lifecycle = Lifecycle::new(report.run_id.clone(), Content::Include);
    let events = journal.iter().flat_map(|entry| lifecycle.observe(entry)).collect::<Vec<_>>();
    let failed = events.iter().map(|event| serde_json::to_value(event).unwrap());
    let failed: Vec<_> = failed.filter(|event| event["type"] == "validation.failed").collect();
    let told = |event: &serde_json::Value| (event["call_id"].clone(), event["advisory"].clone());
    assert_eq!(
        failed.iter().map(told).collect::<Vec<_>>(),
        [(json!("call_1_1"), json!(true)), (json!("call_1_2"), json!(false))]
    );

    // An approver sees the problems.
    let asking =
        reader().with_the_results_of("files", advisory).whose_policy_says(Verdict::Ask, "*").whose_model_says(turns);
    let waiting = asking.ready().await.run().await;
    let [PendingItem::Approval(item)] = &waiting.pending[..] else { panic!("{:?}", waiting.pending) };
    assert_eq!(item.problems.iter().map(|problem| problem.rule.as_str()).collect::<Vec<_>>(), ["required"]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_mends_nothing_is_stopped_after_its_corrections() {
    let turns: Vec<_> = (0..5).map(|_| json!({"calls": [{"name": "mcp_files_read"}]})).collect();
    let limits = Limits { max_corrections: 2, ..Limits::default() };
    let world = reader().within(limits).whose_model_says(json!(turns)).ready().await;

    let report = world.run().await;

    assert_eq!((report.error.unwrap().code, report.budget.iterations), (ErrorCode::ToolFailed, 3));
}

#[tokio::test(start_paused = true)]
async fn an_invalid_answer_is_told_costs_an_interaction_and_is_mended() {
    let world = given_an_agent()
        .that_checks_answers()
        .whose_model_says(json!([say("forty-two"), {"expect": {"contains": "not JSON"}, "say": "42"}]))
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!(report.output.unwrap().value, Some(json!(42)));
    assert_eq!((report.status, report.tool_interactions), (Status::Completed, 1));
}

#[tokio::test(start_paused = true)]
async fn a_model_whose_answer_never_becomes_valid_fails_the_run() {
    let turns: Vec<_> = (0..9).map(|_| say("forty-two")).collect();
    let world = given_an_agent().that_checks_answers().whose_model_says(json!(turns)).ready().await;

    let report = world.run().await;

    assert_eq!((report.error.unwrap().code, report.budget.iterations), (ErrorCode::Validation, 4));
}

/// The lifecycle events of a run with this name, as JSON.
async fn told(world: &World, run: &toolgate::core::id::RunId, name: &str) -> Vec<serde_json::Value> {
    let mut lifecycle = Lifecycle::new(run.clone(), Content::Include);
    let journal = world.runner.journal(run).await.unwrap();
    let events = journal.iter().flat_map(|recorded| lifecycle.observe(recorded));
    events.filter(|event| event.name() == name).map(|event| serde_json::to_value(event).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_are_recorded_problem_by_problem_and_quote_no_secret() {
    let schema = json!({
        "type": "object",
        "required": ["path"],
        "properties": {
            "lines": {"type": "integer"},
            "options": {"type": "object", "properties": {"depth": {"type": "integer"}}},
            "pin": {"type": "string", "format": "password"},
        },
    });
    let arguments = json!({"lines": "ten", "options": {"depth": true}, "pin": 424_242});
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.tool_access("files", McpTool { input_schema: schema, ..tool("read") }))
        .that_checks_by_schema()
        .whose_model_says(json!([
            {"calls": [{"name": "mcp_files_read", "arguments": arguments}, {"name": "mcp_files_read", "arguments": "{\"pin\": 424242"}]},
            say("Done."),
        ]))
        .ready()
        .await;

    let report = world.run().await;

    let failed = told(&world, &report.run_id, "validation.failed").await;
    let problems = failed[0]["problems"].as_array().unwrap();
    let found: Vec<(&str, &str)> =
        problems.iter().map(|it| (it["path"].as_str().unwrap(), it["rule"].as_str().unwrap())).collect();
    assert_eq!(found.len(), 4, "{problems:#?}");
    for expected in [("", "required"), ("/lines", "type"), ("/options/depth", "type"), ("/pin", "type")] {
        assert!(found.contains(&expected), "{expected:?} in {found:?}");
    }
    let lines = problems.iter().find(|it| it["path"] == "/lines").unwrap();
    assert_eq!(lines["received"], "ten");
    let journal = world.runner.journal(&report.run_id).await.unwrap();
    let checked: Vec<String> = journal
        .iter()
        .filter(|recorded| recorded.event.name() == "tool.checked")
        .map(|recorded| serde_json::to_string(recorded).unwrap())
        .collect();
    assert_eq!(checked.len(), 2);
    assert!(checked.iter().all(|fact| fact.contains("\"problems\":[{") && !fact.contains("424242")), "{checked:#?}");
    assert!(!serde_json::to_string(&failed).unwrap().contains("424242"), "{failed:#?}");
}

#[tokio::test(start_paused = true)]
async fn row_2_44_exhaustion_is_an_event_of_every_later_turn_the_last_word_included() {
    let look = json!({"calls": [{"name": "mcp_files_read"}]});
    let limits = Limits { max_tool_interactions: 1, max_iterations: 3, max_corrections: 9, ..Limits::default() };
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .within(limits)
        .whose_model_says(json!([look, look, look, say("Enough.")]))
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!(report.status, Status::Incomplete);
    let exhausted = told(&world, &report.run_id, "tool.budget.exhausted").await;
    let turns: Vec<u64> = exhausted.iter().map(|event| event["iteration"].as_u64().unwrap()).collect();
    assert_eq!(turns, [2, 3, 4]);
    assert!(exhausted.iter().all(|event| event["max"] == 1), "{exhausted:#?}");
}

fn a_reader_that_fails_on_errors(turns: serde_json::Value) -> Given {
    given_an_agent()
        .with_tools("files", &["read", "list"])
        .with_an_external_tool("order")
        .that(|agent| agent.rules.on_tool_error = OnToolError::Fail)
        .whose_model_says(turns)
}

#[tokio::test(start_paused = true)]
async fn row_3_32_a_tool_error_is_read_by_the_model_unless_the_agent_fails_on_it() {
    let turns =
        json!([{"calls": [{"name": "mcp_files_read"}]}, {"expect": {"contains": "no such file"}, "say": "Sorry."}]);
    let broken = || Outcome::Returned(ToolOutput::error("no such file"));
    let given = given_an_agent().with_tools("files", &["read"]).whose_model_says(turns.clone());
    let reporting = given.where_servers(|servers| servers.answer("read", broken())).ready().await;
    let failing = a_reader_that_fails_on_errors(turns);
    let failing = failing.where_servers(|servers| servers.answer("read", broken())).ready().await;

    assert_eq!(reporting.run().await.status, Status::Completed);
    let report = failing.run().await;

    let error = report.error.clone().unwrap();
    assert_eq!((report.status, error.code, error.retryable), (Status::Failed, ErrorCode::ToolFailed, true));
    assert_eq!(error.message, "tool `mcp_files_read` reported an error to call call_1_1; see `tool.completed`");
    assert_eq!((answer_to(&report, "call_1_1"), report.budget.iterations), ("no such file".into(), 1));
}

#[tokio::test(start_paused = true)]
async fn row_3_32_the_other_calls_of_the_tier_settle_before_the_run_fails() {
    let world = a_reader_that_fails_on_errors(json!([
        {"calls": [{"name": "mcp_files_read"}, {"name": "mcp_files_list"}]},
    ]))
    .where_servers(|servers| {
        servers.answer("read", Outcome::failed(FailureKind::Timeout, "no answer in 60 s"));
        servers.take_ms("list", 500);
    })
    .ready()
    .await;

    let report = world.run().await;

    let error = report.error.clone().unwrap();
    assert_eq!(
        error.message,
        "call call_1_1 of tool `mcp_files_read` failed: no answer in 60 s. The call may or may not have taken effect; \
         check before you call it again."
    );
    assert_eq!(answer_to(&report, "call_1_2"), "list done");
}

#[tokio::test(start_paused = true)]
async fn row_3_32_an_error_of_the_application_fails_the_run_and_a_fork_lets_the_model_read_it() {
    let world = a_reader_that_fails_on_errors(json!([
        {"calls": [{"name": "ext_order"}]},
        {"expect": {"contains": "out of stock"}, "say": "Sorry."},
    ]))
    .ready()
    .await;
    let waiting = world.run().await;

    let answers = Resume::from_iter([(CallId::from("call_1_1"), Answer::error("out of stock"))]);
    let source = world.resume(&waiting.run_id, answers).await.unwrap();
    assert_eq!(source.error.as_ref().unwrap().code, ErrorCode::ToolFailed);
    let copy = world.runner.fork(&source.run_id, Fork::default()).await.unwrap().until_idle().await.unwrap();

    assert_eq!((copy.status, answer_to(&copy, "call_1_1")), (Status::Completed, "out of stock".into()));
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_after_a_tool_is_asked_for_once_more() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .whose_model_says(json!([
            {"calls": [{"name": "mcp_files_read"}]},
            {"reasoning": "They are there."},
            {"expect": {"contains": "Your last reply was empty"}, "say": "Three orders."},
        ]))
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!((report.output.unwrap().text.as_str(), report.warnings.len()), ("Three orders.", 0));
    let problems = told(&world, &report.run_id, "validation.failed").await;
    assert_eq!(problems[0]["problems"][0]["rule"], "empty");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stays_empty_completes_the_run_with_a_warning() {
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}, {"say": ""}, {"say": " "}]))
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!((report.status, report.warnings.clone()), (Status::Completed, vec![RunWarning::EmptyAnswer]));
    let completed = told(&world, &report.run_id, "execution.completed").await;
    assert_eq!(
        completed[0]["warnings"],
        json!([{"code": "empty_answer", "servers": [], "limit": null, "restart": null}])
    );
}
