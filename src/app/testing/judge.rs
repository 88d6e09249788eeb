//! Judge: a model of the configuration that decides whether an answer meets criteria in words.

use std::sync::Arc;

use crate::app::open_models;
use crate::config::Settings;
use crate::core::chat::Message;
use crate::core::run::{JournalEntry, ToolAccess};
use crate::core::tool::Toolset;
use crate::lab::scenario::{Finding, Judge, judge};
use crate::ports::ModelRequest;

/// Asks the judge about an answer. `None` if the answer passes; a judge that gives no verdict is a finding too.
pub(super) async fn ask(
    settings: &Settings,
    asked: &Judge,
    task: &str,
    answer: &str,
    journal: &[JournalEntry],
) -> Option<Finding> {
    let finding = |message: String| {
        let (expected, actual) = (Some(asked.criteria.as_str().into()), Some(answer.into()));
        Some(Finding { expectation: "expect.answer.judge".to_owned(), place: None, message, expected, actual })
    };
    match reply(settings, asked, task, answer, journal).await.and_then(|reply| judge::verdict(&reply)) {
        Ok((true, _)) => None,
        Ok((false, reason)) => finding(format!("the judge `{}` decided FAIL: {reason}", asked.model)),
        Err(error) => finding(error),
    }
}

async fn reply(
    settings: &Settings,
    asked: &Judge,
    task: &str,
    answer: &str,
    journal: &[JournalEntry],
) -> Result<String, String> {
    let models = open_models(settings).map_err(|error| error.to_string())?;
    let model = models.get(&asked.model.as_str().into()).ok_or(format!("there is no model `{}`", asked.model))?;
    let trace = journal.iter().find_map(|entry| entry.event.trace()).ok_or("the run has no trace")?.context("judge");
    let messages = [Arc::new(Message::user(judge::question(asked, task, answer)))];
    let request = ModelRequest {
        system: judge::INSTRUCTIONS,
        messages: &messages,
        tools: &Arc::new(Toolset::default()),
        tool_access: ToolAccess::FinalAnswer,
        output_schema: None,
        trace: &trace,
    };
    let reply = model.converse().reply(&request, &|_| {}).await;
    let reply = reply.map_err(|failed| format!("the judge `{}` failed: {}", asked.model, failed.failure))?;
    Ok(reply.content.iter().filter_map(crate::core::chat::Part::as_text).collect())
}
