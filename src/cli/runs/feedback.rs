//! `toolgate runs feedback`: gives feedback on a run.

use clap::Args;

use crate::app::App;
use crate::cli::answers::who;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::view::{DisplaySettings, feedback_lines};
use crate::core::trace::SpanId;
use crate::ports::{Annotator, AnnotatorKind};
use crate::runner::NewFeedback;

const EXAMPLES: &str = "\
Examples:
  toolgate runs feedback last --name quality --score 0.8 --comment \"Right order, too long\"
  toolgate runs feedback last --name answered --label yes

The same name again replaces your earlier judgement. `toolgate runs show` shows the feedback on a run.";

/// Give feedback on a run, or on a span of it: a score, a label or a comment
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct GiveFeedback {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// The criterion, such as `quality`
    #[arg(long, value_name = "NAME")]
    name: String,

    /// A number, whose range and direction you choose
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    score: Option<f64>,

    /// A category
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,

    /// The reason in words
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,

    /// The kind of annotator: human, llm or code
    #[arg(long, value_name = "KIND", default_value = "human", value_parser = kind)]
    kind: AnnotatorKind,

    /// The judged span, as 16 hex digits [default: the run as a whole]
    #[arg(long, value_name = "ID", value_parser = span_id)]
    span: Option<SpanId>,
}

fn span_id(text: &str) -> Result<SpanId, String> {
    SpanId::parse(text).ok_or_else(|| "a span id has 16 lower-case hex digits".to_owned())
}

fn kind(text: &str) -> Result<AnnotatorKind, String> {
    match text {
        "human" => Ok(AnnotatorKind::Human),
        "llm" => Ok(AnnotatorKind::Llm),
        "code" => Ok(AnnotatorKind::Code),
        _ => Err("a kind is one of human, llm, code".to_owned()),
    }
}

impl GiveFeedback {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let given = self.give(&app, out).await;
        setup::close(app, out).await;
        given.map(|()| Exit::Done)
    }

    async fn give(self, app: &App, out: &mut Output) -> Result<(), CliError> {
        let run = find(app, &self.run).await?;
        let Self { name, score, label, comment, kind, span, run: _, config: _ } = self;
        let annotator = Annotator { kind, id: Some(who()) };
        let new = NewFeedback { name, score, label, comment, annotator, span, by: Some(who()) };
        let feedback = app.runner.add_feedback(&run, new).await?;
        let look = DisplaySettings { paint: out.paint(), width: out.width() };
        out.line(format!("feedback on {run}"));
        feedback_lines(&[feedback], look).iter().for_each(|line| out.line(line));
        Ok(())
    }
}
