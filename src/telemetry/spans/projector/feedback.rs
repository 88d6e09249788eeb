//! Spans of feedback on the run. They are the only spans that do not follow from the journal alone.

use toolgate_core::run::{Event, JournalEntry, labels};
use toolgate_core::trace::Trace;
use toolgate_ports::Feedback;

use super::Projector;
use crate::spans::execution::{Child, Execution};
use crate::spans::span::{Kind, Parent, Span, Status};
use crate::spans::{Redaction, Value, agent, feedback, names};

impl Projector {
    /// The spans of feedback on the run with this journal, each below the judged span, or below the root of the latest execution.
    /// Without those whose execution is not sampled. Call it on a new projector.
    pub fn project_feedback(mut self, journal: &[JournalEntry], given: &[Feedback]) -> Vec<Span> {
        let spans = self.all(journal);
        let spans_of = given.iter().filter_map(|feedback| {
            let id = feedback.span.or(self.previous.map(|root| root.span))?;
            let judged = spans.iter().find(|span| span.id == id)?;
            let trace = journal
                .iter()
                .filter_map(|entry| entry.event.trace())
                .find(|trace| trace.id == judged.trace && trace.sampled)?;
            self.feedback_span(journal, trace, judged, feedback)
        });
        spans_of.collect()
    }

    /// The redaction of a text about the run with this journal: it also hides what the run passed to its tools under secret names.
    /// Call it on a new projector.
    pub fn redaction_after(mut self, journal: &[JournalEntry]) -> Redaction {
        self.from = u64::MAX;
        self.all(journal);
        self.redaction
    }

    fn feedback_span(&self, journal: &[JournalEntry], trace: &Trace, judged: &Span, given: &Feedback) -> Option<Span> {
        let Event::Started(started) = &journal.first()?.event else { return None };
        let (content, seq) = (self.content, journal.len() as u64);
        let is_resumed = judged.attribute(names::RUN_RESUMED) == Some(&Value::Bool(true));
        let common = agent::common(&self.run, started, is_resumed, content);
        let mut execution = Execution::begin(seq, judged.start, trace.clone(), None, common, content);
        execution.redact(self.redaction.clone());
        // A point in the time of the judged span: feedback comes hours later, and would extend the trace by them.
        let at = given.updated_at.clamp(judged.start, judged.end);
        let child = Child {
            label: labels::feedback(&given.id, given.updated_at),
            name: format!("feedback {}", given.name),
            kind: Kind::Internal,
            start: at,
            end: at,
            status: Status::Ok,
            events: vec![feedback::result(given, content)],
        };
        let output = judged.text(names::OUTPUT_VALUE);
        let span = execution.child(child, |to| feedback::attributes(given, output, content, to))?;
        Some(Span { parent: Some(Parent { id: judged.id, remote: false }), ..span })
    }
}
