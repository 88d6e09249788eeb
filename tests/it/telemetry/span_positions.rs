//! Positions of spans: a mark at any position of a journal divides its spans into those before and those after it.

use toolgate::core::run::Event;
use toolgate::telemetry::{Projector, Span, SpanContent};

use super::journals;
use super::spans::{START, identities, spans};

/// Whether the event may be written while the run waits.
fn comes_from_outside(event: &Event) -> bool {
    use Event::{ApprovalDecided, CallCompleted, Expired, Extended, InputGiven, MessageAdded, QuestionAnswered};
    let is_input =
        matches!(event, ApprovalDecided { .. } | QuestionAnswered { .. } | InputGiven { .. } | Expired { .. });
    is_input || matches!(event, CallCompleted { .. } | MessageAdded { .. } | Extended { .. })
}

#[test]
fn at_each_position_a_mark_divides_the_spans_of_a_run() {
    for journal in journals::all(START) {
        let whole = spans(&journal, SpanContent::default());
        let projector = || Projector::new(journal.run.clone(), SpanContent::default(), identities());
        for (cut, is_released) in (0..=journal.events.len()).flat_map(|cut| [(cut, false), (cut, true)]) {
            let next = journal.events[cut..].iter().find(|recorded| !comes_from_outside(&recorded.event));
            let is_continued = |event: &Event| matches!(event, Event::Resumed { .. } | Event::Ended { .. });
            if is_released && next.is_some_and(|next| !is_continued(&next.event)) {
                continue; // a run that was released continues with another execution
            }
            let mut first = projector();
            let mut sent: Vec<Span> =
                journal.events[..cut].iter().flat_map(|recorded| first.observe(recorded)).collect();
            if is_released {
                sent.extend(first.pause());
            }
            let mark = first.finished_to();
            // Spans of the fact before a wait are sent again if the process is killed before it releases the run.
            sent.retain(|span| span.seq < mark);
            let rest = projector().from(mark).project_all(&journal.events);
            sent.extend(rest);
            assert_eq!(sent.len(), whole.len(), "{} cut at {cut}, released: {is_released}", journal.run);
            for (one, other) in whole.iter().zip(&sent) {
                assert_eq!((one.trace, one.id), (other.trace, other.id), "{} cut at {cut}", journal.run);
                // The root of a run that was released says that it waits, and not how the wait ended.
                assert!(one == other || is_released, "{} cut at {cut}: {one:?} {other:?}", journal.run);
            }
        }
    }
}
