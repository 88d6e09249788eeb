//! `toolgate chat`: a conversation at the terminal. Each message is a run of one session; servers and model connections
//! stay open between them.

mod command;
mod conversation;
mod history;
mod inspection;
mod policy_choice;
mod shown_turns;
mod unended_turn;

use clap::Args;

use self::command::Command;
use self::conversation::Conversation;
use super::error::CliError;
use super::exit::Exit;
use super::interrupt::Interrupts;
use super::output::Output;
use super::prompt::{self, Menu, Recall};
use super::prompt_line::{Entered, LineInput, next_line};
use super::session_arg;
use super::setup::{self, ConfigFlag, ConfigOverrides, RunChoice};
use super::text::{age, count, one_line};
use crate::app::App;
use crate::config::StoreSettings;
use crate::core::id::{AgentName, SessionId, Tenant};

/// The number of conversations that `--pick` offers.
const OFFERED: usize = 10;

const EXAMPLES: &str = "\
Examples:
  toolgate chat
  toolgate chat --agent reviewer --policy plan
  toolgate chat -c                     continues the last conversation
  toolgate chat --pick                 asks which conversation to continue

Type a message, or /help for the commands. Esc interrupts a turn and keeps what is done; Ctrl-D leaves.";

/// Converse with an agent: servers stay connected between messages
#[derive(Args, Debug, Default)]
#[command(after_help = EXAMPLES)]
pub(super) struct Chat {
    #[command(flatten)]
    config: ConfigFlag,

    /// Which agent [default: that of the conversation; for a new one the only agent, or else `assistant`]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Continues this conversation: the id of a session, a unique beginning of it, or `last`
    #[arg(long, value_name = "ID", conflicts_with_all = ["continues", "pick"])]
    session: Option<String>,

    /// Continues the last conversation
    #[arg(long = "continue", short = 'c', conflicts_with = "pick")]
    continues: bool,

    /// Asks which conversation to continue
    #[arg(long, short)]
    pick: bool,

    #[command(flatten)]
    changes: ConfigOverrides,

    #[command(flatten)]
    choice: RunChoice,
}

impl Chat {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        if !out.is_terminal() || !prompt::is_person_at_terminal() {
            return Err(CliError::usage("a conversation needs a terminal")
                .with_remedy("`toolgate run -c \"…\"` continues one from a script"));
        }
        let mut settings = setup::settings(&self.config)?;
        self.changes.apply(&mut settings, None)?;
        self.choice.apply(&mut settings, None)?;
        if self.session.is_none() && !self.continues && !self.pick {
            // Without a model, nothing is written.
            setup::require_model(&settings, &setup::agent(&settings, self.agent.as_deref())?)?;
        }
        let app = setup::open(settings).await?;
        prompt::claim_terminal();
        let ended = self.converse(&app, out).await;
        setup::close_after(&ended, app, out).await;
        ended
    }

    async fn converse(&self, app: &App, out: &mut Output) -> Result<Exit, CliError> {
        let mut interrupts = Interrupts::listen();
        let session = match self.session(app, &mut interrupts, out).await {
            Err(CliError::Interrupted) => return Ok(Exit::Cancelled),
            found => found?,
        };
        let agent = match (&self.agent, &session) {
            (None, Some(id)) => app.runner.session(&Tenant::default(), id).await?.map(|row| row.agent),
            _ => None,
        };
        let agent = match agent {
            Some(agent) => agent,
            None => setup::agent(&app.settings, self.agent.as_deref())?,
        };
        setup::require_model(&app.settings, &agent)?;
        let again = setup::again(&self.config, &self.changes);
        let mut conversation = Conversation::new(app, agent, session, again.in_conversation())?;
        conversation.has_chosen_policy = self.choice.policy.is_some() || self.changes.variant.is_some();
        conversation.keep_choice(&self.choice, out).await?;
        let mut recall = Recall::default();
        self.begin(&conversation, &mut recall, out).await?;
        let mut is_leaving = false;
        loop {
            recall.back_tab = Some(conversation.next_policy());
            recall.sends_typed_ahead = conversation.has_completed;
            recall.choices = &Command::CHOICES;
            recall.words = Command::names();
            recall.words.extend(conversation.revocations());
            let entered =
                next_line(&conversation.question(), LineInput::Message(recall.clone()), &mut interrupts).await;
            if let Err(error) = conversation.show_continued(out).await {
                super::report::error(&error, out);
            }
            let line = match entered {
                Entered::Line(line) if line.trim().is_empty() && conversation.unended().await?.is_none() => {
                    continue;
                }
                Entered::Line(line) => line,
                Entered::Interrupt if !is_leaving => {
                    is_leaving = true;
                    out.note("press Ctrl-C again, or Ctrl-D, to leave");
                    continue;
                }
                Entered::Interrupt | Entered::End => break,
                Entered::Leave => return Ok(Exit::Terminated),
            };
            is_leaving = false;
            if !line.trim().is_empty() {
                recall.messages.push(line.clone());
            }
            let done = match Command::parse(&line) {
                None if line.trim().is_empty() => conversation.execute(Command::Resume, out).await,
                Some(Ok(Command::Quit)) => break,
                Some(Ok(command)) => conversation.execute(command, out).await,
                Some(Err(reason)) => Err(CliError::usage(reason)),
                None => conversation.send(line, out).await,
            };
            recall.messages.append(&mut conversation.sent_during_turn);
            match done {
                Ok(()) => {}
                Err(error @ (CliError::Terminated(_) | CliError::Interrupted)) => return Err(error),
                Err(error @ (CliError::Coded { .. } | CliError::Config(_))) => super::report::error(&error, out),
            }
            // Ctrl-C during a turn was for the turn.
            interrupts = Interrupts::listen();
        }
        if let (Some(session), false) = (conversation.session(), app.settings.store == StoreSettings::Memory) {
            let again = setup::again_for_new(&self.config, &self.changes, &conversation.choice(&self.choice));
            out.note(format!("continue with:\n  {}", again.command(&["chat", "--session", session.as_str()])));
        }
        Ok(Exit::Done)
    }

    /// The conversation to continue; `None` for a new one.
    async fn session(
        &self,
        app: &App,
        interrupts: &mut Interrupts,
        out: &mut Output,
    ) -> Result<Option<SessionId>, CliError> {
        let tenant = Tenant::default();
        match self.session.as_deref().or(self.continues.then_some("last")) {
            Some(named) => Ok(Some(session_arg::find(app, &tenant, named).await?)),
            None if self.pick => self.picked(app, interrupts, out).await,
            None => Ok(None),
        }
    }

    async fn picked(
        &self,
        app: &App,
        interrupts: &mut Interrupts,
        out: &mut Output,
    ) -> Result<Option<SessionId>, CliError> {
        let (tenant, agent) = (Tenant::default(), self.agent.as_deref().map(AgentName::from));
        let mut rows = Vec::new();
        for session in session_arg::last_used(app, &tenant, agent.as_ref()).await?.iter().take(OFFERED) {
            rows.extend(app.runner.session(&tenant, session).await?);
        }
        if rows.is_empty() {
            out.note("there is no conversation yet; this is the first");
            return Ok(None);
        }
        let now = jiff::Timestamp::now();
        let options = rows.iter().map(|row| {
            let runs = count(usize::try_from(row.runs).unwrap_or(usize::MAX), "turn");
            let title = one_line(&row.title, out.width().saturating_sub(40).max(20));
            let head = row.head.as_ref().filter(|head| !head.status.is_ended());
            let open = head.map(|head| format!("{} · ", head.status.as_str())).unwrap_or_default();
            format!("{:<9} {:>5} ago  {open}{title}", runs, age(row.last_used_at(), now))
        });
        let menu = Menu::new(options.collect());
        loop {
            let question = "which one (its number; empty: a new conversation): ";
            match next_line(question, LineInput::Choice(menu.clone()), interrupts).await {
                Entered::Line(line) if line.trim().is_empty() => return Ok(None),
                Entered::Line(line) => {
                    if let Some(row) = prompt::position(&line, rows.len()).and_then(|position| rows.get(position)) {
                        return Ok(Some(row.id.clone()));
                    }
                    out.note(format!("there is no number {}", one_line(&line, 20)));
                }
                Entered::Interrupt | Entered::End | Entered::Leave => return Err(CliError::Interrupted),
            }
        }
    }

    /// Prints the head of the conversation, and the end of one that is continued.
    async fn begin(
        &self,
        conversation: &Conversation<'_>,
        recall: &mut Recall,
        out: &mut Output,
    ) -> Result<(), CliError> {
        let paint = out.paint();
        out.line(paint.bold(conversation.head()));
        out.line(paint.dim("/help lists the commands, Esc interrupts a turn, Ctrl-D leaves"));
        let app = conversation.app;
        let scripted = setup::stand_in_warning(&app.settings, conversation.agent());
        for warning in app.warnings_of(conversation.agent()).iter().chain(&scripted) {
            out.warning(warning);
        }
        let session = conversation.session();
        let messages = match session {
            Some(session) => app.runner.session_messages(&Tenant::default(), session).await?,
            None => Vec::new(),
        };
        recall.messages = history::recalled(app, conversation.agent(), session, &messages).await?;
        conversation.show_history(&messages, out).await?;
        if let Some(turn) = conversation.unended().await? {
            let journal = app.runner.journal(&turn.run).await?;
            recall.messages.extend(history::unread(&journal, &recall.messages));
            out.note(format!("the last turn has not ended; {}", turn.continuing_keys()));
        }
        // Servers start while the user types.
        let (runner, agent) = (app.runner.clone(), conversation.agent().clone());
        tokio::spawn(async move { runner.tools(&agent, None).await });
        Ok(())
    }
}
