//! `toolgate approvals list`: lists pending approvals and questions.

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
use crate::cli::text::{block, count, list};
use crate::cli::view::{because, question_lines, second_look_at_arguments, term};
use crate::core::run::{AnswerForm, PendingCall};
use crate::core::tool::{Arguments, Origin, called, escape_untrusted, is_suspicious, summary};
use crate::service::{Inbox, InboxFilter, InboxItem, UnreadableRun};

/// The longest call that is listed on one line, in characters.
const SUMMARY: usize = 72;
/// The most lines of the arguments of a listed call.
const ARGUMENT_LINES: usize = 8;

/// List pending approvals and questions of all runs
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

    /// Prints one JSON object per line, with all details and its `digest`
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
        let Inbox { waiting, unreadable } = found?;
        if self.json {
            waiting.iter().for_each(|waiting| out.json(waiting));
            unreadable.iter().for_each(|unreadable| out.json(unreadable));
        } else {
            self.print(&waiting, out);
        }
        warn_of_unreadable(&unreadable, out);
        Ok(if unreadable.is_empty() { Exit::Done } else { Exit::Failed })
    }

    async fn found(&self, app: &App) -> Result<Inbox, CliError> {
        if let Some(run) = &self.run {
            let waiting = app.operator().inbox_of(&find(app, run).await?).await?;
            return Ok(Inbox { waiting, ..Inbox::default() });
        }
        let (agent, session) = (self.agent.as_deref().map(Into::into), self.session.as_deref().map(Into::into));
        Ok(app.operator().inbox(&InboxFilter { agent, session }).await?)
    }

    fn print(&self, waiting: &[InboxItem], out: &mut Output) {
        let Some(first) = waiting.first() else { return out.note("there are no pending approvals or questions") };
        let (now, paint) = (Timestamp::now(), out.paint());
        waiting.iter().flat_map(|waiting| lines(waiting, now, paint)).for_each(|line| out.line(line));
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

/// A call: on one line, or, where that hides line breaks or much of the arguments, with them below it.
fn call_lines(head: &str, origin: &Origin, arguments: &Arguments, paint: Paint) -> Vec<String> {
    let summary = summary(origin, arguments);
    if summary.chars().count() <= SUMMARY && !summary.contains("\\n") {
        return vec![format!("{head}  {summary}")];
    }
    let mut lines = vec![format!("{head}  {}", called(origin))];
    let mut whole = argument_lines(arguments, PresentFile::Unread, paint);
    let rest = whole.len().saturating_sub(ARGUMENT_LINES);
    whole.truncate(ARGUMENT_LINES);
    lines.extend(whole);
    lines.extend((rest > 0).then(|| paint.dim(format!("… {}", count(rest, "further line")))));
    lines
}

/// The lines about a pending item.
fn lines(waiting: &InboxItem, now: Timestamp, paint: Paint) -> Vec<String> {
    let head = format!("{}  {}", paint.bold(&waiting.run_id), paint.bold(escape_untrusted(waiting.call().as_str())));
    let Some(PendingCall { tool, arguments, .. }) = waiting.item.call() else { return Vec::new() };
    let mut lines = match waiting.item.form() {
        AnswerForm::Decision(review) => {
            let because = because(review.reason, review.rule, review.policy);
            let mut lines = call_lines(&head, &tool.origin, &arguments, paint);
            lines.push(because);
            let changed: Vec<String> =
                review.differences.iter().map(|difference| escape_untrusted(&difference.field)).collect();
            lines.extend(
                (!changed.is_empty())
                    .then(|| paint.yellow(format!("! changed since it was cleared: {}", list(changed)))),
            );
            lines.extend(review.outcome_unknown.then(|| paint.yellow("! it may have taken effect already")));
            let (Origin::Mcp { tool: name, .. } | Origin::External { tool: name } | Origin::Builtin { tool: name }) =
                &tool.origin;
            lines.extend(is_suspicious(name).then(|| paint.yellow("! look twice at the tool's name")));
            lines.extend(second_look_at_arguments(&arguments).map(|warning| paint.yellow(warning)));
            lines
        }
        AnswerForm::Choice(ask) => {
            let mut lines = vec![format!("{head}  the model asks: {}", block(&ask.question))];
            let options: Vec<String> = ask.options.iter().map(|option| escape_untrusted(option)).collect();
            lines.extend((!options.is_empty()).then(|| format!("options: {}", list(options))));
            lines
        }
        AnswerForm::Elicitation { questions, .. } => {
            let mut lines = vec![format!("{head}  {} asks:", summary(&tool.origin, &arguments))];
            lines.extend(questions.iter().flat_map(|(key, question)| question_lines(key, question)));
            lines
        }
        AnswerForm::Result { .. } | AnswerForm::Background(_) | AnswerForm::Continue { .. } => Vec::new(),
    };
    lines.extend(term(&waiting.item, now));
    let hung = lines.iter().map(|line| line.replace('\n', "\n    ")).enumerate();
    hung.map(|(index, line)| if index == 0 { line } else { format!("    {line}") }).collect()
}
