//! `toolgate resume`: answers the required actions of a run and resumes it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use super::answers::{self, CallArg, GrantMatch};
use super::approvals::note_context;
use super::binding_digest::{self, CallDigest};
use super::caller::Caller;
use super::drive_to_idle::{ResultLine, settle};
use super::envelope;
use super::error::CliError;
use super::exit::Exit;
use super::follow::Display;
use super::follow_options::{FollowOptions, Tasks};
use super::interrupt::OnInterrupt;
use super::output::Output;
use super::refusal;
use super::run_arg::find;
use super::setup::{self, ConfigFlag, ConfigOverrides};
use super::stdin;
use crate::app::App;
use crate::core::chat::{Message, Usd};
use crate::core::id::{CallId, RunId};
use crate::core::run::{Answer, Input, JournalEntry, Resume, Scope, TighterLimits};
use crate::core::trace::Trace;
use crate::runner::envelope::Envelope;
use crate::runner::{Execution, RunnerError};

/// The poll interval for a run that another process executes.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// The extra time after a lease, before the wait for its end stops.
const LEASE_MARGIN: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  toolgate resume last --approve call_2
  toolgate resume last --approve-session call_2 --match tool
  toolgate resume run_0199… --result call_3='{\"status\": \"refunded\"}'
  toolgate resume last --deny call_2='not before Friday' --result call_3='done'
  toolgate resume last --answer call_4='{\"seats\": 2}'
  toolgate resume last --answer call_9='the blue one'
  toolgate resume last --wait
  toolgate resume last --continue
  my-app | toolgate resume run_0199… --json --file -
  toolgate resume --envelope run.json --approve call_2

A file of answers:
  {\"answers\": [
     {\"type\": \"result\", \"call_id\": \"call_3\", \"output\": {\"status\": \"refunded\"}},
     {\"type\": \"result\", \"call_id\": \"call_4\", \"error\": \"the bank is closed\"},
     {\"type\": \"result\", \"call_id\": \"call_5\", \"abandoned\": true},
     {\"type\": \"decision\", \"call_id\": \"call_2\", \"decision\": \"approve\", \"scope\": \"always\",
      \"match\": \"arguments\", \"expires_at\": \"2027-01-01T00:00:00Z\", \"reason\": \"as agreed\",
      \"digest\": \"sha256:…\"},
     {\"type\": \"decision\", \"call_id\": \"call_7\", \"decision\": \"approve\",
      \"edited_arguments\": {\"cents\": 100}},
     {\"type\": \"decision\", \"call_id\": \"call_8\", \"decision\": \"deny\",
      \"reason\": \"not before Friday\", \"by\": \"kim\"},
     {\"type\": \"answer\", \"call_id\": \"call_9\", \"chosen\": [\"blue\"], \"text\": \"the dark one\"},
     {\"type\": \"elicitation\", \"call_id\": \"call_6\",
      \"responses\": {\"booking\": {\"action\": \"accept\", \"content\": {\"seats\": 2}}}}],
   \"continue\": false, \"partial\": false, \"expected_version\": 17}

It is the body of a resume over HTTP; `by` names the author of an answer. `scope` is once, session
or always; `match` is tool or arguments; `digest` is the digest that `toolgate approvals list
--json` shows; the decision is rejected if the call changed since.

`repeat: true` beside the `responses` is `--repeat`: a call that had begun when its server asked,
and was cancelled, is sent a second time.

Without answers, the command resumes a run whose process died. For a pending run it asks you in a
terminal, and lists the pending items elsewhere. It polls MCP tasks once; in a terminal and with
--wait it waits for them, and Ctrl-C leaves the run pending. Repeating the same answers changes
nothing. Exit codes are those of `toolgate run`.";

/// Answer the required actions of a run, and resume it
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ResumeRun {
    /// The run: its id, a unique beginning or end of it, or `last`
    #[arg(required_unless_present = "envelope")]
    run: Option<String>,

    /// The run as a signed envelope from `toolgate runs export --signed`; the store need not contain it. `-` reads
    /// standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "message"])]
    envelope: Option<PathBuf>,

    #[command(flatten)]
    config: ConfigFlag,

    #[command(flatten)]
    answers: AnswerArgs,

    /// Waits for MCP tasks (calls that continue at their servers)
    #[arg(long)]
    wait: bool,

    /// Whether the first Ctrl-C cancels the run, or pauses it after its step in progress
    #[arg(long, value_name = "EFFECT", value_enum, default_value_t)]
    on_interrupt: OnInterrupt,

    /// A message to add to the run
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,

    /// Prints one lifecycle event per line as JSON, and the result as the last line
    #[arg(long)]
    pub(super) json: bool,

    /// Prints nothing but the answer and what is pending
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,

    #[command(flatten)]
    changes: ConfigOverrides,

    #[command(flatten)]
    caller: Caller,
}

/// Answers, as flags or as a file.
#[derive(Args, Debug)]
#[command(next_help_heading = "Answers")]
struct AnswerArgs {
    /// The result of an external call; JSON, or else text
    #[arg(long, value_name = "CALL_ID=JSON_OR_TEXT", value_parser = answers::with_value)]
    result: Vec<CallArg>,

    /// An external call failed; the model reads why
    #[arg(long, value_name = "CALL_ID=TEXT", value_parser = answers::with_value)]
    error: Vec<CallArg>,

    /// An external call will not be run
    #[arg(long, value_name = "CALL_ID")]
    abandon: Vec<String>,

    /// A call may run, this once
    #[arg(long, value_name = "CALL_ID")]
    approve: Vec<String>,

    /// A call may run, and so may further calls of its tool in this session with the same arguments
    #[arg(long, value_name = "CALL_ID")]
    approve_session: Vec<String>,

    /// A call may run, and so may further calls of its tool by this agent with the same arguments, in any session
    #[arg(long, value_name = "CALL_ID")]
    approve_always: Vec<String>,

    /// Which later calls --approve-session and --approve-always cover: those with exactly the same arguments, or all of
    /// the tool [default: arguments]
    #[arg(long = "match", value_name = "MATCH", value_enum)]
    coverage: Option<GrantMatch>,

    /// A call may not run; the model reads why
    #[arg(long, value_name = "CALL_ID[=REASON]", value_parser = answers::addressed)]
    deny: Vec<CallArg>,

    /// A call may run with these arguments instead
    #[arg(long, value_name = "CALL_ID=JSON", value_parser = answers::with_value)]
    edit: Vec<CallArg>,

    /// An answer to the model's question: text, or one of its options. Or an answer to a call's server: the fields of
    /// its form, or by key: {"KEY": {"action": "accept", "content": {…}}}; without `=` an address was visited, or a
    /// form's defaults apply
    #[arg(long, value_name = "CALL_ID[=TEXT_OR_JSON]", value_parser = answers::addressed)]
    answer: Vec<CallArg>,

    /// Declines the question of a call's server
    #[arg(long, value_name = "CALL_ID")]
    decline: Vec<String>,

    /// A call that had begun when its server asked, and was cancelled, may be sent a second time with its answers
    #[arg(long, value_name = "CALL_ID")]
    repeat: Vec<String>,

    /// The digest of the call as the pending list shows it; if the call changed since, the command rejects all answers
    #[arg(long, value_name = "CALL_ID=DIGEST", value_parser = binding_digest::at_call)]
    digest: Vec<CallDigest>,

    /// Answers from a JSON file; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Continues a paused run
    #[arg(long = "continue")]
    continues: bool,

    /// With --continue: the new limit of model calls
    #[arg(long, value_name = "N", requires = "continues")]
    max_iterations: Option<u32>,

    /// With --continue: the new limit of tokens
    #[arg(long, value_name = "N", requires = "continues")]
    max_tokens: Option<u64>,

    /// With --continue: the new limit of the cost
    #[arg(long, value_name = "USD", requires = "continues", value_parser = usd)]
    max_cost_usd: Option<Usd>,

    /// Leaves unanswered items pending, instead of rejecting the answers
    #[arg(long)]
    partial: bool,
}

impl ResumeRun {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        // Reports invalid answers before it opens anything.
        let answers = self.answers.read()?;
        let trace = self.caller.trace(out)?;
        let mut settings = setup::settings(&self.config)?;
        self.changes.apply(&mut settings, None)?;
        let app = setup::open(settings).await?;
        let ended = self.resume_run(&app, answers, trace, out).await;
        setup::close_after(&ended, app, out).await;
        ended
    }

    async fn resume_run(
        &self,
        app: &App,
        mut answers: Resume,
        trace: Option<Trace>,
        out: &mut Output,
    ) -> Result<Exit, CliError> {
        if let Some(envelope) = &self.envelope {
            return self.resume_envelope(app, &envelope::read(envelope)?, answers, trace, out).await;
        }
        let run = find(app, self.run.as_deref().unwrap_or_default()).await?;
        let known = app.runner.journal(&run).await?;
        let mut seen = known.len() as u64;
        self.add_answers(&mut answers, &known)?;
        if let Some(text) = &self.message {
            // Add the message first, so that the turn after the answers includes it.
            let message = Input::Message(Message::user(text.clone()));
            if answers.is_empty() {
                let execution = self.claim_run(app, &run, message, trace, out).await?;
                return self.settle(app, execution, &known, out).await;
            }
            seen = app.runner.message(&run, Message::user(text.clone())).await?.version;
        }
        let names_a_question = |answer: &Answer| answer.decision().is_some() || answer.elicitation().is_some();
        if answers.answers.iter().any(|(_, answer)| names_a_question(answer)) {
            // An approval covers the call shown now, also when an earlier call got the same approval.
            answers.expected_version.get_or_insert(seen);
        }
        if answers.is_empty() && Display::choose(self.json, self.quiet, out).is_live() {
            note_context(app, &run, out).await?;
        }
        let decided = refusal::decided(&answers);
        match self.claim_run(app, &run, Input::Resume(answers), trace, out).await {
            Ok(execution) => {
                let exit = self.settle(app, execution, &known, out).await?;
                refusal::exit_after(app, &run, exit, &decided).await
            }
            Err(error) => self.refused(app, &run, error, out).await,
        }
    }

    /// A rejected answer does not change the run. With `--json`, the last line shows the state of the run, where there
    /// is one.
    async fn refused(&self, app: &App, run: &RunId, error: RunnerError, out: &mut Output) -> Result<Exit, CliError> {
        let (Ok(journal), Ok(report)) = (app.runner.journal(run).await, app.runner.report(run).await) else {
            return Err(error.into());
        };
        let exit = refusal::exit(&error);
        let error = refusal::with_journal_details(error, &journal);
        super::report::error(&error, out);
        if self.json {
            out.json(&ResultLine::refused(&report, &error));
        }
        Ok(exit)
    }

    /// Parses the answers to questions, using the questions in the journal.
    fn add_answers(&self, answers: &mut Resume, known: &[JournalEntry]) -> Result<(), CliError> {
        let (to_the_model, to_servers) = answers::questions(&self.answers.answer, known);
        answers.answers.extend(to_the_model.into_iter().map(|(call, answer)| (call, answer.into())));
        let given = answers::inputs(&to_servers, &self.answers.decline, known)?;
        answers.answers.extend(given.into_iter().map(|(call, given)| (call, given.into())));
        answers::repeat(&mut answers.answers, &self.answers.repeat)
    }

    /// Resumes a run from the caller's signed envelope.
    async fn resume_envelope(
        &self,
        app: &App,
        envelope: &Envelope,
        mut answers: Resume,
        trace: Option<Trace>,
        out: &mut Output,
    ) -> Result<Exit, CliError> {
        let known = app.runner.journal_in(envelope)?;
        self.add_answers(&mut answers, &known)?;
        let (run, decided) = (&envelope.run_id, refusal::decided(&answers));
        let here = app.runner.journal(run).await.map_or(0, |journal| journal.len());
        match app.operator().resume_envelope(envelope, answers, trace).await {
            Ok(execution) => {
                if here > known.len() && !self.json && !self.quiet {
                    out.note(format!("{run} was resumed with these answers already; this is what happened:"));
                }
                let exit = self.settle(app, execution, &known, out).await?;
                refusal::exit_after(app, run, exit, &decided).await
            }
            Err(error) => self.refused(app, run, error, out).await,
        }
    }

    /// Claims the run. Waits for a run of another process until the lease of a dead process would expire.
    async fn claim_run(
        &self,
        app: &App,
        run: &RunId,
        input: Input,
        trace: Option<Trace>,
        out: &mut Output,
    ) -> Result<Execution, RunnerError> {
        let limit = app.settings.lease + LEASE_MARGIN;
        let (operator, began) = (app.operator(), Instant::now());
        loop {
            match operator.resume(run, input.clone(), trace.clone()).await {
                Err(RunnerError::DrivenElsewhere { .. }) if began.elapsed() < limit => {
                    if !self.quiet && !self.json && began.elapsed() < LOOK_AGAIN {
                        let seconds = limit.as_secs();
                        out.note(format!(
                            "another process executes the run; if it died, the run is free within {seconds} s"
                        ));
                    }
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                other => return other,
            }
        }
    }

    async fn settle(
        &self,
        app: &App,
        execution: Execution,
        known: &[JournalEntry],
        out: &mut Output,
    ) -> Result<Exit, CliError> {
        let display = Display::choose(self.json, self.quiet, out);
        let options = FollowOptions::new(Tasks::waited_for(self.wait), self.on_interrupt);
        settle(app, execution, known, display, options, &setup::again(&self.config, &self.changes), out).await
    }
}

impl AnswerArgs {
    fn read(&self) -> Result<Resume, CliError> {
        if self.coverage.is_some() && self.approve_session.is_empty() && self.approve_always.is_empty() {
            let message = "an approval of one call covers nothing else";
            return Err(CliError::usage(message).with_remedy("--match goes with --approve-session or --approve-always"));
        }
        let value = |given: &CallArg| given.value.clone().unwrap_or_default();
        let output = |given: &CallArg| match answers::json_or_text(&value(given)) {
            Ok(output) => Ok((given.call.clone(), Answer::output(output))),
            Err(why) => Err(CliError::usage(format!("--result {}: {why}", given.call))),
        };
        let outputs = self.result.iter().map(output).collect::<Result<Vec<_>, _>>()?.into_iter();
        let errors = self.error.iter().map(|error| (error.call.clone(), Answer::error(value(error))));
        let abandoned = self.abandon.iter().map(|call| (CallId::from(call.as_str()), Answer::abandoned()));
        let decisions = answers::decisions(
            [
                (&self.approve, Scope::Once),
                (&self.approve_session, Scope::Session),
                (&self.approve_always, Scope::Always),
            ],
            self.coverage.map(Into::into),
            &self.deny,
            &self.edit,
        )?;
        let decisions = decisions.into_iter().map(|(call, decision)| (call, decision.into()));
        let answers = outputs.chain(errors).chain(abandoned).chain(decisions).collect();
        let limits = TighterLimits {
            max_iterations: self.max_iterations,
            max_tokens: self.max_tokens,
            max_cost_usd: self.max_cost_usd,
            ..TighterLimits::default()
        };
        let unpause = self.continues.then(|| answers::unpause(limits));
        let flags = Resume { answers, unpause, partial: self.partial, ..Resume::default() };
        let mut resume = answers::merge(flags, self.file()?);
        binding_digest::bind(&mut resume, &self.digest)?;
        Ok(resume)
    }

    fn file(&self) -> Result<Option<Resume>, CliError> {
        let Some(path) = &self.file else { return Ok(None) };
        let mut text = String::new();
        let (name, read) = if path.as_os_str() == "-" {
            ("standard input".to_owned(), stdin::read().map(|read| text = read))
        } else {
            let read = std::fs::read_to_string(path).map(|read| text = read);
            (format!("`{}`", path.display()), read)
        };
        read.map_err(|error| CliError::file("the answers", path, &error))?;
        answers::read(&text, &name).map(Some)
    }
}

fn usd(text: &str) -> Result<Usd, String> {
    let amount: f64 = text.parse().map_err(|_| "an amount in US dollars, such as 0.50".to_owned())?;
    Usd::try_from(amount).map_err(|error| error.to_string())
}
