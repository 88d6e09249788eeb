//! Context of a pending item: the task of its run, and what the model says beside its calls.

use jiff::Timestamp;

use super::list::whose;
use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::cli::text::gutter;
use crate::core::id::RunId;
use crate::service::{CallContext, InboxItem};

/// Shows the context of a run that this terminal has not shown, before the prompts about its items.
pub(in crate::cli) async fn note_context(app: &App, run: &RunId, out: &mut Output) -> Result<(), CliError> {
    let waiting = app.operator().inbox_of(run).await?.waiting;
    if let Some(first) = waiting.first() {
        let paint = out.note_paint();
        out.note(format!("\n{}", paint.dim(format!("{run}, {}", whose(first, Timestamp::now())))));
        background(first).into_iter().for_each(|line| out.note(paint.dim(line)));
    }
    Ok(())
}

/// The task of the run, and what the model says beside its calls.
pub(super) fn background(waiting: &InboxItem) -> Vec<String> {
    let CallContext { task, model_text, .. } = &waiting.context;
    [quoted("the task", task), quoted("the model says", model_text)].concat()
}

/// Untrusted text under a label; no lines if the text is empty.
pub(super) fn quoted(what: &str, words: &str) -> Vec<String> {
    let words = gutter(words);
    let head = (!words.is_empty()).then(|| format!("{what}:"));
    head.into_iter().chain(words.into_iter().map(|line| format!("  {line}"))).collect()
}
