//! `toolgate demo`: the main use case in half a minute, without an API key and without a network.
//!
//! Only the model's messages are scripted. The MCP server is a real process, and the calls, checks, waits and the
//! journal are those of any run. The demo uses the files of `examples/demo`, which also work by hand.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::answers::approval;
use super::drive_to_idle::until_idle;
use super::error::CliError;
use super::exit::Exit;
use super::follow::{Display, Follow};
use super::follow_options::Tasks;
use super::output::Output;
use super::setup::{self, ConfigFlag, ConfigOverrides};
use super::text::list;
use super::view::{AnswerPlacement, DisplaySettings, LiveView, RepeatedFlags};
use super::wrap::hanging;
use crate::app::App;
use crate::config::{ModelSettings, Settings};
use crate::core::id::RunId;
use crate::core::run::{Answer, AnswerForm, Decision, Input, PendingItem, Resume, Scope, Status};
use crate::runner::{Report, Request};

const FILES: [(&str, &str); 3] = [
    ("toolgate.yaml", include_str!("../../examples/demo/toolgate.yaml")),
    ("policy.yaml", include_str!("../../examples/demo/policy.yaml")),
    ("conversation.yaml", include_str!("../../examples/demo/conversation.yaml")),
];
const MESSAGE: &str = "Ada Lindqvist says that her grinder is late. Please sort it out.";
/// More pending states than the demo needs. The limit stops a real model that asks without end.
const MOST_RESTS: usize = 12;

const EXAMPLES: &str = "\
With OPENAI_API_KEY, or TOOLGATE_MODEL_URL and TOOLGATE_MODEL, set, that model replaces the scripted one.";

/// See a whole run: tiers, parallel calls, a corrected mistake, an approval, and an external call
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Demo {
    /// The folder for its files and its database
    #[arg(long, value_name = "DIR", default_value = ".toolgate/demo")]
    dir: PathBuf,
}

impl Demo {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        write_files(&self.dir)?;
        let config = ConfigFlag { config: Some(self.dir.join("toolgate.yaml")) };
        print_note(
            out,
            "A customer writes to the support desk. The desk's agent has the tools of an MCP server, the shop, and one \
             tool that the shop's own application runs: issue_refund.",
        );
        if is_played(&setup::settings(&config)?) {
            print_note(
                out,
                "Watch: turn 1 asks for three calls, and the one of higher priority runs first; turn 2 runs two at once \
                 and is refused a third, whose argument does not fit the tool's schema; turn 3 corrects it.",
            );
        }
        let mut scene = Scene { config: &config, run: None };
        let mut report = scene.play(None, out).await?;
        for _ in 0..MOST_RESTS {
            if report.status != Status::Pending {
                break;
            }
            let answers = answers(&report.pending, out);
            report = scene.play(Some(answers), out).await?;
        }
        conclude(&report, &setup::again(&config, &ConfigOverrides::default()), out);
        Ok(Exit::from(report.status))
    }
}

fn write_files(folder: &Path) -> Result<(), CliError> {
    fs::create_dir_all(folder).map_err(|error| CliError::file("the folder", folder, &error))?;
    for (name, text) in FILES {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| CliError::file("the file", &path, &error))?;
    }
    Ok(())
}

/// The run. Each step opens the program again, because the database holds all the state that the run needs.
struct Scene<'a> {
    config: &'a ConfigFlag,
    run: Option<RunId>,
}

impl Scene<'_> {
    async fn play(&mut self, answers: Option<Resume>, out: &mut Output) -> Result<Report, CliError> {
        let settings = setup::settings(self.config)?;
        let agent = setup::agent(&settings, None)?;
        let app = setup::open(settings).await?;
        let played = self.act(&app, Request::new(agent, MESSAGE), answers, out).await;
        setup::close_after(&played, app, out).await;
        played
    }

    async fn act(
        &mut self,
        app: &App,
        request: Request,
        answers: Option<Resume>,
        out: &mut Output,
    ) -> Result<Report, CliError> {
        let look = DisplaySettings { paint: out.paint(), width: out.width() };
        let live_view = LiveView::new(look, AnswerPlacement::Inline).prompting();
        let display = Display::Live(Box::new(if out.shows_passing() { live_view.typesetting() } else { live_view }));
        let (execution, known) = match (&self.run, answers) {
            (Some(run), Some(answers)) => {
                let known = app.runner.journal(run).await?;
                (app.operator().resume(run, Input::Resume(answers), None).await?, known)
            }
            _ => (app.runner.start(request).await?, Vec::new()),
        };
        self.run = Some(execution.run.clone());
        let run = execution.run.clone();
        until_idle(&mut Follow::new(app, &run, &known, display, Tasks::InTerminal.into()), execution, out).await
    }
}

/// Whether the model is scripted.
fn is_played(settings: &Settings) -> bool {
    settings.models.values().all(|model| match model {
        ModelSettings::Scripted { .. } => true,
        ModelSettings::Http(_) | ModelSettings::Missing { .. } => false,
    })
}

/// Answers as the person and as the application, and prints each answer.
fn answers(items: &[PendingItem], out: &mut Output) -> Resume {
    let mut resume = Resume::default();
    for (item, call) in items.iter().filter_map(|item| Some((item, item.call()?))) {
        let (call, name) = (call.id.clone(), call.name);
        match item.form() {
            AnswerForm::Decision(review) => {
                print_note(out, &format!("The run is pending: {name} requires approval. ({})", review.reason));
                print_note(out, "The demo plays the person at the desk, and approves.");
                let decision = Decision { by: "the demo".into(), ..approval(Scope::Once, None, None) };
                resume = resume.with(call, decision);
            }
            AnswerForm::Result { .. } => {
                let note = format!(
                    "The run is pending: {name} is waiting for the application. No process has to wait; hours may pass. \
                     The demo plays the application: it pays, and resumes the run from the database in a restarted program."
                );
                print_note(out, &note);
                let result = json!({"status": "refunded", "reference": "R-2301"});
                resume = resume.with(call, Answer::output(result));
            }
            // The demo's model asks no questions, and its server uses neither elicitation nor tasks.
            AnswerForm::Choice(_)
            | AnswerForm::Elicitation { .. }
            | AnswerForm::Background(_)
            | AnswerForm::Continue { .. } => {}
        }
    }
    resume
}

fn conclude(report: &Report, again: &RepeatedFlags, out: &mut Output) {
    let run = report.run_id.as_str();
    print_note(out, "Everything that happened is in the journal. Look at it, or do it by hand:");
    for words in [vec!["runs", "show", run], vec!["runs", "events", run, "--json"], vec!["tools"], vec!["run", MESSAGE]]
    {
        out.line(format!("  {}", again.command(&words)));
    }
    let files = list(FILES.iter().map(|(name, _)| name));
    print_note(out, &format!("Its files are beside the database ({files}); `toolgate init` writes your own."));
}

fn print_note(out: &mut Output, text: &str) {
    // Only a terminal needs the wrap.
    let columns = if out.is_terminal() { out.width() } else { usize::MAX };
    let paint = out.paint();
    hanging("── ", text, columns).iter().for_each(|line| out.line(paint.cyan(line)));
}
