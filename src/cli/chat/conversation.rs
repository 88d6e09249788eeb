//! State of a conversation at the terminal, and the effects of its messages and commands.

use std::path::Path;

use super::command::Command;
use super::unended_turn::UnendedTurn;
use crate::app::App;
use crate::cli::answers::{denial, who};
use crate::cli::approvals::{grant_lines, print_revoked, revoke};
use crate::cli::attach::attach;
use crate::cli::drive_to_idle::settle;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::follow::{Display, Follow};
use crate::cli::follow_options::{FollowOptions, Tasks};
use crate::cli::mention::{mentioned_files, note_missing_files};
use crate::cli::output::Output;
use crate::cli::runs::{copied, copied_length, note_ignored_model};
use crate::cli::setup::RunChoice;
use crate::cli::text::{count, list};
use crate::cli::tools;
use crate::cli::view::{RepeatedFlags, SharedViewState};
use crate::core::chat::{Message, Part};
use crate::core::id::{AgentName, ModelName, RunId, SessionId, Tenant};
use crate::core::policy::Verdict;
use crate::core::run::{Answer, Channel, Decision, Event, JournalEntry, PendingItem, Resume, Status, Trigger};
use crate::core::tool::escape_untrusted;
use crate::ports::{Grant, GrantFilter};
use crate::runner::{Agent, Execution, Fork, NewSession, Request, Retry, SessionCompaction};

/// The reason of a denial by a message.
const SAID_INSTEAD: &str = "the user did not approve this call, and sent a message in its place";

/// A conversation: a session, and what its next message is sent with.
pub(super) struct Conversation<'a> {
    pub(super) app: &'a App,
    again: RepeatedFlags,
    pub(super) agent: std::sync::Arc<Agent>,
    /// `None` until the first message.
    pub(super) session: Option<SessionId>,
    /// The latest run that was shown.
    pub(super) last: Option<RunId>,
    /// Whether the next message continues a copy of the conversation.
    pub(super) forks: bool,
    model: Option<ModelName>,
    /// The permission mode: the name of a policy.
    pub(super) mode: Option<String>,
    /// Whether a flag chose the policy that the agent has in this process. The runs keep it.
    pub(super) has_chosen_policy: bool,
    /// The turn that was left waiting, and how many of its events were shown.
    left_waiting: Option<(RunId, u64)>,
    /// Whether the last turn of this process completed.
    pub(super) has_completed: bool,
    /// Whether a model or policy was chosen since the last message.
    pub(super) has_unsent_choice: bool,
    attachments: Vec<Part>,
    /// The messages that were entered during turns, until the prompt recalls them.
    pub(super) sent_during_turn: Vec<String>,
    pub(super) views: SharedViewState,
    /// The grants that `/approvals` listed.
    listed: Vec<Grant>,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(
        app: &'a App,
        agent: AgentName,
        session: Option<SessionId>,
        again: RepeatedFlags,
    ) -> Result<Self, CliError> {
        let agent = app.runner.agent(&agent)?;
        let (last, forks, model, mode) = (None, false, None, None);
        Ok(Self {
            app,
            again,
            agent,
            session,
            last,
            forks,
            model,
            mode,
            has_chosen_policy: false,
            left_waiting: None,
            has_completed: false,
            has_unsent_choice: false,
            attachments: Vec::new(),
            sent_during_turn: Vec::new(),
            views: SharedViewState::default(),
            listed: Vec::new(),
        })
    }

    /// Chooses the model and the policy with which the last message of the session was sent, unless flags choose others. A
    /// policy that allows all calls is not chosen again, because the person of another day may not expect it.
    pub(super) async fn keep_choice(&mut self, flags: &RunChoice, out: &mut Output) -> Result<(), CliError> {
        let Some(run) = self.newest_run().await? else { return Ok(()) };
        let mut last = self.app.runner.load(&run).await?;
        // A compaction is no message, and has the choice of none.
        while last.started().trigger == Trigger::Compaction
            && let Some(before) = &last.started().predecessor
        {
            last = self.app.runner.load(&before.run.clone()).await?;
        }
        let spec = &last.started().spec;
        if spec.agent != self.agent.name {
            return Ok(());
        }
        let mode = spec.mode.as_ref().filter(|mode| !self.has_chosen_policy && self.agent.has_mode(mode));
        self.mode = mode.filter(|mode| **mode == self.agent.policy.name || !self.allows_all(mode)).cloned();
        if let (Some(mode), None) = (mode, &self.mode) {
            let mode = escape_untrusted(mode);
            out.note(format!(
                "the last message had policy {mode}, which allows all calls; `/policy {mode}` applies it again"
            ));
        }
        let is_other = spec.model != self.agent.model_name && self.agent.models().any(|(name, _)| *name == spec.model);
        if flags.model.is_none() && is_other {
            self.model = Some(spec.model.clone());
        }
        Ok(())
    }

    /// The flags that continue the conversation with the same choice. What was sent is kept by its run, and a flag from before
    /// would replace it.
    pub(super) fn choice(&self, flags: &RunChoice) -> RunChoice {
        let flag = |chosen: Option<String>, flag: &Option<String>| match chosen {
            Some(chosen) => Some(chosen).filter(|_| self.has_unsent_choice),
            None => flag.clone(),
        };
        let model = flag(self.model.as_ref().map(ToString::to_string), &flags.model);
        RunChoice { model, policy: flag(self.mode.clone(), &flags.policy) }
    }

    /// The last turn; `None` if it ended.
    pub(super) async fn unended(&self) -> Result<Option<UnendedTurn>, CliError> {
        let Some(run) = self.newest_run().await? else { return Ok(None) };
        UnendedTurn::of(self.app, &run).await
    }

    pub(super) fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    pub(super) fn agent(&self) -> &AgentName {
        &self.agent.name
    }

    pub(super) fn head(&self) -> String {
        let model = self.model.as_ref().unwrap_or(&self.agent.model_name);
        format!("agent {} · model {model} · policy {}", self.agent.name, escape_untrusted(self.policy()))
    }

    /// Whether a policy allows what no rule decides.
    pub(super) fn allows_all(&self, name: &str) -> bool {
        self.agent.policies().any(|policy| policy.name == name && policy.fallback == Verdict::Allow)
    }

    /// The prompt, with the policy if it was chosen in place of the agent's own, or allows what no rule decides.
    pub(super) fn question(&self) -> String {
        let allows = self.agent.policy.fallback == Verdict::Allow;
        let named = self.chosen_policy().or_else(|| allows.then_some(self.policy()));
        let named = named.map(|policy| format!("{} ", escape_untrusted(policy))).unwrap_or_default();
        format!("\n{named}> ")
    }

    /// The policy that was chosen in place of the agent's own, by a flag or in the conversation.
    fn chosen_policy(&self) -> Option<&str> {
        self.mode.as_deref().or_else(|| self.has_chosen_policy.then_some(self.agent.policy.name.as_str()))
    }

    pub(super) fn policy(&self) -> &str {
        self.mode.as_deref().unwrap_or(&self.agent.policy.name)
    }

    /// Sends a message: starts the next run of the session.
    pub(super) async fn send(&mut self, text: String, out: &mut Output) -> Result<(), CliError> {
        self.refuse_unseen(out).await?;
        let unended = if self.forks { None } else { self.unended().await? };
        if let Some(turn) = unended.as_ref().filter(|turn| !turn.takes_message()) {
            let error = CliError::usage("the last turn has not ended, so the message was not sent");
            return Err(error.with_remedy(format!("{}; Up recalls the message", turn.continuing_keys())));
        }
        if let Some(kept) = unended.as_ref().and_then(|turn| turn.policy_other_than(self.policy())) {
            let (kept, chosen) = (escape_untrusted(kept), escape_untrusted(self.policy()));
            let error = CliError::usage(format!(
                "the last turn has not ended, and continues under policy {kept}, not {chosen}, so the message was not sent"
            ));
            return Err(error.with_remedy(format!(
                "/cancel ends it, and the message then begins a turn under {chosen}; `/policy {kept}` sends it to this turn"
            )));
        }
        let files = mentioned_files(&text);
        let as_text =
            |error: CliError| error.with_remedy("a space after the `@` makes it text; Up recalls the message");
        let mentioned = files.iter().map(|file| attach(file).map_err(as_text)).collect::<Result<Vec<Part>, _>>()?;
        if !files.is_empty() {
            out.note(format!("attached {}", list(files.iter().map(|file| escape_untrusted(&file.to_string_lossy())))));
        }
        note_missing_files(&text, out);
        let mut message = Message::user(text);
        message.content.extend(self.attachments.iter().cloned().chain(mentioned));
        if let Some(turn) = unended {
            if message.content.iter().any(|part| part.as_text().is_none()) {
                let error = CliError::usage("an attachment can only be sent with the first message of a turn");
                return Err(error.with_remedy(turn.continuing_keys()));
            }
            return self.send_to(&turn, message, out).await;
        }
        let runner = &self.app.runner;
        let mode = self.chosen_policy().map(str::to_owned);
        let is_fork = self.forks && self.last.is_some();
        let execution = match &self.last {
            Some(run) if self.forks => {
                let fork = Fork { message: Some(message), mode, ..Fork::default() };
                runner.fork(run, fork).await?
            }
            Some(_) | None => {
                let mut request = Request::new(self.agent.name.clone(), "");
                request.input = message;
                request.session = Some(self.known_session().await?);
                request.model.clone_from(&self.model);
                request.mode = mode;
                self.app.runner.start(request).await?
            }
        };
        (self.forks, self.has_unsent_choice, self.attachments) = (false, false, Vec::new());
        let mut known = runner.journal(&execution.run).await?;
        let own = copied_length(&known);
        known.retain(|entry| entry.seq < own || is_fork);
        // The prompt has shown the message of a fork.
        let added = |entry: &JournalEntry| entry.seq >= own && matches!(entry.event, Event::MessageAdded { .. });
        if let Some(message) = known.iter().position(added) {
            known.truncate(message + 1);
        }
        self.follow(execution, &known, out).await
    }

    /// Continues a turn that has not ended with a message. The calls that wait for approval are denied.
    async fn send_to(&mut self, turn: &UnendedTurn, message: Message, out: &mut Output) -> Result<(), CliError> {
        let run = &turn.run;
        self.app.runner.message(run, message).await?;
        let known = self.app.runner.journal(run).await?;
        self.attachments = Vec::new();
        let approvals: Vec<PendingItem> = turn.pending.iter().filter(|item| item.wants_answer()).cloned().collect();
        if !approvals.is_empty() {
            let denied = || Decision { via: Channel::Terminal, ..denial(Some(SAID_INSTEAD.to_owned())) };
            let calls = approvals.iter().filter_map(PendingItem::call_id);
            let denials: Resume = calls.map(|call| (call.clone(), Answer::from(denied()))).collect();
            // The message is in the journal, so the turn goes on if another process has decided meanwhile.
            if let Err(error) = self.app.operator().record_as_shown(run, denials.partial(), &approvals).await {
                out.warning(escape_untrusted(&error.to_string()));
            }
        }
        let execution = self.app.runner.resume_or_follow(run).await?;
        self.follow(execution, &known, out).await
    }

    /// The session, created with the first message.
    async fn known_session(&mut self) -> Result<SessionId, CliError> {
        if let Some(session) = &self.session {
            return Ok(session.clone());
        }
        let new = NewSession {
            id: None,
            tenant: Tenant::default(),
            agent: self.agent.name.clone(),
            principal: None,
            title: None,
            settings: Default::default(),
            by: None,
        };
        let session = self.app.runner.create_session(new).await?.id;
        self.session = Some(session.clone());
        Ok(session)
    }

    /// Shows a run until it is idle.
    async fn follow(&mut self, execution: Execution, known: &[JournalEntry], out: &mut Output) -> Result<(), CliError> {
        self.last = Some(execution.run.clone());
        self.session = Some(self.app.runner.load(&execution.run).await?.started().session.clone());
        let display = Display::conversation(&self.views, out);
        (self.has_completed, self.left_waiting) = (false, None);
        let options = FollowOptions { messages: Some(&mut self.sent_during_turn), ..Tasks::InTerminal.into() };
        let run = execution.run.clone();
        let exit = settle(self.app, execution, known, display, options, &self.again, out).await?;
        self.has_completed = exit == Exit::Done;
        if !self.has_completed {
            let state = self.app.runner.load(&run).await?;
            self.left_waiting = state.ending().is_none().then(|| (run, state.length()));
        }
        Ok(())
    }

    /// Shows how the turn that was left waiting ended, if another process has continued it.
    pub(super) async fn show_continued(&mut self, out: &mut Output) -> Result<(), CliError> {
        let is_last = |(run, _): &(RunId, u64)| self.last.as_ref() == Some(run);
        let Some((run, shown)) = self.left_waiting.take_if(|left| is_last(left)) else { return Ok(()) };
        let journal = self.app.runner.journal(&run).await?;
        if !journal.iter().any(|entry| matches!(entry.event, Event::Ended { .. })) {
            self.left_waiting = Some((run, shown));
            return Ok(());
        }
        out.note("another process continued the last turn:");
        let known: Vec<JournalEntry> = journal.into_iter().take_while(|entry| entry.seq < shown).collect();
        let display = Display::conversation(&self.views, out);
        Follow::new(self.app, &run, &known, display, Tasks::InTerminal.into()).catch_up(&run, u64::MAX, out).await
    }

    /// Executes a command.
    pub(super) async fn execute(&mut self, command: Command, out: &mut Output) -> Result<(), CliError> {
        match command {
            Command::Help => Command::help(out.width()).iter().for_each(|line| out.line(line)),
            Command::Tools => {
                let mode = self.mode.as_deref();
                tools::print(&self.agent, mode, &self.app.runner.tools(&self.agent.name, mode).await?, out);
            }
            Command::Model(name) => self.choose_model(name, out)?,
            Command::Policy(name) => self.choose_policy(name, out)?,
            Command::Agent(name) => self.choose_agent(name, out)?,
            Command::Attach(file) => {
                self.attachments.push(attach(Path::new(&file))?);
                out.note(format!("{} to the next message", count(self.attachments.len(), "attachment")));
            }
            Command::Approvals if self.unended().await?.is_some() => self.resume(out).await?,
            Command::Approvals => self.approvals(out).await?,
            Command::Revoke(grant) => {
                let revoked = revoke(self.app, &[grant], &who()).await?;
                let active = self.app.runner.grants(&GrantFilter::default()).await?;
                revoked.iter().for_each(|grant| print_revoked(grant, &active, out));
                self.listed.retain(|listed| revoked.iter().all(|grant| grant.id != listed.id));
            }
            Command::Cost => self.cost(out).await?,
            Command::Show(call) => self.show_call(call.as_deref(), out).await?,
            Command::Trace => self.trace(out).await?,
            Command::Resume => self.resume(out).await?,
            Command::Cancel => {
                self.refuse_unseen(out).await?;
                let run = self.last_run().await?;
                self.app.runner.cancel(&run, Some("cancelled in the conversation".to_owned()), None).await?;
                self.left_waiting = None;
                out.note(format!("cancelled {run}"));
            }
            Command::Retry => {
                self.refuse_unseen(out).await?;
                let (mode, model) = (self.chosen_policy().map(str::to_owned), self.model.clone());
                let retry = Retry { mode, model, ..Retry::default() };
                let last = self.last_run().await?;
                if self.app.runner.load(&last).await?.started().trigger == Trigger::Compaction {
                    return Err(CliError::usage("the last turn is a compaction, which cannot be retried")
                        .with_remedy("Up recalls the message before it"));
                }
                let execution = self.app.runner.retry(&last, retry).await?;
                note_ignored_model(self.app, &execution.run, self.model.as_ref(), out).await?;
                let copied = copied(self.app, &execution.run).await?;
                self.follow(execution, &copied, out).await?;
            }
            Command::Compact => {
                let session = self.session.clone().ok_or_else(nothing_yet)?;
                let execution = self.app.runner.compact(SessionCompaction::new(session)).await?;
                let run = execution.run.clone();
                self.follow(execution, &[], out).await?;
                let report = self.app.runner.report(&run).await?;
                if report.status == Status::Completed && report.output.is_none_or(|summary| summary.text.is_empty()) {
                    out.note("nothing was replaced: the conversation is no longer than what a compaction keeps");
                }
            }
            Command::Fork => {
                self.refuse_unseen(out).await?;
                self.last = Some(self.last_run().await?);
                self.forks = true;
                out.note("the next message begins a copy of this conversation, with the model of its last turn and without its grants for a session");
            }
            Command::New => self.start_over(out),
            // The loop of the conversation leaves.
            Command::Quit => {}
        }
        Ok(())
    }

    fn start_over(&mut self, out: &mut Output) {
        (self.session, self.last, self.forks) = (None, None, false);
        out.line(out.paint().bold(self.head()));
    }

    fn choose_model(&mut self, name: Option<String>, out: &mut Output) -> Result<(), CliError> {
        let known = || self.agent.models().map(|(name, _)| name.as_str());
        let current = self.model.as_ref().unwrap_or(&self.agent.model_name).as_str().to_owned();
        if let Some(name) = choice("model", name, known(), &current, out)? {
            (self.model, self.has_unsent_choice) = (Some(ModelName::from(name.as_str())), true);
            out.line(out.paint().bold(self.head()));
        }
        Ok(())
    }

    fn choose_agent(&mut self, name: Option<String>, out: &mut Output) -> Result<(), CliError> {
        let known = self.app.runner.agents().map(|agent| agent.name.as_str());
        if let Some(name) = choice("agent", name, known, self.agent.name.as_str(), out)? {
            self.agent = self.app.runner.agent(&AgentName::from(name.as_str()))?;
            (self.model, self.mode) = (None, None);
            self.start_over(out);
        }
        Ok(())
    }

    /// The commands that revoke the listed grants, for completion.
    pub(super) fn revocations(&self) -> impl Iterator<Item = String> {
        self.listed.iter().map(|grant| format!("/revoke {}", grant.id))
    }

    async fn approvals(&mut self, out: &mut Output) -> Result<(), CliError> {
        let filter = GrantFilter {
            agent: Some(self.agent.name.clone()),
            session: self.session.clone(),
            ..GrantFilter::default()
        };
        self.listed = self.app.runner.grants(&filter).await?;
        let (now, paint) = (jiff::Timestamp::now(), out.paint());
        self.listed.iter().flat_map(|grant| grant_lines(grant, now, paint)).for_each(|line| out.line(line));
        out.note(match &self.listed[..] {
            [] => "no grant is in force; an approval for this session, or always, creates one",
            _ => "/revoke GRANT revokes one; Tab completes its id",
        });
        Ok(())
    }

    async fn resume(&mut self, out: &mut Output) -> Result<(), CliError> {
        let run = self.last_run().await?;
        let Some(turn) = UnendedTurn::of(self.app, &run).await? else {
            let status = self.app.runner.report(&run).await?.status;
            return Err(CliError::usage(format!("the last turn is {}, so nothing is pending", status.as_str())));
        };
        if let Some(kept) = turn.policy_other_than(self.policy()) {
            out.warning(format!("this turn continues under policy {}", escape_untrusted(kept)));
        }
        let known = self.app.runner.journal(&run).await?;
        let execution = self.app.runner.resume_or_follow(&run).await?;
        self.follow(execution, &known, out).await
    }

    /// The latest run, for a command that needs one.
    pub(super) async fn last_run(&self) -> Result<RunId, CliError> {
        self.newest_run().await?.ok_or_else(nothing_yet)
    }

    /// The latest run of the session, which another process may have continued. `None` before the first message.
    pub(super) async fn newest_run(&self) -> Result<Option<RunId>, CliError> {
        let Some(session) = &self.session else { return Ok(self.last.clone()) };
        let row = self.app.runner.session(&Tenant::default(), session).await?;
        Ok(row.and_then(|row| row.head).map(|head| head.run).or_else(|| self.last.clone()))
    }
}

/// The chosen name, if it is known. Without one, lists the names.
pub(super) fn choice<'n>(
    what: &str,
    name: Option<String>,
    known: impl Iterator<Item = &'n str>,
    current: &str,
    out: &mut Output,
) -> Result<Option<String>, CliError> {
    let known: Vec<&str> = known.collect();
    let Some(name) = name else {
        for name in &known {
            let mark = if *name == current { "●" } else { " " };
            out.line(format!("  {mark} {}", escape_untrusted(name)));
        }
        return Ok(None);
    };
    if known.contains(&name.as_str()) {
        return Ok(Some(name));
    }
    let message = format!("there is no {what} `{}`; there are: {}", escape_untrusted(&name), list(known));
    Err(CliError::not_found(message))
}

pub(super) fn nothing_yet() -> CliError {
    CliError::usage("this conversation has no message yet")
}
