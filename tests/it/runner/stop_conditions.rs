//! Row 4.10: the builtin tool `finish`, whose arguments are the answer of the run, and the stop condition of an agent.

use serde_json::json;
use toolgate::core::policy::StopCondition;
use toolgate::core::run::Status;

use super::world::{answer_to, given_an_agent, say};

#[tokio::test(start_paused = true)]
async fn row_4_10_the_arguments_of_finish_are_the_answer_of_the_run() {
    let finish = |arguments: serde_json::Value| json!({"name": "finish", "arguments": arguments});
    let read = json!({"name": "mcp_files_read"});
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .that(|agent| {
            agent.rules.output_schema = Some(json!({
                "type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]
            }));
            agent.rules.finish_with = vec!["finish".into()];
        })
        .that_checks_by_schema()
        .whose_model_says(json!([
            {"calls": [finish(json!({"total": 1})), read]},
            {"expect": {"contains": "call `finish` alone"}, "calls": [finish(json!({"total": "three"}))]},
            {"expect": {"contains": "integer"}, "calls": [finish(json!({"total": 3}))]},
        ]))
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!(report.status, Status::Completed, "{:?}", report.error);
    let output = report.output.clone().unwrap();
    assert_eq!((output.text.as_str(), output.value), (r#"{"total":3}"#, Some(json!({"total": 3}))));
    assert_eq!(answer_to(&report, "call_3_1"), "The answer was received.");
}

#[tokio::test(start_paused = true)]
async fn row_4_10_finish_exists_only_for_answers_that_are_objects() {
    for schema in [None, Some(json!({"type": "array"}))] {
        let world = given_an_agent()
            .that(|agent| {
                agent.rules.output_schema = schema;
                agent.rules.finish_with = vec!["finish".into()];
            })
            .whose_model_says(json!([
                {"calls": [{"name": "finish"}]},
                {"expect": {"contains": "Tool does not exist"}, "say": "[]"},
            ]))
            .ready()
            .await;
        assert_eq!(world.run().await.status, Status::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn row_4_10_a_stop_condition_ends_the_loop_with_an_answer() {
    let look = json!({"calls": [{"name": "mcp_files_read"}]});
    let world = given_an_agent()
        .with_tools("files", &["read"])
        .that(|agent| agent.rules.stop_when = StopCondition::parse("run.mcp_calls >= 2").ok())
        .whose_model_says(json!([look, look, say("Enough.")]))
        .ready()
        .await;

    let report = world.run().await;

    assert_eq!((report.status, report.budget.mcp_calls), (Status::Completed, 2));
    assert_eq!(report.output.unwrap().text, "Enough.");
}
