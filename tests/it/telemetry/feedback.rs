//! Feedback on runs as spans: their place, their attributes, and what they hide.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value as Json, json};
use toolgate::core::redact::SecretsBuilder;
use toolgate::core::run::{Event, labels};
use toolgate::core::trace::{SpanId, TraceId};
use toolgate::ports::{Annotator, AnnotatorKind, EventSink as _, Feedback};
use toolgate::telemetry::spans::{Kind, Parent, Projector, Redaction, Span, SpanContent, Status};
use toolgate::telemetry::{BackgroundSink, SpanCounts};

use super::export::sink;
use super::journals::{self, Journal};
use super::receiver::Receiver;
use super::spans::{START, attribute, identities, named, spans, text};

/// Feedback on the run as a whole, three hours later.
fn feedback() -> Feedback {
    let at = START + SignedDuration::from_hours(3);
    Feedback {
        id: "feedback_1".into(),
        name: "quality".to_owned(),
        score: Some(0.5),
        label: Some("fair".to_owned()),
        comment: Some("Paris is right, but hunter2hunter2 is no password.".to_owned()),
        annotator: Annotator { kind: AnnotatorKind::Human, id: Some("ann".to_owned()) },
        span: None,
        created_at: at,
        updated_at: at,
        created_by: None,
    }
}

fn projected(journal: &Journal, content: SpanContent, given: &[Feedback]) -> Vec<Span> {
    let secrets = SecretsBuilder::of_values(["hunter2hunter2"]);
    let projector = Projector::new(journal.run.clone(), content, identities());
    projector.redacting(Redaction::of_secrets(secrets)).project_feedback(&journal.events, given)
}

fn only(journal: &Journal, content: SpanContent, given: Feedback) -> Span {
    let spans = projected(journal, content, &[given]);
    assert_eq!(spans.len(), 1);
    spans.into_iter().next().unwrap()
}

#[test]
fn feedback_is_a_point_below_the_root_with_both_vocabularies() {
    let journal = journals::plain_answer(START);
    let all = spans(&journal, SpanContent::default());
    let root = named(&all, "invoke_agent assistant");

    let span = only(&journal, SpanContent::default(), feedback());

    let parent = Some(Parent { id: root.id, remote: false });
    assert_eq!((span.name.as_str(), span.trace, span.parent), ("feedback quality", root.trace, parent));
    assert_eq!((span.kind, &span.status, span.start, span.end), (Kind::Internal, &Status::Ok, root.end, root.end));
    let clean = "Paris is right, but __REDACTED__ is no password.";
    let output = json!({"score": 0.5, "label": "fair", "comment": clean});
    let of_span = |span: &Span| -> Json {
        span.attributes.iter().map(|(name, value)| (name.to_string(), json!(value))).collect()
    };
    assert_eq!(
        of_span(&span),
        json!({
            "session.id": text(root, "session.id"),
            "gen_ai.conversation.id": text(root, "gen_ai.conversation.id"),
            "toolgate.run.id": journal.run,
            "toolgate.run.resumed": false,
            "openinference.span.kind": "EVALUATOR",
            "input.value": "The capital of France is Paris.",
            "input.mime_type": "text/plain",
            "output.value": output.to_string(),
            "output.mime_type": "application/json",
            "annotations.0.annotation.name": "quality",
            "annotations.0.annotation.score": 0.5,
            "annotations.0.annotation.label": "fair",
            "annotations.0.annotation.explanation": clean,
            "annotations.0.annotation.annotator_kind": "HUMAN",
            "annotations.0.annotation.identifier": "feedback_1",
            "toolgate.feedback.annotator": "ann",
            "toolgate.feedback.given_at": "1970-01-01T03:00:00Z",
        })
    );
    assert_eq!(
        json!(span.events),
        json!([{"name": "gen_ai.evaluation.result", "at": root.end, "attributes": [
            ["gen_ai.evaluation.name", "quality"], ["gen_ai.evaluation.score.value", 0.5],
            ["gen_ai.evaluation.score.label", "fair"], ["gen_ai.evaluation.explanation", clean],
        ]}])
    );
}

#[test]
fn feedback_on_a_span_is_below_it_and_replaced_feedback_is_another_span() {
    let journal = journals::approved_call(START);
    let all = spans(&journal, SpanContent::default());
    let judged = all.iter().find(|span| span.name.starts_with("execute_tool")).unwrap();
    let on_call = Feedback { span: Some(judged.id), ..feedback() };
    let later = Feedback { updated_at: on_call.updated_at + SignedDuration::from_secs(1), ..on_call.clone() };
    let bare = Feedback {
        id: "feedback_2".into(),
        label: None,
        comment: None,
        annotator: Annotator { kind: AnnotatorKind::Code, id: None },
        ..feedback()
    };

    let of_feedback = projected(&journal, SpanContent::default(), &[on_call.clone(), on_call, later, bare]);

    let parents: Vec<SpanId> = of_feedback.iter().map(|span| span.parent.unwrap().id).collect();
    let last_root = all.iter().rfind(|span| span.name.starts_with("invoke_agent")).unwrap();
    assert_eq!(parents, [judged.id, judged.id, judged.id, last_root.id]);
    let ids: Vec<SpanId> = of_feedback.iter().map(|span| span.id).collect();
    assert_eq!(ids[0], ids[1]);
    assert!(ids[2] != ids[0] && ids[3] != ids[0]);
    assert!(of_feedback.iter().all(|span| judged.start <= span.start || span.parent.unwrap().id == last_root.id));
    for absent in
        ["annotations.0.annotation.label", "annotations.0.annotation.explanation", "toolgate.feedback.annotator"]
    {
        assert_eq!(attribute(&of_feedback[3], absent), None);
    }
    assert_eq!(json!(of_feedback[3].events)[0]["attributes"].as_array().unwrap().len(), 2);
}

#[test]
fn feedback_on_a_run_that_is_in_progress_has_the_time_of_the_run() {
    let whole = journals::parallel_calls(START);
    for length in 1..=whole.events.len() {
        let events = whole.events[..length].to_vec();
        let last = events.last().unwrap().at;
        let given = Feedback { updated_at: last, ..feedback() };
        let projector = Projector::new(whole.run.clone(), SpanContent::default(), identities());
        let spans = projector.project_feedback(&events, &[given]);
        assert_eq!(spans.iter().map(|span| (span.start, span.end)).collect::<Vec<_>>(), [(last, last)]);
    }
}

#[test]
fn a_comment_is_hidden_with_inputs_or_outputs() {
    let journal = journals::plain_answer(START);
    for (hide_inputs, hide_outputs) in [(true, false), (false, true)] {
        let content = SpanContent { hide_inputs, hide_outputs, ..SpanContent::default() };
        let span = only(&journal, content, feedback());
        assert_eq!(text(&span, "annotations.0.annotation.explanation"), "__REDACTED__");
        assert!(!json!(span).to_string().contains("Paris is right"), "{span:?}");
        assert_eq!(text(&span, "annotations.0.annotation.label"), "fair");
        assert_eq!(text(&span, "input.value") == "__REDACTED__", hide_outputs);
    }
}

#[test]
fn feedback_on_an_execution_that_is_not_sampled_has_no_span() {
    let mut journal = journals::plain_answer(START);
    let Event::Started(started) = &mut journal.events[0].event else { panic!() };
    Arc::make_mut(started).trace.sampled = false;
    assert_eq!(projected(&journal, SpanContent::default(), &[feedback()]), []);
}

fn traces(journal: &Journal) -> Vec<TraceId> {
    journal.events.iter().filter_map(|entry| entry.event.trace()).map(|trace| trace.id).collect()
}

#[test]
fn the_spans_of_a_run_are_its_own_and_no_others() {
    let all = journals::all(START);
    for journal in &all {
        for span in spans(journal, SpanContent::default()) {
            assert!(labels::has_span(&journal.events, span.id), "{} of {}", span.name, journal.run);
            let others = all.iter().filter(|other| traces(other).iter().all(|trace| *trace != span.trace));
            for other in others {
                assert!(!labels::has_span(&other.events, span.id), "{} in {}", span.name, other.run);
            }
        }
        assert!(!labels::has_span(&journal.events, SpanId([7; 8])));
    }
}

#[test]
fn feedback_is_exported_once_in_the_background() {
    let (receiver, journal) = (Receiver::start(), journals::plain_answer(Timestamp::UNIX_EPOCH));
    let sink = Arc::new(sink(&receiver.url(), &[]));
    let background = BackgroundSink::new(sink.clone()).unwrap();
    background.judged(&journal.run, &journal.events, &feedback());
    assert_eq!(background.finish(), 0);
    sink.shutdown().expect("delivered");
    assert_eq!(sink.span_counts(), SpanCounts { exported: 1, ..SpanCounts::default() });
    assert_eq!(receiver.occurrences("feedback quality"), 1);
    assert_eq!(receiver.occurrences("gen_ai.evaluation.result"), 1);
}
