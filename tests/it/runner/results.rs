//! Results that are too large for the conversation: truncated, stored, readable, and never lost.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::core::blob::BlobHandle;
use toolgate::core::chat::{Media, Part};
use toolgate::core::id::RunId;
use toolgate::core::lifecycle::{Content, Lifecycle, LifecycleKind};
use toolgate::core::policy::Verdict;
use toolgate::core::run::{Event, Limits, ResumeError, Status};
use toolgate::core::tool::{
    CallFailure, FailureKind, McpTool, Outcome, StoredContent as Noted, StoredForm, Tool, ToolFilter, ToolOutput,
};
use toolgate::runner::{AgentRunner, Fork, Report, Request, ResultCheck, Resume, RunnerError, ServerResults};
use toolgate::stores::MemoryStore;

use super::media::JournalsOnly;
use super::world::{Given, Kept, World, answer_to, given_an_agent, on_every_store, results, say};
use crate::fakes::{Fault, tool};

/// A log of 20,000 lines: 418,894 bytes.
fn log() -> String {
    (1..=20_000).map(|line| format!("{line}: nothing to see\n")).collect()
}

fn handle_of(text: &str) -> BlobHandle {
    BlobHandle::for_bytes(text.as_bytes())
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

/// An agent with one tool, which returns this, and a model with these turns after the call.
fn reader(output: ToolOutput, then: &[Value]) -> Given {
    let mut turns = vec![call("mcp_files_read", json!({}))];
    turns.extend_from_slice(then);
    turns.push(say("{{last_result}}"));
    given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.answer("read", Outcome::Returned(output)))
        .whose_model_says(turns.into())
}

async fn journal(world: &World, run: &RunId) -> String {
    serde_json::to_string(&world.runner.journal(run).await.unwrap()).unwrap()
}

async fn kept(runner: &AgentRunner, handle: &BlobHandle) -> Option<Vec<u8>> {
    runner.blobs().unwrap().get(handle).await.unwrap().map(|blob| blob.into_bytes())
}

/// The stored results that the journal of a run refers to.
async fn kept_of(world: &World, run: &RunId) -> Vec<Noted> {
    let journal = world.runner.journal(run).await.unwrap();
    let of = |event: &Event| match event {
        Event::CallCompleted { outcome, .. } => outcome.stored().to_vec(),
        _ => Vec::new(),
    };
    journal.iter().flat_map(|recorded| of(&recorded.event)).collect()
}

/// The names in each toolset that the model saw.
async fn shown_tools(world: &World, run: &RunId) -> Vec<Vec<String>> {
    let journal = world.runner.journal(run).await.unwrap();
    let listed = journal.iter().filter_map(|recorded| match &recorded.event {
        Event::ToolsListed { toolset } => Some(toolset.iter().map(|tool: &Arc<Tool>| tool.name.to_string()).collect()),
        _ => None,
    });
    listed.collect()
}

async fn told(world: &World, run: &RunId) -> Vec<LifecycleKind> {
    let mut lifecycle = Lifecycle::new(run.clone(), Content::Include);
    let journal = world.runner.journal(run).await.unwrap();
    journal.iter().flat_map(|recorded| lifecycle.observe(recorded)).map(|event| event.fact).collect()
}

on_every_store! {
    async fn a_long_result_is_kept_whole_and_its_beginning_and_end_are_journaled(kept_in: Kept) {
        let world = reader(ToolOutput::text(log()), &[]).kept(kept_in).await;

        let report = world.run().await;

        let shown = answer_to(&report, "call_1_1");
        assert!(shown.starts_with("1: nothing to see\n2: nothing") && shown.ends_with("\n20000: nothing to see\n"));
        assert!((60_000..=65_536).contains(&shown.len()), "{}", shown.len());
        assert!(shown.contains(&format!("The whole is kept as {}; `result_read` reads", handle_of(&log()))));
        assert_eq!(kept(&world.runner, &handle_of(&log())).await, Some(log().into_bytes()));
        let bytes = log().len() as u64;
        let noted = Noted { handle: handle_of(&log()), media_type: "text/plain".into(), bytes, form: StoredForm::Text };
        assert_eq!(kept_of(&world, &report.run_id).await, [noted]);
        assert!(!journal(&world, &report.run_id).await.contains("10000: nothing"), "the middle is in the journal");
    }

    async fn another_process_and_a_fork_read_on_in_what_was_cut(kept_in: Kept) {
        let reads = call("result_read", json!({"handle": handle_of(&log()), "line": 10_000, "lines": 2}));
        let world = reader(ToolOutput::text(log()), &[call("ext_wait", json!({})), reads.clone()])
            .with_an_external_tool("wait")
            .kept(kept_in)
            .await;
        let waiting = world.run().await;
        assert_eq!(waiting.status, Status::Pending);

        let fork = world.runner.fork(&waiting.run_id, Fork::default()).await.unwrap().until_idle().await.unwrap();
        let other = world.another_process().await;
        for run in [waiting.run_id, fork.run_id] {
            let report = other.resume(&run, results([("call_2_1", json!("go"))])).await.unwrap();
            let said = report.output.unwrap().text;
            assert!(said.ends_with("10000: nothing to see\n10001: nothing to see\n"), "{said}");
            assert!(said.contains("lines 10000 to 10001. It continues at `offset` "), "{said}");
        }
        assert_eq!(world.store.shared().len(), 1, "the fork came to use what its source kept");
    }

    async fn a_process_that_dies_between_the_blob_and_the_fact_leaves_bytes_that_nothing_names(kept_in: Kept) {
        let given = given_an_agent()
            .with_a_harmless_tool("files", "read")
            .where_servers(|servers| servers.answer("read", Outcome::Returned(ToolOutput::text(log()))))
            .whose_model_says(json!([call("mcp_files_read", json!({})), say("Done.")]));
        let world = given.kept(kept_in).await;
        // The result is appended with the next intent. It was received, so the append is tried four times.
        let appends_before_the_result = 3;
        (0..4).for_each(|nth| world.store.fail_at(appends_before_the_result + nth, Fault::Refused));

        let execution = world.start().await;
        let run = execution.run.clone();
        execution.until_idle().await.unwrap_err();
        assert!(world.store.is_spent());
        assert_eq!(kept_of(&world, &run).await, []);
        assert_eq!(kept(&world.runner, &handle_of(&log())).await, Some(log().into_bytes()));

        let report = world.resume(&run, Resume::default()).await.unwrap();
        assert_eq!((report.status, kept_of(&world, &run).await.len()), (Status::Completed, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn the_reader_is_offered_behind_all_other_tools_once_there_is_something_to_read() {
    let reads = call("result_read", json!({"handle": handle_of(&log()), "search": "19999:"}));
    let world = reader(ToolOutput::text(log()), &[reads]).with_tools("zoo", &["zebra"]).ready().await;

    let report = world.run().await;

    let others = ["mcp_files_read", "mcp_zoo_zebra"];
    let with_it = ["mcp_files_read", "mcp_zoo_zebra", "result_read"];
    assert_eq!(shown_tools(&world, &report.run_id).await, [others.to_vec(), with_it.to_vec()]);
    assert_eq!(world.servers.listings(), 2, "each server was listed once");
    assert!(report.output.unwrap().text.contains("line 19999, byte "));
    assert_eq!((report.budget.mcp_calls, report.budget.tool_interactions), (1, 2), "it is no call of a server");
    let told: Vec<&str> = told(&world, &report.run_id).await.iter().map(LifecycleKind::name).collect();
    let of_calls: Vec<&str> = told.into_iter().filter(|name| name.starts_with("tool.")).collect();
    let expected = [
        "tool.tier.selected",
        "tool.mcp.executing",
        "tool.mcp.completed",
        "tool.tier.selected",
        "tool.builtin.executing",
        "tool.builtin.completed",
    ];
    assert_eq!(of_calls.into_iter().filter(|name| *name != "tool.checked").collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_short_result_stays_as_it_is_and_nothing_is_offered_to_read_it() {
    let world = reader(ToolOutput::text("short"), &[]).ready().await;
    let report = world.run().await;
    assert_eq!(answer_to(&report, "call_1_1"), "short");
    assert_eq!(shown_tools(&world, &report.run_id).await, [["mcp_files_read"]]);
}

#[tokio::test(start_paused = true)]
async fn a_run_reads_only_what_its_own_results_name() {
    let world = reader(ToolOutput::text(log()), &[]).ready().await;
    world.run().await;
    let other = log().replace("nothing", "something");
    let reads = call("result_read", json!({"handle": handle_of(&log())}));
    let second = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| {
            // A handle in text does not belong to the run, wherever the text is.
            let link = Part::Resource {
                uri: handle_of(&log()).to_string(),
                name: None,
                media_type: None,
                text: None,
                data: None,
            };
            let picture = Part::Image(Media::at("text/plain", handle_of(&log()).to_string()));
            let content = vec![Part::text(format!("{other} {}", handle_of(&log()))), link, picture];
            servers.answer("read", Outcome::Returned(ToolOutput { content, ..ToolOutput::default() }));
        })
        .whose_model_says(json!([call("mcp_files_read", json!({})), reads, say("Done.")]))
        .sharing(&world)
        .await;

    let report = second.run().await;

    let refused =
        format!("No result of this run is kept as {}. Copy the handle exactly from the result.", handle_of(&log()));
    assert_eq!(answer_to(&report, "call_2_1"), refused);
}

#[tokio::test(start_paused = true)]
async fn a_rule_may_deny_the_reader_and_a_deny_list_keeps_it_away() {
    let reads = call("result_read", json!({"handle": handle_of(&log())}));
    let world =
        reader(ToolOutput::text(log()), std::slice::from_ref(&reads)).whose_policy_says(Verdict::Deny, "result_*");
    let world = world.ready().await;
    let report = world.run().await;
    assert!(answer_to(&report, "call_2_1").contains("because it matters"));

    let filter = ToolFilter { deny: vec!["result_read".into()], ..ToolFilter::default() };
    let world = reader(ToolOutput::text(log()), &[reads]).that(|agent| agent.tools = filter).ready().await;
    let report = world.run().await;
    assert!(answer_to(&report, "call_2_1").starts_with("Tool does not exist: `result_read`"));
}

#[tokio::test(start_paused = true)]
async fn where_the_store_cannot_keep_it_the_result_is_cut_and_says_so_and_the_call_is_not_in_doubt() {
    let world = reader(ToolOutput::text(log()), &[]).ready().await;
    world.store.refuse_blobs(4);

    let report = world.run().await;

    assert_eq!(report.status, Status::Completed);
    let shown = answer_to(&report, "call_1_1");
    assert!(shown.contains("are left out here, and are not kept: the store could not be used."), "{shown}");
    assert_eq!(shown_tools(&world, &report.run_id).await, [["mcp_files_read"]]);
}

#[tokio::test]
async fn without_a_place_for_blobs_a_result_is_cut_and_says_so() {
    let given = reader(ToolOutput::text(log()), &[]);
    let runner = AgentRunner::builder()
        .store(Arc::new(JournalsOnly(MemoryStore::new())))
        .servers(given.servers())
        .agent(given.agent())
        .build()
        .unwrap();
    let report = runner.execute(Request::new("clerk", "Hello")).await.unwrap();
    let shown = answer_to(&report, "call_1_1");
    assert!(shown.contains("and are not kept: there is no place for large results here."), "{shown}");
    assert!(shown.len() <= 65_536 && shown.ends_with("20000: nothing to see\n"));
}

#[tokio::test(start_paused = true)]
async fn twenty_megabytes_that_came_twice_are_kept_once_and_read_to_the_end() {
    let text: String = (0..1_000_000).map(|line| format!("{line:019}\n")).collect();
    let output = ToolOutput { structured: Some(json!({"result": text})), ..ToolOutput::text(text.clone()) };
    let reads = call("result_read", json!({"handle": handle_of(&text), "line": 1_000_000}));
    let world = reader(output, &[reads]).ready().await;

    let report = world.run().await;

    let noted = kept_of(&world, &report.run_id).await;
    assert_eq!((noted.len(), noted[0].bytes, noted[0].form), (1, 20_000_000, StoredForm::Wrapped));
    assert!(journal(&world, &report.run_id).await.len() < 200_000);
    let said = report.output.unwrap().text;
    assert!(said.contains("This is the end.") && said.ends_with("0000000000000999999\n"), "{said}");
    let told = told(&world, &report.run_id).await;
    assert!(
        told.iter()
            .any(|fact| matches!(fact, LifecycleKind::McpCompleted { end, .. } if end.result_bytes == 20_000_000)),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_picture_that_the_store_could_not_keep_is_left_out_of_the_journal_and_said_to_be() {
    let content = vec![Part::text("the cat:"), Part::Image(Media::inline("image/png", &[7; 9000]))];
    let world = reader(ToolOutput { content, ..ToolOutput::default() }, &[]).ready().await;
    world.store.refuse_blobs(4);

    let report = world.run().await;

    let shown = answer_to(&report, "call_1_1");
    assert!(shown.ends_with("image/png of 9000 bytes is not kept: the store could not be used."), "{shown}");
    assert!(journal(&world, &report.run_id).await.len() < 9000, "nor are its bytes journaled");
}

#[tokio::test(start_paused = true)]
async fn code_that_panics_while_something_is_read_ends_the_call_and_not_its_run() {
    let reads = call("result_read", json!({"handle": handle_of(&log())}));
    let world = reader(ToolOutput::text(log()), &[reads]).ready().await;
    world.store.panic_in_reads();

    let report = world.run().await;

    assert_eq!(report.status, Status::Completed);
    let told = answer_to(&report, "call_2_1");
    assert_eq!(told, "the code that made this call panicked; this is a bug in toolgate");
}

#[tokio::test]
async fn what_is_kept_is_read_one_at_a_time_however_many_runs_ask() {
    let reads = call("result_read", json!({"handle": handle_of(&log())}));
    let world = reader(ToolOutput::text(log()), &[reads]).ready().await;

    let reports = futures::future::join_all((0..4).map(|_| world.run())).await;

    assert!(reports.iter().all(|report| report.status == Status::Completed));
    assert_eq!(world.store.most_reads_at_once(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_limit_is_the_agent_s_unless_the_server_has_its_own() {
    let agents = Limits { max_result_bytes: 4096, ..Limits::default() };
    let length = async |given: Given| answer_to(&given.ready().await.run().await, "call_1_1").len();
    let given = || reader(ToolOutput::text(log()), &[]).within(agents.clone());
    assert!((3000..=4096).contains(&length(given()).await));
    let servers = ServerResults { max_bytes: Some(20_000), ..ServerResults::default() };
    assert!((18_000..=20_000).contains(&length(given().with_the_results_of("files", servers)).await));
    let nothing = Limits { max_result_bytes: 0, ..Limits::default() };
    assert!((1000..=2048).contains(&length(given().within(nothing)).await));
}

#[tokio::test(start_paused = true)]
async fn the_message_of_a_failed_call_is_bounded_as_well() {
    let failed = Outcome::failed(FailureKind::Refused, log());
    let world =
        reader(ToolOutput::default(), &[]).where_servers(|servers| servers.answer("read", failed)).ready().await;
    let report = world.run().await;
    let journal = world.runner.journal(&report.run_id).await.unwrap();
    let message = journal.iter().find_map(|recorded| match &recorded.event {
        Event::CallCompleted { outcome, .. } => match &**outcome {
            Outcome::Failed(CallFailure { message, .. }) => Some(message.clone()),
            _ => None,
        },
        _ => None,
    });
    let message = message.unwrap();
    assert!(message.len() <= 65_536 && message.contains("are not kept: messages of failures never are."));
}

fn orders() -> Given {
    given_an_agent()
        .with_an_external_tool("orders")
        .whose_model_says(json!([call("ext_orders", json!({})), say("Done.")]))
}

#[tokio::test(start_paused = true)]
async fn a_large_result_of_the_caller_is_kept_and_the_same_resume_is_known_again() {
    let rows: Value = (0..10_000).map(|row| json!({"row": row})).collect();
    let world = orders().ready().await;
    let run = world.run().await.run_id;

    let report = world.resume(&run, results([("call_1_1", rows.clone())])).await.unwrap();

    let noted = kept_of(&world, &run).await;
    assert_eq!((report.status, noted.len(), noted[0].form), (Status::Completed, 1, StoredForm::Both));
    assert_eq!(kept(&world.runner, &noted[0].handle).await, Some(rows.to_string().into_bytes()));
    assert!(!journal(&world, &run).await.contains(r#"{\"row\":5000}"#));
    let other = world.another_process().await;
    let again = other.resume(&run, results([("call_1_1", rows)])).await.unwrap();
    assert_eq!(again.version, report.version, "nothing was written");
}

#[tokio::test(start_paused = true)]
async fn a_refused_result_of_the_caller_leaves_nothing_behind_in_the_store() {
    let world = orders().ready().await;
    let run = world.run().await.run_id;
    let refused = world.resume(&run, results([("unknown", json!(log()))])).await.unwrap_err();
    let RunnerError::Refused(refusals) = refused else { panic!("{refused}") };
    assert!(matches!(refusals[..], [ResumeError::UnknownCall { .. }]), "{refusals:?}");
    assert_eq!(kept(&world.runner, &handle_of(&log())).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_result_of_the_caller_that_cannot_be_kept_is_not_taken() {
    let world = orders().ready().await;
    let run = world.run().await.run_id;
    world.store.refuse_blobs(4);
    world.resume(&run, results([("call_1_1", json!(log()))])).await.unwrap_err();
    assert_eq!(world.runner.report(&run).await.unwrap().status, Status::Pending);
    let report = world.resume(&run, results([("call_1_1", json!(log()))])).await.unwrap();
    assert_eq!((report.status, kept_of(&world, &run).await.len()), (Status::Completed, 1));
}

/// A tool with an output schema, and its result.
async fn checked(check: ResultCheck, output: ToolOutput) -> (Report, Vec<LifecycleKind>) {
    let schema = json!({"type": "object", "required": ["total"], "properties": {"total": {"type": "number"}}});
    let world = reader(output, &[])
        .where_servers(|servers| servers.tool_access("files", McpTool { output_schema: Some(schema), ..tool("read") }))
        .with_the_results_of("files", ServerResults { check, ..ServerResults::default() })
        .that_checks_arguments()
        .ready()
        .await;
    let report = world.run().await;
    let told = told(&world, &report.run_id).await;
    (report, told)
}

fn problems(told: &[LifecycleKind]) -> Vec<String> {
    let of = |fact: &LifecycleKind| match fact {
        LifecycleKind::McpCompleted { problems, .. } => {
            problems.iter().map(|problem| problem.message.clone()).collect()
        }
        _ => Vec::new(),
    };
    told.iter().flat_map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn a_structured_result_that_does_not_fit_is_kept_and_told() {
    let misfit = || ToolOutput::from_value(json!({"total": "seven"}));
    let (report, told) = checked(ResultCheck::Warn, misfit()).await;
    let answer = answer_to(&report, "call_1_1");
    assert!(
        answer.starts_with(
            r#"{"total":"seven"} | [toolgate] The structured result does not fit the tool's output schema:"#
        )
    );
    assert!(answer.contains(r#""path":"/total""#), "{answer}");
    assert_eq!(problems(&told), [r#"is not of type "number""#]);

    let (report, told) = checked(ResultCheck::Fail, misfit()).await;
    assert!(super::world::said(&report).iter().any(|line| line.starts_with("user: call_1_1 failed -> ")));
    assert_eq!(problems(&told).len(), 1);

    let (report, told) = checked(ResultCheck::Off, misfit()).await;
    assert_eq!((answer_to(&report, "call_1_1"), problems(&told).len()), (r#"{"total":"seven"}"#.to_owned(), 0));
}

#[tokio::test(start_paused = true)]
async fn a_structured_result_that_fits_and_an_error_are_not_complained_about_and_a_missing_one_is() {
    let (_, told) = checked(ResultCheck::Warn, ToolOutput::from_value(json!({"total": 7}))).await;
    assert_eq!(problems(&told), Vec::<String>::new());
    let (report, told) = checked(ResultCheck::Fail, ToolOutput::error("no such file")).await;
    assert_eq!((answer_to(&report, "call_1_1"), problems(&told).len()), ("no such file".to_owned(), 0));
    let (_, told) = checked(ResultCheck::Warn, ToolOutput::text("7")).await;
    assert_eq!(problems(&told), ["the tool declares an output schema, and returned no structured result"]);
}
