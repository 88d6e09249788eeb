//! Recording of a journal: the replies, calls and results of a run, without times, run ids and secrets.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate_core::chat::{Part, Reply, Stop, Usage};
use toolgate_core::redact::Secrets;
use toolgate_core::run::{
    AttemptEnd, CallHistory, CallVerdict, DecisionKind, Ending, Event, History, JournalEntry, Started, Status,
};
use toolgate_core::tool::{Arguments, Choice, ElicitationResponses, Origin, Outcome, Tool, ToolOutput, Toolset};

use super::expected::Expected;
use super::file::{
    CallOrder, RecordedCall, RecordedDecision, RecordedEnd, RecordedResult, RecordedServer, RecordedTool, RecordedTurn,
    Recording, VERSION,
};
use super::normalise::Normaliser;

/// The facts about a run that its journal does not have.
#[derive(Clone, Debug, Default)]
pub struct RecordingContext {
    /// How the servers are reached, by their ids. A server without an entry is one of the configuration.
    pub servers: BTreeMap<String, RecordedServer>,
    /// The secrets that the recording must not have.
    pub secrets: Secrets,
}

/// Why a run cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrecordable {
    /// The journal has no first event.
    #[error("the run has no events")]
    Empty,
    #[error("the run has not ended, and only a run that has ended can be recorded")]
    NotEnded,
    /// The run continues the conversation of an earlier one, so that its own journal has only a part of the transcript.
    #[error("the run continues a conversation; only a run that begins one can be recorded")]
    Continues,
    /// Its form would be lost with its secrets.
    #[error(
        "it cannot be written without its secrets: a tool has a secret argument with the name of a member of recordings"
    )]
    Unredacted,
}

impl Recording {
    /// The recording of a run that has ended.
    ///
    /// # Errors
    /// `Unrecordable` for a run that has not ended, or whose journal has only a part of its conversation.
    pub fn of_ended_run(journal: &[JournalEntry], context: &RecordingContext) -> Result<Self, Unrecordable> {
        let history = History::from_journal(journal).ok_or(Unrecordable::Empty)?;
        if history.started.predecessor.is_some() || !history.started.history.is_empty() {
            return Err(Unrecordable::Continues);
        }
        if ending(journal).is_none() {
            return Err(Unrecordable::NotEnded);
        }
        Self::of_journal(journal, context)
    }

    /// The recording of a run in any state, for a comparison. The status of a run that has not ended is `pending`.
    ///
    /// # Errors
    /// `Unrecordable` for a journal without events, or a run that cannot be written without its secrets.
    pub fn of_journal(journal: &[JournalEntry], context: &RecordingContext) -> Result<Self, Unrecordable> {
        let history = History::from_journal(journal).ok_or(Unrecordable::Empty)?;
        let started = history.started;
        let mut normaliser = Normaliser::new(context.secrets.clone());
        let replies = history.turns.iter().filter_map(|turn| Some((turn.reply()?.1, &turn.calls)));
        let turns = replies.map(|(reply, calls)| recorded_turn(reply, calls, &mut normaliser)).collect();
        let recording = Self {
            toolgate_recording: VERSION,
            task: started.input.text(),
            agent: Some(started.spec.agent.to_string()),
            model: Some(started.spec.model.to_string()),
            instructions: started.spec.system.clone(),
            output_schema: started.spec.rules.output_schema.clone(),
            servers: recorded_servers(started, journal, context),
            external_tools: started.spec.external_tools.clone(),
            order: CallOrder::Exact,
            ignore: Vec::new(),
            turns,
            summary: journal.iter().find_map(summary),
            end: recorded_end(journal, &history),
        };
        normaliser.normalised(&recording).ok_or(Unrecordable::Unredacted)
    }
}

fn summary(entry: &JournalEntry) -> Option<String> {
    if let Event::CompactionCompleted { summary, .. } = &entry.event { Some(summary.clone()) } else { None }
}

fn ending(journal: &[JournalEntry]) -> Option<&Ending> {
    journal.iter().find_map(|entry| if let Event::Ended { ending } = &entry.event { Some(ending) } else { None })
}

fn recorded_servers(
    started: &Started,
    journal: &[JournalEntry],
    context: &RecordingContext,
) -> BTreeMap<String, RecordedServer> {
    let listed = |entry: &JournalEntry| {
        if let Event::ToolsListed { toolset } = &entry.event { Some(toolset.clone()) } else { None }
    };
    let toolset = journal.iter().find_map(listed).unwrap_or_default();
    let recorded = started.spec.servers.iter().map(|id| {
        let address = context.servers.get(id.as_str()).cloned().unwrap_or_default();
        let tools = tools_of(id.as_str(), &toolset);
        let missing = toolset.left_out().iter().find(|left| left.server.as_ref() == Some(id) && left.tool.is_none());
        let unavailable = missing.filter(|_| tools.is_empty()).map(|left| left.reason.clone());
        (id.to_string(), RecordedServer { tools, unavailable, ..address })
    });
    recorded.collect()
}

fn tools_of(server: &str, toolset: &Toolset) -> Vec<RecordedTool> {
    let tool = |tool: &std::sync::Arc<Tool>| match &tool.origin {
        Origin::Mcp { server: id, tool: name } if id.as_str() == server => Some(RecordedTool {
            name: name.clone(),
            model_name: tool.name.to_string(),
            description: tool.description.clone(),
            input_schema: (*tool.input_schema).clone(),
            output_schema: tool.output_schema.as_deref().cloned(),
            annotations: tool.annotations.clone(),
        }),
        Origin::Mcp { .. } | Origin::External { .. } | Origin::Builtin { .. } => None,
    };
    toolset.iter().filter_map(tool).collect()
}

fn recorded_turn(reply: &Reply, calls: &[CallHistory<'_>], normaliser: &mut Normaliser) -> RecordedTurn {
    let text = |kind: fn(&Part) -> Option<&str>| {
        let pieces: Vec<&str> = reply.content.iter().filter_map(kind).filter(|text| !text.is_empty()).collect();
        if pieces.is_empty() { None } else { Some(pieces.concat()) }
    };
    let by_content = if calls.is_empty() { Stop::End } else { Stop::ToolCalls };
    RecordedTurn {
        reasoning: text(reasoning),
        say: text(Part::as_text),
        calls: calls.iter().map(|call| recorded_call(call, normaliser)).collect(),
        stop: Some(reply.stop).filter(|stop| *stop != by_content),
        usage: Usage { cost_usd: None, costs: None, ..reply.usage },
    }
}

fn reasoning(part: &Part) -> Option<&str> {
    if let Part::Reasoning { text } = part { Some(text) } else { None }
}

fn recorded_call(call: &CallHistory<'_>, normaliser: &mut Normaliser) -> RecordedCall {
    let id = normaliser.number(call.requested.id.as_str());
    if let Some(tool) = call.tool() {
        normaliser.learn_secret_names(&tool.input_schema);
    }
    RecordedCall {
        id,
        tool: call.requested.name.clone(),
        arguments: Expected::literal(call.requested.arguments.to_value()),
        decision: call.decision().map(|decision| RecordedDecision {
            answer: decision.answer,
            reason: decision.reason.clone(),
            edited_arguments: decision.edited_arguments.as_ref().and_then(Arguments::as_object).cloned(),
        }),
        elicitations: call.entries.iter().filter_map(|entry| responses(entry)).collect(),
        choice: call.entries.iter().find_map(|entry| choice(entry)),
        result: recorded_result(call),
    }
}

fn responses(entry: &JournalEntry) -> Option<ElicitationResponses> {
    if let Event::InputGiven { given, .. } = &entry.event { Some(given.reactions.clone()) } else { None }
}

fn choice(entry: &JournalEntry) -> Option<Choice> {
    if let Event::QuestionAnswered { answer, .. } = &entry.event { Some(answer.choice.clone()) } else { None }
}

fn recorded_result(call: &CallHistory<'_>) -> RecordedResult {
    if let Some((_, outcome)) = call.outcome() {
        return match &*outcome {
            Outcome::Returned(output) => returned(output),
            Outcome::Failed(failure) => RecordedResult {
                failed: Some(failure.kind.as_str().to_owned()),
                text: Some(Expected::literal(failure.message.as_str().into())),
                ..RecordedResult::default()
            },
            Outcome::Unknown => RecordedResult { failed: Some("unknown".to_owned()), ..RecordedResult::default() },
        };
    }
    let rejected = |reason: &str, text: Option<String>| RecordedResult {
        rejected: Some(reason.to_owned()),
        text: text.map(|text| Expected::literal(text.into())),
        ..RecordedResult::default()
    };
    if let Some(CallVerdict::Rejected { reason, message, .. }) = call.verdict() {
        return rejected(reason.as_str(), Some(message.clone()));
    }
    match call.decision() {
        Some(decision) if decision.answer == DecisionKind::Deny => rejected("denied", decision.reason.clone()),
        _ if call.is_expired() => rejected("expired", None),
        _ if call.is_deferred() => rejected("deferred", None),
        _ => RecordedResult::default(),
    }
}

fn returned(output: &ToolOutput) -> RecordedResult {
    let (text, content) = match output.content.as_slice() {
        [] => (None, None),
        [Part::Text { text }] => (Some(Expected::literal(text.as_str().into())), None),
        parts => (None, Some(Expected::literal(json!(parts)))),
    };
    let structured = output.structured.clone().map(Expected::literal);
    RecordedResult { text, content, structured, error: output.is_error, ..RecordedResult::default() }
}

fn recorded_end(journal: &[JournalEntry], history: &History<'_>) -> RecordedEnd {
    let Some(ending) = ending(journal) else {
        let failed = history.turns.last().and_then(|turn| turn.attempts.last()?.end.as_ref());
        let error = failed.and_then(|(_, end)| match end {
            AttemptEnd::Failed { error, .. } => Some(error.to_string()),
            AttemptEnd::Replied(_) => None,
        });
        return RecordedEnd { status: Status::Pending.as_str().to_owned(), answer: None, error };
    };
    let answer =
        ending.output().map(|output| output.value.clone().unwrap_or_else(|| Value::from(output.text.as_str())));
    RecordedEnd {
        status: ending.status().as_str().to_owned(),
        answer: answer.map(Expected::literal),
        error: ending.failure().map(|failure| failure.message),
    }
}
