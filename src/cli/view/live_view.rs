//! Live view of a run: one or two lines for each lifecycle event, with streamed text between them.

mod call_lines;
mod notes;
mod shared;
mod stream;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub(super) use self::call_lines::shortened;
pub(in crate::cli) use self::shared::SharedViewState;
use self::shared::Topic;
use super::DisplaySettings;
use super::approval::{by_way_of, clock};
use super::pending::RepeatedFlags;
use super::typesetter::Typesetter;
use super::usage::{MissingUsage, reported_usage, total};
use super::words::left_out_lines;
use crate::cli::paint::Paint;
use crate::cli::text::{COMPACT, block, count, duration, gutter, one_line};
use crate::core::chat::Usage;
use crate::core::error::Failure;
use crate::core::id::CallId;
use crate::core::lifecycle::{CallRef, LifecycleEvent, LifecycleKind};
use crate::core::run::{Restart, Scope, ToolAccess};
use crate::core::tool::{AuthorizationStatus, Problem, ServerAuthorization, escape_untrusted};

/// Output to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum LiveOutput {
    Line(String),
    /// A part of a line that continues.
    Fragment(String),
}

/// The place where the model's final answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum AnswerPlacement {
    /// In the live view, streamed to the user at a terminal.
    Inline,
    /// The same in a conversation, whose prompt has shown the message and its agent already.
    Conversation,
    /// Alone on standard output; the live view omits it and does not stream.
    Apart,
}

/// The live view. It keeps only the state that affects the next line.
#[derive(Debug)]
pub(in crate::cli) struct LiveView {
    look: DisplaySettings,
    answer: AnswerPlacement,
    /// Typesets the model's text, where the terminal can replace lines.
    typesetter: Option<Typesetter>,
    /// The kind of the fragments since the last whole line.
    streaming: Option<Stream>,
    /// The temporary lines of the streamed text.
    unfinished: Vec<String>,
    /// Whether the text of this turn was already streamed.
    streamed: bool,
    /// Usage that attempts did not report.
    gaps: MissingUsage,
    shared: SharedViewState,
    /// The number of events that the run has from another one. They have the time of the copy.
    copied: u64,
    /// The flags of the commands that show calls whole; without them, no command is named.
    again: Option<RepeatedFlags>,
    /// The error of the last failed attempt.
    last_error: Option<Failure>,
    /// The calls in progress.
    executing: BTreeMap<CallId, CallRef>,
    /// Whether the beginning of this process's work on the run was shown.
    has_begun: bool,
    /// Whether the run is an earlier turn of a conversation.
    is_earlier: bool,
    /// Whether a prompt, or a message of the demonstration, follows each call that requires approval.
    prompts: bool,
    /// The calls that the person decided about at the prompts of this view, as long as the decision is not shown.
    decided_here: BTreeSet<CallId>,
    /// The calls whose arguments the person saw at the prompts of this view.
    shown_here: BTreeSet<CallId>,
    /// The calls that wait for a decision.
    asked: BTreeMap<CallId, CallRef>,
    /// The calls that a person denied.
    denied: BTreeSet<CallId>,
    /// The approved calls that are not sent yet.
    approved: BTreeMap<CallId, (CallRef, Scope)>,
    /// The calls in progress whose beginning is shown with their end.
    deferred: BTreeMap<CallId, CallRef>,
    /// The calls in progress that a grant covers.
    granted: BTreeSet<CallId>,
    /// The tools that the model called several times in this turn, so that the name does not tell the call.
    repeated: BTreeSet<String>,
    /// The messages that a prompt showed and the model has not read.
    prompted: Vec<String>,
    /// The other messages that the model has not read. They are quoted before the request that has them.
    unread: Vec<String>,
    /// Messages that were sent from this terminal, and whose events have not arrived: the process that executes the run
    /// sends them with its next step.
    sent_here: VecDeque<String>,
}

/// The prefix of each line of model text, so that no such line can imitate output of the program.
pub(super) const GUTTER: &str = "  | ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Text,
    Reasoning,
}

impl LiveView {
    /// Creates an empty live view.
    pub(in crate::cli) fn new(look: DisplaySettings, answer: AnswerPlacement) -> Self {
        Self {
            look,
            answer,
            typesetter: None,
            streaming: None,
            unfinished: Vec::new(),
            streamed: false,
            gaps: MissingUsage::default(),
            shared: SharedViewState::default(),
            copied: 0,
            again: None,
            last_error: None,
            executing: BTreeMap::new(),
            has_begun: false,
            is_earlier: false,
            prompts: false,
            decided_here: BTreeSet::new(),
            shown_here: BTreeSet::new(),
            asked: BTreeMap::new(),
            denied: BTreeSet::new(),
            approved: BTreeMap::new(),
            deferred: BTreeMap::new(),
            granted: BTreeSet::new(),
            repeated: BTreeSet::new(),
            prompted: Vec::new(),
            unread: Vec::new(),
            sent_here: VecDeque::new(),
        }
    }

    /// Shows the grants in force unless another view has shown the same, and numbers calls with those of other views.
    pub(in crate::cli) fn sharing(self, shared: SharedViewState) -> Self {
        Self { shared, ..self }
    }

    /// Leaves out the durations of the first events, which are from another run.
    pub(in crate::cli) fn copying(self, copied: u64) -> Self {
        Self { copied, ..self }
    }

    /// Names the command that shows a call whose result is shortened.
    pub(in crate::cli) fn naming_calls(self, again: RepeatedFlags) -> Self {
        Self { again: Some(again), ..self }
    }

    /// Typesets the model's text, and folds its reasoning.
    pub(in crate::cli) fn typesetting(self) -> Self {
        Self { typesetter: Some(Typesetter::new(self.look)), ..self }
    }

    /// Shows an earlier turn of a conversation: with the message of the user, which no prompt has shown, and without the grants
    /// that were in force, because they may have been revoked.
    pub(in crate::cli) fn of_earlier_turn(self) -> Self {
        Self { is_earlier: true, ..self }
    }

    /// Leaves out the line of a call that requires approval, because a prompt, or the narrator of the demonstration, shows it.
    pub(in crate::cli) fn prompting(self) -> Self {
        Self { prompts: true, ..self }
    }

    /// Shortens the next line about a decision on this call, which was made at the prompt above it.
    pub(in crate::cli) fn decided_here(&mut self, call: CallId) {
        self.decided_here.insert(call);
    }

    /// Leaves out what this call changes in its file, which a prompt showed.
    pub(in crate::cli) fn shown_here(&mut self, call: CallId) {
        self.shown_here.insert(call);
    }

    /// Adapts to the width of the terminal.
    pub(in crate::cli) fn resize(&mut self, width: usize) {
        self.look.width = width;
        if let Some(typesetter) = &mut self.typesetter {
            typesetter.resize(width);
        }
    }

    /// The output for one event.
    pub(in crate::cli) fn render(&mut self, event: &LifecycleEvent) -> Vec<LiveOutput> {
        if let LifecycleKind::Fragment { delta, .. } = &event.fact {
            return self.fragment(delta);
        }
        let mut shown = self.end_of_stream();
        self.note(event);
        let unread = if is_end(&event.fact) { self.messages_left_unread() } else { Vec::new() };
        shown.extend(unread.into_iter().chain(self.lines(event)).map(LiveOutput::Line));
        self.has_begun |= matches!(event.fact, LifecycleKind::Started { .. } | LifecycleKind::Resumed { .. });
        shown
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "picks the events that concern it")]
    fn lines(&mut self, event: &LifecycleEvent) -> Vec<String> {
        let paint = self.look.paint;
        match &event.fact {
            LifecycleKind::Started { restart, input, .. } if self.answer == AnswerPlacement::Conversation => {
                let quoted = input.iter().filter(|_| self.is_earlier).map(|text| format!("\n{}", self.quote(text)));
                restarted(*restart, paint).into_iter().chain(quoted).collect()
            }
            LifecycleKind::Started { agent, model, session_id, input, restart, .. } => {
                let about =
                    format!("agent {agent} · model {model} · session {}", escape_untrusted(session_id.as_str()));
                let mut lines = vec![format!("{} {}", paint.bold("run"), paint.bold(&event.run_id))];
                lines.push(paint.dim(about));
                lines.extend(restarted(*restart, paint));
                lines.extend(input.iter().map(|text| self.quote(text)));
                lines
            }
            // The answers of this process continue it.
            LifecycleKind::Resumed { .. } if self.has_begun || self.answer == AnswerPlacement::Conversation => {
                Vec::new()
            }
            LifecycleKind::Resumed { .. } => {
                vec![format!("{} {}", paint.bold("run"), paint.bold(format!("{} resumed", event.run_id)))]
            }
            // The reason follows: with the server that is left out, or it preceded with the call that failed.
            LifecycleKind::ServerAuth { authorization } => {
                let ServerAuthorization { server, status, .. } = authorization;
                vec![match status {
                    AuthorizationStatus::Authorized => paint.dim(format!("  server {server}: authorized")),
                    AuthorizationStatus::Required | AuthorizationStatus::Failed => {
                        paint.yellow(format!("  ! server {server}: authorization {}", status.as_str()))
                    }
                }]
            }
            LifecycleKind::ToolsListed { tools, left_out, changed, warnings } => {
                let is_told = self.answer != AnswerPlacement::Conversation;
                let available = is_told.then(|| paint.dim(format!("{} available", count(tools.len(), "tool"))));
                let mut faults = left_out_lines(left_out);
                faults.extend(warnings.iter().map(|text| escape_untrusted(text).to_string()));
                // Each turn of a conversation lists the tools.
                let named: Vec<_> = left_out.iter().map(|left| (&left.server, &left.tool)).collect();
                if !self.shared.is_news(Topic::ToolFaults, &format!("{named:?} {warnings:?}")) {
                    faults.clear();
                }
                let changed = changed.iter().map(|tool| format!("{tool} changed since the run began"));
                let faults = faults.into_iter().chain(changed).map(|line| paint.yellow(format!("  ! {line}")));
                available.into_iter().chain(faults).collect()
            }
            LifecycleKind::ApprovalsResolved { granted } => {
                let lines = self.grants_in_force(granted);
                let is_news = !self.is_earlier && self.shared.is_news(Topic::GrantsInForce, &lines.join("\n"));
                lines.into_iter().filter(|_| is_news).map(|line| paint.dim(line)).collect()
            }
            LifecycleKind::ModelCalled { attempt: 1, tool_access, .. } => {
                self.streamed = false;
                self.read_messages().into_iter().chain(self.turn(event.iteration, *tool_access)).collect()
            }
            LifecycleKind::ModelRetrying { model, attempt, instead_of } => {
                self.streamed = false;
                let who = match instead_of {
                    Some(before) => format!("asking model {model} instead of {before}"),
                    None => "asking the model again".to_owned(),
                };
                vec![paint.yellow(format!("  {who}, attempt {attempt}"))]
            }
            LifecycleKind::ModelCallRefused { reason, .. } => vec![paint.yellow(format!("  {}", block(reason)))],
            LifecycleKind::ModelReplied { .. } => self.replied(event),
            LifecycleKind::ModelFailed { error, duration_ms, usage, .. } => {
                let retry_after =
                    error.retry_after_ms.map(|wait| format!("; the provider asks to wait {}", duration(wait)));
                let took = self.took(event, Some(*duration_ms));
                let about: Vec<String> = took.into_iter().chain(reported_usage(usage)).collect();
                let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
                let retry_after = retry_after.unwrap_or_default();
                let is_same = self.last_error.replace(error.clone()).is_some_and(|last| last.message == error.message);
                let words = if is_same { "the same error again".to_owned() } else { block(&error.to_string()) };
                vec![format!("  {} model: {words}{about}{retry_after}", paint.red("✗"))]
            }
            LifecycleKind::CompactionStarted { model, replaces, .. } => {
                let messages = count(usize::try_from(*replaces).unwrap_or(usize::MAX), "message");
                vec![paint.dim(format!("  compacting: {model} summarizes {messages}"))]
            }
            LifecycleKind::CompactionCompleted { duration_ms, .. } => {
                let took = self.took(event, Some(*duration_ms)).map(|took| format!(" ({took})")).unwrap_or_default();
                vec![format!("  {} conversation compacted{took}", paint.green("✓"))]
            }
            LifecycleKind::CompactionFailed { error, .. } => {
                vec![format!("  {} not compacted: {}", paint.red("✗"), block(&error.to_string()))]
            }
            LifecycleKind::TierSelected { priority, run, deferred } if !deferred.is_empty() => {
                let now = count(run.len(), "call");
                vec![paint.dim(format!("  priority {priority} first: {now} now, {} deferred", deferred.len()))]
            }
            LifecycleKind::Completed { tool_interactions, usage, .. } => {
                let total = self.total(*tool_interactions, usage);
                total.map(|total| format!("{}: {total}", paint.green("completed"))).into_iter().collect()
            }
            LifecycleKind::Failed { error, tool_interactions, usage }
            | LifecycleKind::Incomplete { error, tool_interactions, usage, .. }
            | LifecycleKind::Expired { error, tool_interactions, usage } => {
                let is_last = self.last_error.as_ref().is_some_and(|last| last.message == error.message);
                let why = if is_last && self.answer != AnswerPlacement::Apart {
                    error.code.to_string()
                } else {
                    block(&error.to_string())
                };
                let failed = format!("{} {why}", paint.red("failed:"));
                self.interrupted().into_iter().chain([failed]).chain(self.total(*tool_interactions, usage)).collect()
            }
            LifecycleKind::Cancelled { reason, partial_reply, tool_interactions, usage } => {
                let partial_reply = partial_reply.as_ref().filter(|_| !self.streamed);
                let partial_reply = partial_reply.map(|text| self.text_lines(text)).unwrap_or_default();
                let reason =
                    reason.as_ref().map(|reason| format!(": {}", escape_untrusted(reason))).unwrap_or_default();
                let word = paint.yellow(format!("cancelled{reason}"));
                let total = self.total(*tool_interactions, usage).map(|total| format!(": {total}")).unwrap_or_default();
                partial_reply.into_iter().chain(self.interrupted()).chain([format!("{word}{total}")]).collect()
            }
            LifecycleKind::BudgetExhausted { used, max } => {
                vec![paint.yellow(format!("  ! the tool budget is used up: {used} of {max}"))]
            }
            LifecycleKind::ValidationFailed { target: "output", problems, .. } => {
                problems.iter().map(|problem| self.does_not_fit("the answer", problem)).collect()
            }
            LifecycleKind::OutputValidated => vec![format!("  {} the answer is valid", paint.green("✓"))],
            LifecycleKind::Paused { by, reason, .. } => {
                let reason =
                    reason.as_ref().map(|reason| format!(": {}", escape_untrusted(reason))).unwrap_or_default();
                vec![paint.yellow(format!("paused by {}{reason}", escape_untrusted(by)))]
            }
            LifecycleKind::Unpaused { by, .. } => vec![format!("continued by {}", escape_untrusted(by))],
            LifecycleKind::CompensationStarted { status, undo } => {
                let calls = count(undo.len(), "call");
                vec![paint.yellow(format!("will end as {}; undoing {calls} before", status.as_str()))]
            }
            LifecycleKind::MessageAdded { text } => {
                self.unread.extend(text.as_ref().and_then(|_| self.prompted.pop()));
                Vec::new()
            }
            LifecycleKind::McpExecuting { call, .. } | LifecycleKind::BuiltinExecuting { call } => {
                let remark = if self.granted.contains(&call.call_id) { "  (by a grant)" } else { "" };
                vec![self.request_line(&paint.cyan("→"), call, remark)]
            }
            LifecycleKind::McpCompleted { call, duration_ms, end, problems, .. } => {
                let mut lines = self.ended(event, call, &self.took(event, *duration_ms).unwrap_or_default(), end);
                lines.extend(problems.iter().map(|problem| self.does_not_fit("the structured result", problem)));
                lines
            }
            LifecycleKind::BuiltinCompleted { call, duration_ms, end } => {
                self.ended(event, call, &self.took(event, *duration_ms).unwrap_or_default(), end)
            }
            LifecycleKind::InputRequested { call, messages, .. }
            | LifecycleKind::InputRequired { call, messages, .. } => {
                let mut lines = vec![self.request_line(&paint.yellow("?"), call, ": its server needs input")];
                let quoted = messages.iter().flatten().flat_map(|message| gutter(message));
                lines.extend(quoted.map(|line| format!("    {line}")));
                lines
            }
            LifecycleKind::ApprovalExpired { call } => {
                vec![self.request_line(&paint.red("✗"), call, ": no decision in time")]
            }
            LifecycleKind::PendingExpired { call } => {
                vec![self.request_line(&paint.red("✗"), call, ": no answer in time")]
            }
            LifecycleKind::PendingExtended { call, expires_at: until, by, .. } => {
                vec![format!(
                    "  {} {}: deadline extended to {} by {}",
                    paint.cyan("…"),
                    call.tool_name,
                    clock(*until),
                    escape_untrusted(by)
                )]
            }
            LifecycleKind::Drifted { call, changed, .. } => {
                let what = format!(" is checked again: {} changed since it was cleared", changed.join(", "));
                vec![self.request_line(&paint.yellow("!"), call, &what)]
            }
            LifecycleKind::QuestionAsked { call } => {
                vec![self.request_line(&paint.yellow("?"), call, " asks you a question")]
            }
            LifecycleKind::QuestionAnswered { call, by, via, answer } => {
                let head = format!("  {} {} answered by {}", paint.green("✓"), call.tool_name, escape_untrusted(by));
                let answer_text = answer.as_ref().map(|answer| format!(": {}", one_line(answer, COMPACT)));
                vec![format!("{head} {}{}", by_way_of(*via), answer_text.unwrap_or_default())]
            }
            LifecycleKind::InputGiven { call, by, accepted, .. } => {
                let (mark, verb) =
                    if *accepted { (paint.green("✓"), "answered") } else { (paint.red("✗"), "declined") };
                vec![format!("  {mark} {} {verb} by {}", call.tool_name, escape_untrusted(by))]
            }
            LifecycleKind::TaskStarted { call, task_id, .. } => {
                vec![self.request_line(
                    &paint.cyan("…"),
                    call,
                    &format!(" runs at its server as task {}", escape_untrusted(task_id)),
                )]
            }
            LifecycleKind::ExternalRequested { call } => {
                vec![self.request_line(&paint.yellow("◆"), call, " waits for your application")]
            }
            LifecycleKind::ExternalCompleted { call, end } => self.ended(event, call, "from the caller", end),
            LifecycleKind::Rejected { call, reason, message } => self.rejected(call, *reason, message.as_deref()),
            LifecycleKind::ApprovalRequested { call, reason, .. } if !self.prompts => {
                let head = format!("  {} {} requires approval", paint.yellow("?"), self.named(call));
                vec![head, paint.dim(format!("    because: {}", escape_untrusted(reason)))]
            }
            LifecycleKind::ApprovalDecided { .. } => self.decided(&event.fact).into_iter().collect(),
            // Pending items are listed with the commands that answer them, and invalid arguments appear as a rejection.
            _ => Vec::new(),
        }
    }

    /// The heading of a turn. A conversation has none for its turns with all tools, whose numbers begin again with each message.
    fn turn(&self, number: u32, tool_access: ToolAccess) -> Option<String> {
        let restriction = match tool_access {
            ToolAccess::Enabled if self.answer == AnswerPlacement::Conversation => return None,
            ToolAccess::Enabled => "",
            ToolAccess::BudgetExhausted | ToolAccess::Stopped => ", without tools",
            ToolAccess::FinalAnswer => ", final answer, without tools",
        };
        Some(self.look.paint.bold(format!("turn {number}{restriction}")))
    }

    /// The duration of what an event ended, if it is known.
    fn took(&self, event: &LifecycleEvent, milliseconds: Option<u64>) -> Option<String> {
        milliseconds.filter(|_| event.seq.is_none_or(|seq| seq >= self.copied)).map(duration)
    }

    fn replied(&mut self, event: &LifecycleEvent) -> Vec<String> {
        let LifecycleKind::ModelReplied { model, fallback, text, usage, duration_ms, tool_calls, .. } = &event.fact
        else {
            return Vec::new();
        };
        self.unread.append(&mut self.prompted);
        let is_answer = tool_calls.is_empty();
        let told_already = self.streamed || (is_answer && self.answer == AnswerPlacement::Apart);
        let text = text.as_deref().unwrap_or_default();
        let mut lines = if told_already { Vec::new() } else { self.text_lines(text) };
        let who = if *fallback { format!("model {model}") } else { "model".to_owned() };
        let about: Vec<String> =
            self.took(event, Some(*duration_ms)).into_iter().chain(reported_usage(usage)).collect();
        let about = (!about.is_empty()).then(|| format!("  {who}: {}", about.join(", ")));
        lines.extend(about.map(|about| self.look.paint.dim(about)));
        lines
    }

    /// The text of a model, marked, and typeset where that is possible.
    fn text_lines(&self, text: &str) -> Vec<String> {
        match &self.typesetter {
            Some(typesetter) => typesetter.typeset(text).iter().map(|line| format!("{GUTTER}{line}")).collect(),
            None => gutter(text).iter().map(|line| format!("  {line}")).collect(),
        }
    }

    fn does_not_fit(&self, what: &str, problem: &Problem) -> String {
        let place = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
        let message = one_line(&problem.message, self.look.room(30));
        format!("  {} {what} does not fit: {place}{message}", self.look.paint.red("✗"))
    }

    fn quote(&self, text: &str) -> String {
        let mark = self.look.paint.bold(">");
        text.trim_end().split('\n').map(|line| format!("{mark} {line}")).collect::<Vec<_>>().join("\n")
    }

    /// The turns and the usage of the run. `None` in a conversation if the line of the only reply says it all.
    fn total(&self, interactions: u32, usage: &Usage) -> Option<String> {
        let turns =
            if interactions == 1 { "1 turn with tools".into() } else { format!("{interactions} turns with tools") };
        let is_told = self.answer == AnswerPlacement::Conversation && interactions == 0;
        (!is_told).then(|| self.look.paint.dim(format!("{turns}, {}", total(usage, self.gaps))))
    }
}

fn is_end(fact: &LifecycleKind) -> bool {
    matches!(
        fact,
        LifecycleKind::Completed { .. }
            | LifecycleKind::Failed { .. }
            | LifecycleKind::Incomplete { .. }
            | LifecycleKind::Expired { .. }
            | LifecycleKind::Cancelled { .. }
    )
}

/// Why a session begins afresh, where a user would not expect it.
fn restarted(restart: Option<Restart>, paint: Paint) -> Option<String> {
    (restart == Some(Restart::WorkingDirectory))
        .then(|| paint.yellow("the session begins afresh: its earlier runs worked on another folder"))
}
