//! `toolgate runs trace`: the spans of a run, computed from its journal.

use std::sync::Arc;

use clap::Args;

use crate::app::{App, identities};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::count;
use crate::cli::view::{DisplaySettings, Waterfall};
use crate::core::error::ErrorCode;
use crate::core::id::RunId;
use crate::core::run::{Event, JournalEntry, Status};
use crate::ports::ClaimedSpans;
use crate::telemetry::spans::{Projector, Redaction, Span, SpanContent};

/// Show the spans of a run as a waterfall, without any collector
#[derive(Args, Debug)]
pub(super) struct TraceOf {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints each span as a line of JSON with its full content, even if exports hide it; never the secrets of the
    /// configuration
    #[arg(long)]
    json: bool,

    /// Sends the spans that the collector lacks, because the process of the run died or the collector was unavailable
    #[arg(long, conflicts_with = "json")]
    send: bool,

    /// With `--send`: all spans, also those that the collector has and those that were not sampled
    #[arg(long, requires = "send")]
    all: bool,
}

impl TraceOf {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let traced = self.trace(&app, out).await;
        setup::close(app, out).await;
        traced.map(|()| Exit::Done)
    }

    async fn trace(&self, app: &App, out: &mut Output) -> Result<(), CliError> {
        let run = find(app, &self.run).await?;
        if !self.send && !self.json {
            return print_waterfall(app, &run, out).await;
        }
        if self.send {
            return self.send(app, &run, out).await;
        }
        let journal = app.runner.journal(&run).await?;
        spans(app, &run, journal, SpanContent::default()).iter().for_each(|span| out.json(span));
        Ok(())
    }

    async fn send(&self, app: &App, run: &RunId, out: &mut Output) -> Result<(), CliError> {
        let journal = app.runner.journal_with_conversation(run).await?;
        let all = || journal.iter().cloned().map(recorded_as_sampled).collect::<Vec<_>>();
        let claimed = if self.all { None } else { app.claim_spans(run, &journal).await? };
        let has_ended = journal.last().is_some_and(|last| matches!(last.event, Event::Ended { .. }));
        let sent = match claimed {
            Some(ClaimedSpans::From(from)) => app.send_spans_from(run, &journal, from),
            Some(ClaimedSpans::Unmarked) if has_ended => app.send_spans_from(run, &all(), 0),
            Some(ClaimedSpans::Unmarked) | None => app.send_spans_again(run, &all(), &app.runner.feedback(run).await?),
            Some(ClaimedSpans::Held) => {
                let error = CliError::new(ErrorCode::Conflict, format!("another process exports the spans of {run}"));
                return Err(error.with_remedy("repeat the command later, or send all spans with `--send --all`"));
            }
        };
        match sent {
            None => {
                let remedy = "set `telemetry.otlp_endpoint` or OTEL_EXPORTER_OTLP_ENDPOINT";
                let error = format!("there is no collector to send spans to: {remedy}");
                return Err(CliError::new(ErrorCode::Configuration, error));
            }
            Some(0) => out.line(format!("no spans to send of {run}; `--all` sends those that were sent before")),
            Some(spans) => out.line(format!("{} of {run}", count(spans, "span"))),
        }
        Ok(())
    }
}

/// Prints the spans of a run as a waterfall, which shows no content.
pub(in crate::cli) async fn print_waterfall(app: &App, run: &RunId, out: &mut Output) -> Result<(), CliError> {
    let silent = SpanContent { hide_inputs: true, hide_outputs: true, ..SpanContent::default() };
    let look = DisplaySettings { paint: out.paint(), width: out.width() };
    let is_running = app.runner.report(run).await?.status == Status::Running;
    let waterfall = Waterfall::new(spans(app, run, app.runner.journal(run).await?, silent));
    let waterfall = if is_running { waterfall.unfinished() } else { waterfall };
    waterfall.draw(look).iter().for_each(|line| out.line(line));
    Ok(())
}

/// The spans of a journal, independent of earlier exports.
fn spans(app: &App, run: &RunId, journal: Vec<JournalEntry>, content: SpanContent) -> Vec<Span> {
    let journal: Vec<JournalEntry> = journal.into_iter().map(recorded_as_sampled).collect();
    let projector = Projector::new(run.clone(), content, identities(&app.models));
    projector.redacting(Redaction::of_secrets(app.settings.secrets())).project_all(&journal)
}

/// The trace is part of the first two events of an execution only.
fn recorded_as_sampled(mut recorded: JournalEntry) -> JournalEntry {
    if let Event::Started(started) = &mut recorded.event {
        Arc::make_mut(started).trace.sampled = true;
    }
    if let Event::Resumed { trace, .. } = &mut recorded.event {
        trace.sampled = true;
    }
    recorded
}
