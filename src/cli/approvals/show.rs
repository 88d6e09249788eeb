//! `toolgate approvals show`: shows every detail that a user needs for a decision.

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::context::{background, quoted};
use crate::app::App;
use crate::cli::argument_lines::{PresentFile, argument_lines};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag, ConfigOverrides};
use crate::cli::terminal_escape;
use crate::cli::text::{block, list};
use crate::cli::view::{self, RepeatedFlags};
use crate::core::id::RunId;
use crate::core::run::{AnswerForm, Delivery};
use crate::core::tool::escape_untrusted;
use crate::service::InboxItem;

/// Show pending approvals and questions in full
#[derive(Args, Debug)]
pub(super) struct Show {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    /// The call [default: all pending calls of the run]
    call: Option<String>,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints one JSON object for each, over several lines
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let waiting = self.waiting(&app).await;
        setup::close(app, out).await;
        let again = setup::again(&self.config, &ConfigOverrides::default());
        for (index, waiting) in waiting?.iter().enumerate() {
            if self.json {
                out.pretty(waiting);
                continue;
            }
            if index > 0 {
                out.line("");
            }
            whole(waiting, &again, out).into_iter().for_each(|line| out.line(line));
        }
        Ok(Exit::Done)
    }

    async fn waiting(&self, app: &App) -> Result<Vec<InboxItem>, CliError> {
        let run = find(app, &self.run).await?;
        let mut waiting = app.operator().inbox_of(&run).await?.waiting;
        let Some(call) = &self.call else {
            return if waiting.is_empty() { Err(nothing_waits(&run)) } else { Ok(waiting) };
        };
        let others: Vec<String> = waiting.iter().map(|waiting| waiting.call().to_string()).collect();
        waiting.retain(|waiting| waiting.call().as_str() == call);
        match waiting.is_empty() {
            false => Ok(waiting),
            true if others.is_empty() => Err(nothing_waits(&run)),
            true => {
                let message = format!("call `{call}` of run {run} has no pending approval or question");
                Err(CliError::not_found(message).with_remedy(format!("these calls of the run do: {}", list(others))))
            }
        }
    }
}

/// The error for a run without pending approvals or questions.
pub(super) fn nothing_waits(run: &RunId) -> CliError {
    CliError::not_found(format!("run {run} has no pending approvals or questions"))
        .with_remedy("`toolgate approvals list` lists pending items, `toolgate runs show` shows the state of the run")
}

/// A pending item in full, with the commands that settle it.
pub(super) fn whole(waiting: &InboxItem, again: &RepeatedFlags, out: &Output) -> Vec<String> {
    let (paint, item, now) = (out.paint(), &waiting.item, Timestamp::now());
    let Some(call) = item.call() else { return Vec::new() };
    let origin = || format!("{}, which the model knows as {}", view::origin(&call.tool.origin), call.name);
    let waits = match item.form() {
        AnswerForm::Decision(_) => "requires approval",
        AnswerForm::Choice(_) => "waits for an answer to the model",
        AnswerForm::Elicitation { .. } => "waits for answers to its server",
        AnswerForm::Result { .. } | AnswerForm::Background(_) | AnswerForm::Continue { .. } => "waits",
    };
    let mut lines = vec![format!(
        "{}  {}  {waits}",
        paint.bold(&waiting.run_id),
        paint.bold(escape_untrusted(waiting.call().as_str()))
    )];
    match item.form() {
        AnswerForm::Decision(_) => {
            lines.push(origin());
            lines.extend(waiting.context.description.iter().flat_map(|words| quoted("its description", words)));
            lines.extend(argument_lines(&call.arguments, PresentFile::Unread, paint));
            lines.extend(
                waiting.context.original_arguments.iter().map(|written| {
                    format!("! a person edited the arguments; the model wrote: {}", view::whole(written))
                }),
            );
        }
        AnswerForm::Choice(ask) => {
            lines.push(block(&ask.question));
            lines.extend(ask.options.iter().map(|option| format!("  - {}", escape_untrusted(option))));
            lines.extend(ask.multiple.then(|| "several may be chosen".to_owned()));
            lines.extend((!ask.free_text && !ask.options.is_empty()).then(|| "only one of these".to_owned()));
        }
        AnswerForm::Elicitation { questions, delivery } => {
            lines.push(origin());
            lines.extend(argument_lines(&call.arguments, PresentFile::Unread, paint));
            lines.extend(questions.iter().flat_map(|(key, question)| view::question_lines(key, question)));
            lines.extend(delivered(delivery).map(str::to_owned));
        }
        AnswerForm::Result { .. } | AnswerForm::Background(_) | AnswerForm::Continue { .. } => {}
    }
    lines.extend(view::circumstances(item, now));
    let event = item.describe().event.map(|event| format!(", event {event}")).unwrap_or_default();
    lines.extend(background(waiting));
    lines.push(format!(
        "asked by agent {}, session {}{event}",
        waiting.agent,
        escape_untrusted(waiting.session_id.as_str())
    ));
    lines.extend(waiting.digest.iter().map(|digest| format!("digest {digest}")));
    lines.extend(how(waiting, again));
    lines
}

fn delivered(delivery: Delivery) -> Option<&'static str> {
    match delivery {
        Delivery::Held => Some("the call is held open for the answers"),
        Delivery::Repeated => {
            Some("the call had begun when its server asked; --repeat sends it a second time with the answers")
        }
        Delivery::Restarted => Some("the call is sent again with the answers"),
        Delivery::Continued => None,
    }
}

fn how(waiting: &InboxItem, again: &RepeatedFlags) -> Vec<String> {
    let (run, call) = (waiting.run_id.as_str(), waiting.call().as_str());
    let digest: Vec<&str> = waiting.digest.iter().flat_map(|digest| ["--digest", digest.as_str()]).collect();
    let command = |verb: &'static str, more: &[&str]| {
        let words: Vec<&str> = ["approvals", verb, run, call].into_iter().chain(more.iter().copied()).collect();
        format!("  {}", again.command(&words))
    };
    let denial: Vec<&str> = digest.iter().copied().chain(["--reason", "WHY"]).collect();
    match waiting.item.form() {
        AnswerForm::Decision(_) => {
            vec!["decide with:".to_owned(), command("approve", &digest), command("deny", &denial)]
        }
        AnswerForm::Choice(ask) => {
            let answer = match ask.options.first() {
                Some(option) if escape_untrusted(option) == *option => command("answer", &["--choose", option]),
                // As JSON the option can be printed safely and still means the same option.
                Some(option) => command("answer", &[&terminal_escape::json_word(&json!([option]))]),
                None => command("answer", &["ANSWER"]),
            };
            vec!["answer with:".to_owned(), answer]
        }
        AnswerForm::Elicitation { questions, .. } => {
            let value = view::answering(questions).map(|value| terminal_escape::json_word(&value));
            vec!["answer with:".to_owned(), command("answer", &value.iter().map(String::as_str).collect::<Vec<_>>())]
        }
        AnswerForm::Result { .. } | AnswerForm::Background(_) | AnswerForm::Continue { .. } => Vec::new(),
    }
}
