//! `toolgate runs dataset`: runs as rows of a dataset, for evaluators.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use super::selection::RunSelection;
use crate::app::{App, identities, redaction};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::core::chat::{Message, Part, Usage};
use crate::core::error::{ErrorCode, Failure};
use crate::core::id::{AgentName, CallId, RunId, SessionId};
use crate::core::lifecycle::{optional_failure, optional_output, usage};
use crate::core::run::{Event, JournalEntry, Output as RunOutput, Run, Status};
use crate::core::timestamp::millis;
use crate::core::tool::{Arguments, Tool, ToolName};
use crate::ports::{Feedback, RunRow};
use crate::runner::Report;
use crate::telemetry::spans::{Projector, SpanContent};

const EXAMPLES: &str = "\
Examples:
  toolgate runs dataset --agent support --status completed > runs.jsonl
  toolgate runs dataset | jq 'select(any(.feedback[]; .name == \"quality\" and .score < 0.5))'";

/// Print runs as a dataset: one JSON object per line, with input, tools, tool calls, output and feedback
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Dataset {
    #[command(flatten)]
    selection: RunSelection,

    /// The maximum number of runs, newest first [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,

    #[command(flatten)]
    config: ConfigFlag,
}

/// A run. Messages have the form of the journal.
#[derive(Serialize)]
struct DatasetRow<'a> {
    run_id: &'a RunId,
    session_id: &'a SessionId,
    agent: &'a AgentName,
    status: Status,
    #[serde(serialize_with = "millis")]
    created_at: Timestamp,
    metadata: &'a Map<String, Value>,
    /// The system prompt.
    instructions: String,
    /// The conversation that the run began with.
    input: Vec<Arc<Message>>,
    tools: Vec<ToolView<'a>>,
    tool_calls: Vec<ToolCallView<'a>>,
    #[serde(serialize_with = "optional_output")]
    output: Option<RunOutput>,
    /// Why the run did not complete.
    #[serde(serialize_with = "optional_failure")]
    error: Option<Failure>,
    #[serde(serialize_with = "usage")]
    usage: Usage,
    feedback: Vec<Feedback>,
}

/// A tool as the model saw it.
#[derive(Serialize)]
struct ToolView<'a> {
    name: &'a ToolName,
    description: &'a str,
    input_schema: &'a Value,
}

/// A call, with the result as the model read it.
#[derive(Serialize)]
struct ToolCallView<'a> {
    id: &'a CallId,
    name: &'a str,
    arguments: &'a Arguments,
    /// `null` while the call is pending.
    result: Option<&'a [Part]>,
    /// Whether the call failed or did not run.
    is_error: bool,
}

impl Dataset {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let printed = self.print(&app, out).await;
        setup::close(app, out).await;
        printed
    }

    /// Continues after a run that cannot be read.
    async fn print(&self, app: &App, out: &mut Output) -> Result<Exit, CliError> {
        setup::warn_of_unknown(self.selection.agent.as_deref(), &app.settings, out);
        let rows = app.operator().runs(self.selection.filter(usize::MAX)).await?;
        let mut exit = Exit::Done;
        let selected = rows.iter().filter(|row| self.selection.admits(row));
        for row in selected.take(self.limit.map_or(usize::MAX, |limit| limit as usize)) {
            match line(app, row).await {
                Ok(line) => out.json(&line),
                Err(error) => {
                    out.note(format!("error: {}: {error}", row.id));
                    exit = Exit::Failed;
                }
            }
        }
        Ok(exit)
    }
}

/// The line of a run, without secrets, as in spans.
async fn line(app: &App, row: &RunRow) -> Result<Value, CliError> {
    let journal = app.runner.journal_with_conversation(&row.id).await?;
    let (report, feedback) = (app.runner.report(&row.id).await?, app.runner.feedback(&row.id).await?);
    let projector = Projector::new(row.id.clone(), SpanContent::default(), identities(&app.models));
    let redaction = projector.redacting(redaction(&app.settings)?).redaction_after(&journal);
    let json = serde_json::to_string(&DatasetRow::new(row, &journal, &report, feedback));
    let clean = json.and_then(|json| serde_json::from_str(&redaction.text(json)));
    clean.map_err(|error| CliError::new(ErrorCode::Internal, format!("cannot be written as JSON: {error}")))
}

impl<'a> DatasetRow<'a> {
    fn new(row: &'a RunRow, journal: &'a [JournalEntry], report: &'a Report, feedback: Vec<Feedback>) -> Self {
        let begun = Run::replay(journal.first().map(|first| &first.event)).ok().flatten();
        let input = begun.as_ref().map(Run::messages).unwrap_or_default();
        let listed = |entry: &'a JournalEntry| {
            if let Event::ToolsListed { toolset } = &entry.event { Some(toolset) } else { None }
        };
        let tools = journal.iter().rev().find_map(listed).into_iter().flat_map(|toolset| toolset.iter());
        Self {
            run_id: &row.id,
            session_id: &row.session,
            agent: &row.agent,
            status: row.status,
            created_at: row.created_at,
            metadata: &row.metadata,
            instructions: begun.map(|begun| begun.started().spec.system.clone()).unwrap_or_default(),
            tools: tools.map(|tool| ToolView::new(tool)).collect(),
            tool_calls: tool_calls(report.messages.get(input.len()..).unwrap_or_default()),
            input,
            output: report.output.clone(),
            error: report.error.clone(),
            usage: report.budget.usage,
            feedback,
        }
    }
}

/// The calls in messages.
fn tool_calls(messages: &[Arc<Message>]) -> Vec<ToolCallView<'_>> {
    let parts = || messages.iter().flat_map(|message| &message.content);
    let results: BTreeMap<_, _> =
        parts().filter_map(Part::tool_result).map(|(id, content, is_error)| (id, (content, is_error))).collect();
    let calls = parts().filter_map(Part::tool_use).map(|(id, name, arguments)| {
        let result = results.get(id).copied();
        let (result, is_error) = (result.map(|(content, _)| content), result.is_some_and(|(_, is_error)| is_error));
        ToolCallView { id, name, arguments, result, is_error }
    });
    calls.collect()
}

impl<'a> ToolView<'a> {
    fn new(tool: &'a Tool) -> Self {
        Self { name: &tool.name, description: &tool.description, input_schema: &tool.input_schema }
    }
}
