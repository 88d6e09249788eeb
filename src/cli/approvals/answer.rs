//! `toolgate approvals answer`: answers a question of the model or of an MCP server.

use clap::Args;

use super::continue_run::ContinueOptions;
use crate::app::App;
use crate::cli::answers::{choice, model_question, reactions};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::text::list;
use crate::core::id::{CallId, RunId};
use crate::core::run::{AnswerForm, Channel, ElicitationAnswer, HumanAnswer, Resume};
use crate::core::tool::{Ask, Choice};

const EXAMPLES: &str = "\
Examples:
  toolgate approvals answer last call_4 'the blue one, please'
  toolgate approvals answer last call_4 --choose blue
  toolgate approvals answer last call_6 '{\"seats\": 2}'      answers for the server of a call";

/// Answer a question of the model or of an MCP server, and resume the run
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Answer {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    /// The call with the question
    call: String,

    /// The answer: text for the model, JSON for a server
    answer: Option<String>,

    /// Chooses this option (repeatable if several may be chosen)
    #[arg(long, value_name = "OPTION")]
    choose: Vec<String>,

    /// Allows sending a call a second time with the answers, if it had begun when its server asked and was cancelled
    #[arg(long)]
    repeat: bool,

    #[command(flatten)]
    on: ContinueOptions,
}

impl Answer {
    /// Whether the last output line must be a result, even after an error.
    pub(super) fn ends_with_result(&self) -> bool {
        self.on.json
    }

    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = self.on.open().await?;
        let ended = self.decide(&app, out).await;
        ContinueOptions::close(ended, app, out).await
    }

    async fn decide(&self, app: &App, out: &mut Output) -> Result<Exit, CliError> {
        let run = find(app, &self.run).await?;
        let resume = self.resume(app, &run).await?;
        self.on.give(app, &run, resume, out).await
    }

    async fn resume(&self, app: &App, run: &RunId) -> Result<Resume, CliError> {
        let call = CallId::from(self.call.as_str());
        let waiting = app.operator().inbox_of(run).await?.waiting;
        let here = waiting.iter().find(|waiting| *waiting.call() == call);
        let resume = Resume::default().partial();
        match here.map(|waiting| (waiting.item.form(), waiting.version)) {
            Some((AnswerForm::Choice(ask), _)) => Ok(resume.with(call, self.answered(self.choice(ask)?))),
            Some((AnswerForm::Elicitation { questions, .. }, version)) => {
                let reactions = reactions(self.answer.as_deref(), questions);
                let reactions = reactions.map_err(|why| CliError::usage(format!("call `{call}`: {why}")))?;
                let given =
                    ElicitationAnswer { reactions, by: self.on.by(), via: Channel::CommandLine, repeat: self.repeat };
                Ok(Resume { expected_version: Some(version), ..resume.with(call, given) })
            }
            Some((AnswerForm::Decision(_), _)) => {
                let message = format!("call `{call}` requires approval, not an answer");
                Err(CliError::usage(message).with_remedy(format!("toolgate approvals approve {run} {call}, or deny")))
            }
            // Repeating an earlier answer is idempotent; the runner rejects a different one.
            Some((AnswerForm::Result { .. } | AnswerForm::Background(_) | AnswerForm::Continue { .. }, _)) | None => {
                match model_question(&call, &app.runner.journal(run).await?) {
                    Some(ask) => Ok(resume.with(call, self.answered(self.choice(&ask)?))),
                    None => {
                        let others = list(waiting.iter().map(|waiting| waiting.call().to_string()));
                        let message = format!("call `{call}` of run {run} has no pending question");
                        Err(CliError::not_found(message).with_remedy(format!("pending calls of this run: {others}")))
                    }
                }
            }
        }
    }

    fn answered(&self, choice: Choice) -> HumanAnswer {
        HumanAnswer { choice, by: self.on.by(), via: Channel::CommandLine }
    }

    fn choice(&self, ask: &Ask) -> Result<Choice, CliError> {
        match (&self.answer, self.choose.is_empty()) {
            (Some(text), true) => Ok(choice(text, ask)),
            (text, false) => Ok(Choice { chosen: self.choose.clone(), text: text.clone() }),
            (None, true) => {
                let remedy = match ask.options.is_empty() {
                    true => "write it after the call".to_owned(),
                    false => format!("choose with --choose: {}", list(&ask.options)),
                };
                Err(CliError::usage("the answer is missing").with_remedy(remedy))
            }
        }
    }
}
