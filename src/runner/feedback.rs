//! Feedback on runs: judgements of people, models and programs, stored beside the journal (decision 0060). Sinks receive each
//! judgement once.

use toolgate_core::id::{FeedbackId, RunId};
use toolgate_core::json;
use toolgate_core::run::labels;
use toolgate_core::tool::is_deceptive;
use toolgate_core::trace::SpanId;
use toolgate_driver::DriveError;
use toolgate_ports::{Annotator, Feedback};

use super::{AgentRunner, RunnerError};

/// The longest comment, in bytes.
const MAX_COMMENT_BYTES: usize = 8 << 10;
/// The longest label and the longest name of an annotator, in bytes.
const MAX_LABEL_BYTES: usize = 256;
/// The longest name of a criterion.
const MAX_NAME: usize = 64;

/// Feedback to give: a score, a label or a comment, or several of them.
#[derive(Clone, Debug)]
pub struct NewFeedback {
    /// The criterion, such as `quality`: 1 to 64 letters, digits, `_`, `-` and `.`.
    pub name: String,
    pub score: Option<f64>,
    /// A label of at most 256 bytes.
    pub label: Option<String>,
    /// A comment of at most 8 KiB.
    pub comment: Option<String>,
    pub annotator: Annotator,
    /// The judged span; `None` for the run as a whole.
    pub span: Option<SpanId>,
    /// The authenticated name of the caller.
    pub by: Option<String>,
}

impl AgentRunner {
    /// Stores feedback on a run, in place of what the same annotator gave by this name on the same span. The same feedback again
    /// changes nothing.
    pub async fn add_feedback(&self, run: &RunId, new: NewFeedback) -> Result<Feedback, RunnerError> {
        check(&new)?;
        let journal = self.journal(run).await?;
        if let Some(span) = new.span.filter(|span| !labels::has_span(&journal, *span)) {
            return Err(invalid("span_id", format!("run `{run}` has no span `{span}`")));
        }
        let id = id_of(run, &new);
        let known = self.feedback(run).await?.into_iter().find(|known| known.id == id);
        let now = self.inner.ports.clock.now();
        let secrets = &self.inner.ports.store.secrets;
        let clean = |text: String| secrets.redacted(&text).into_owned();
        let feedback = Feedback {
            id,
            name: new.name,
            score: new.score,
            label: new.label.map(clean),
            comment: new.comment.map(clean),
            annotator: new.annotator,
            span: new.span,
            created_at: known.as_ref().map_or(now, |known| known.created_at),
            updated_at: now,
            created_by: new.by,
        };
        if let Some(known) = known.filter(|known| is_repeated(known, &feedback)) {
            return Ok(known);
        }
        let (runner, run) = (self.clone(), run.clone());
        let unit = async move {
            let ports = &runner.inner.ports;
            if !ports.store.runs.put_feedback(&run, &feedback).await.map_err(DriveError::from)? {
                // The run was deleted meanwhile, or has no room.
                runner.journal(&run).await?;
                return Err(RunnerError::FeedbackLimit(run));
            }
            ports.sinks.iter().for_each(|sink| sink.judged(&run, &journal, &feedback));
            Ok(feedback)
        };
        self.to_completion(unit).await?
    }

    /// The feedback on a run, oldest first.
    pub async fn feedback(&self, run: &RunId) -> Result<Vec<Feedback>, RunnerError> {
        Ok(self.inner.ports.store.runs.feedback(run).await.map_err(DriveError::from)?)
    }

    /// Deletes feedback on a run.
    pub async fn delete_feedback(&self, run: &RunId, id: &FeedbackId) -> Result<(), RunnerError> {
        match self.inner.ports.store.runs.delete_feedback(run, id).await.map_err(DriveError::from)? {
            true => Ok(()),
            false => Err(RunnerError::NoSuchFeedback { run: run.clone(), id: id.clone() }),
        }
    }
}

fn check(new: &NewFeedback) -> Result<(), RunnerError> {
    let NewFeedback { name, score, label, comment, annotator, span: _, by: _ } = new;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !(1..=MAX_NAME).contains(&name.len()) || !name.chars().all(is_of_name) {
        return Err(invalid("name", format!("a name has 1 to {MAX_NAME} letters, digits, `_`, `-` and `.`")));
    }
    if score.is_none() && label.is_none() && comment.is_none() {
        return Err(invalid("score", "give a score, a label or a comment"));
    }
    if score.is_some_and(|score| !score.is_finite()) {
        return Err(invalid("score", "a score is a finite number"));
    }
    for (member, text) in [("label", label), ("annotator/id", &annotator.id)] {
        let is_valid = |text: &String| (1..=MAX_LABEL_BYTES).contains(&text.len()) && !text.chars().any(is_deceptive);
        if !text.as_ref().is_none_or(is_valid) {
            let rule = "no control characters, and no characters that are invisible or change the direction of text";
            return Err(invalid(member, format!("must have 1 to {MAX_LABEL_BYTES} bytes, {rule}")));
        }
    }
    if comment.as_ref().is_some_and(|comment| comment.trim().is_empty() || comment.len() > MAX_COMMENT_BYTES) {
        return Err(invalid("comment", format!("a comment has 1 to {MAX_COMMENT_BYTES} bytes and is not blank")));
    }
    Ok(())
}

fn invalid(member: &'static str, why: impl Into<String>) -> RunnerError {
    RunnerError::InvalidFeedback { member, why: why.into() }
}

/// The same in every process, so that a repetition replaces.
fn id_of(run: &RunId, new: &NewFeedback) -> FeedbackId {
    let identity = serde_json::json!([run, new.name, new.annotator, new.span]);
    let hash = json::hash(&identity);
    let digits: String = hash.chars().skip_while(|c| *c != ':').skip(1).take(32).collect();
    format!("feedback_{digits}").into()
}

/// Whether feedback has nothing new.
fn is_repeated(known: &Feedback, given: &Feedback) -> bool {
    let (updated_at, created_by) = (known.updated_at, known.created_by.clone());
    *known == Feedback { updated_at, created_by, ..given.clone() }
}
