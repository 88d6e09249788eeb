//! `toolgate approvals list`: lists pending approvals and questions, and the external calls that wait for an application.

use std::collections::BTreeSet;

use clap::Args;
use jiff::Timestamp;

use crate::app::App;
use crate::cli::argument_lines::{PresentFile, argument_lines};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::paint::Paint;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag, ConfigOverrides};
use crate::cli::text::{block, brief_duration, count, list, one_line};
use crate::cli::view::{brief_because, question_lines, second_look_at_arguments};
use crate::core::policy::OnTimeout;
use crate::core::run::{AnswerForm, PendingCall};
use crate::core::tool::{Arguments, Origin, called, escape_untrusted, is_suspicious, summary};
use crate::service::{Inbox, InboxFilter, InboxItem, UnreadableRun};

/// The longest call that is listed on one line, in characters.
const SUMMARY: usize = 72;
/// The most lines of the arguments of a listed call.
const ARGUMENT_LINES: usize = 8;
/// The longest name of a session on a line with others.
const NAME: usize = 40;
/// The beginnings of the ids that toolgate gives to sessions.
const GENERATED_SESSIONS: [&str; 2] = ["run_", "session_"];

/// List pending approvals, questions and external calls of all runs
#[derive(Args, Debug, Default)]
pub(super) struct List {
    #[command(flatten)]
    config: ConfigFlag,

    /// Only of runs of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Only of runs of this conversation
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Only of this run: its id, a unique beginning or end of it, or `last`
    #[arg(long, value_name = "RUN", conflicts_with_all = ["agent", "session"])]
    run: Option<String>,

    /// Prints one JSON object per line, with all details and its `digest`, without external calls
    #[arg(long)]
    json: bool,
}

impl List {
    /// The list without a filter.
    pub(super) fn everything(config: ConfigFlag) -> Self {
        Self { config, ..Self::default() }
    }

    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        setup::warn_of_unknown(self.agent.as_deref(), &app.settings, out);
        let found = self.found(&app).await;
        setup::close(app, out).await;
        let Inbox { waiting, external, unreadable } = found?;
        if self.json {
            waiting.iter().for_each(|waiting| out.json(waiting));
            unreadable.iter().for_each(|unreadable| out.json(unreadable));
        } else {
            self.print(&waiting, &external, out);
        }
        warn_of_unreadable(&unreadable, out);
        Ok(if unreadable.is_empty() { Exit::Done } else { Exit::Failed })
    }

    async fn found(&self, app: &App) -> Result<Inbox, CliError> {
        if let Some(run) = &self.run {
            return Ok(app.operator().inbox_of(&find(app, run).await?).await?);
        }
        let (agent, session) = (self.agent.as_deref().map(Into::into), self.session.as_deref().map(Into::into));
        Ok(app.operator().inbox(&InboxFilter { agent, session }).await?)
    }

    fn print(&self, waiting: &[InboxItem], external: &[InboxItem], out: &mut Output) {
        let (now, paint) = (Timestamp::now(), out.paint());
        waiting.iter().chain(external).flat_map(|item| lines(item, now, paint)).for_each(|line| out.line(line));
        let Some(first) = waiting.first() else { return out.note("there are no pending approvals or questions") };
        let again = setup::again(&self.config, &ConfigOverrides::default());
        let runs: BTreeSet<_> = waiting.iter().map(|waiting| &waiting.run_id).collect();
        out.note(format!("{} in {}", count(waiting.len(), "pending item"), count(runs.len(), "run")));
        let (run, call) = (first.run_id.as_str(), first.call().as_str());
        out.note(format!("show the first in full with:\n  {}", again.elsewhere(&["approvals", "show", run, call])));
    }
}

/// Names the runs that cannot be read.
pub(super) fn warn_of_unreadable(unreadable: &[UnreadableRun], out: &mut Output) {
    for UnreadableRun { run_id, error, .. } in unreadable {
        out.warning(format!("the pending items of {run_id} cannot be read: {}", block(&error.message)));
    }
}

/// The agent, the conversation if a caller named it, how long the item is pending, and the rest of its time.
pub(super) fn whose(waiting: &InboxItem, now: Timestamp) -> String {
    let mut words = vec![format!("agent {}", waiting.agent)];
    let session = waiting.session_id.as_str();
    if !GENERATED_SESSIONS.iter().any(|start| session.starts_with(start)) {
        words.push(format!("session {}", one_line(&escape_untrusted(session), NAME)));
    }
    let age = waiting.item.requested_at().map(|since| brief_duration(now.duration_since(since).as_secs()));
    words.extend(age);
    let on_timeout = match waiting.item.form() {
        AnswerForm::Decision(review) => review.on_timeout,
        AnswerForm::Choice(_)
        | AnswerForm::Elicitation { .. }
        | AnswerForm::Result { .. }
        | AnswerForm::Background(_)
        | AnswerForm::Continue { .. } => OnTimeout::Expire,
    };
    let (then, overdue) = match on_timeout {
        OnTimeout::Approve => (", then approved", ": approved when the run resumes"),
        OnTimeout::Deny => (", then denied", ": denied when the run resumes"),
        OnTimeout::Expire => ("", ""),
    };
    words.extend(waiting.item.expires_at().map(|until| match until > now {
        true => format!("due in {}{then}", brief_duration(until.duration_since(now).as_secs())),
        false => format!("overdue{overdue}"),
    }));
    words.join(", ")
}

/// An external call in a line or two, with the party that answers it.
pub(super) fn external_line(waiting: &InboxItem, now: Timestamp) -> Option<String> {
    let PendingCall { tool, arguments, .. } = waiting.item.call()?;
    Some(format!("{}, {}: your application answers it", summary(&tool.origin, &arguments), whose(waiting, now)))
}

/// A call: on one line, or, where that hides line breaks or much of the arguments, with them below it.
fn call_lines(origin: &Origin, arguments: &Arguments, paint: Paint) -> Vec<String> {
    let (tool, summary) = (called(origin), summary(origin, arguments));
    if summary.chars().count() <= SUMMARY && !summary.contains("\\n") {
        let rest = summary.strip_prefix(&tool).unwrap_or_default();
        return vec![format!("{}{rest}", paint.bold(&tool))];
    }
    let mut lines = vec![paint.bold(tool)];
    let mut whole = argument_lines(arguments, PresentFile::Unread, paint);
    let rest = whole.len().saturating_sub(ARGUMENT_LINES);
    whole.truncate(ARGUMENT_LINES);
    lines.extend(whole);
    lines.extend((rest > 0).then(|| paint.dim(format!("… {}", count(rest, "further line")))));
    lines
}

/// The lines about a pending item: what a person decides by, then the words for commands about it.
fn lines(waiting: &InboxItem, now: Timestamp, paint: Paint) -> Vec<String> {
    let Some(PendingCall { tool, arguments, .. }) = waiting.item.call() else { return Vec::new() };
    let (mut lines, mut remarks) = (Vec::new(), Vec::new());
    match waiting.item.form() {
        AnswerForm::Decision(review) => {
            lines.extend(call_lines(&tool.origin, &arguments, paint));
            remarks.push(brief_because(review.reason, review.rule, review.policy));
            let changed: Vec<String> =
                review.differences.iter().map(|difference| escape_untrusted(&difference.field)).collect();
            remarks.extend(
                (!changed.is_empty())
                    .then(|| paint.yellow(format!("! changed since it was cleared: {}", list(changed)))),
            );
            remarks.extend(review.outcome_unknown.then(|| paint.yellow("! it may have taken effect already")));
            remarks.extend(is_suspicious(tool.name()).then(|| paint.yellow("! look twice at the tool's name")));
            remarks.extend(second_look_at_arguments(&arguments).map(|warning| paint.yellow(warning)));
        }
        AnswerForm::Choice(ask) => {
            lines.push(format!("the model asks: {}", block(&ask.question)));
            let options: Vec<String> = ask.options.iter().map(|option| escape_untrusted(option)).collect();
            lines.extend((!options.is_empty()).then(|| format!("options: {}", list(options))));
        }
        AnswerForm::Elicitation { questions, .. } => {
            lines.push(format!("{} asks:", summary(&tool.origin, &arguments)));
            lines.extend(questions.iter().flat_map(|(key, question)| question_lines(key, question)));
        }
        AnswerForm::Result { .. } => {
            lines.extend(call_lines(&tool.origin, &arguments, paint));
            remarks.push("your application answers it".to_owned());
        }
        AnswerForm::Background(_) | AnswerForm::Continue { .. } => return Vec::new(),
    }
    lines.push(whose(waiting, now));
    lines.extend(remarks);
    lines.push(paint.dim(format!("{} {}", waiting.run_id, escape_untrusted(waiting.call().as_str()))));
    let hung = lines.iter().map(|line| line.replace('\n', "\n    ")).enumerate();
    hung.map(|(index, line)| if index == 0 { line } else { format!("    {line}") }).collect()
}
