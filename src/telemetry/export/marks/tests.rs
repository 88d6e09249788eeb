use toolgate_core::id::RunId;

use super::*;

fn run() -> RunId {
    "run_1".into()
}

fn receipt(marks: &Arc<Marks>, seq: u64) -> Receipt {
    match marks.admit(&run(), seq) {
        Admission::Marked(receipt) => receipt,
        Admission::Unmarked | Admission::Left => panic!("the span is not admitted"),
    }
}

/// The mark and the lease that are due.
fn due(marks: &Marks) -> Vec<(u64, Duration)> {
    marks.due(false).into_iter().map(|mark| (mark.sent, mark.lease)).collect()
}

fn marks() -> Arc<Marks> {
    let marks = Arc::new(Marks::default());
    marks.begin(&run(), 2);
    marks
}

#[test]
fn a_mark_stays_before_the_first_span_that_waits() {
    let marks = marks();
    let (first, second) = (receipt(&marks, 3), receipt(&marks, 5));
    marks.finished(&run(), 9);
    assert_eq!(due(&marks), [(3, SPAN_LEASE)]);
    second.accepted();
    assert_eq!(due(&marks), [(3, SPAN_LEASE)]);
    first.accepted();
    assert_eq!(due(&marks), [(9, SPAN_LEASE)]);
}

#[test]
fn a_mark_never_passes_a_span_that_was_given_up() {
    let marks = marks();
    let (first, second) = (receipt(&marks, 3), receipt(&marks, 5));
    marks.finished(&run(), 9);
    drop(first);
    assert!(second.is_void() && matches!(marks.admit(&run(), 7), Admission::Left));
    second.accepted();
    marks.release(&run());
    assert_eq!(due(&marks), [(3, Duration::ZERO)]);
    assert_eq!(marks.resume(&run()), Some(false));
}

#[test]
fn a_run_is_forgotten_with_its_last_mark() {
    let marks = marks();
    let store = || marks.stored(marks.due(false));
    let waiting = receipt(&marks, 3);
    marks.finished(&run(), 9);
    marks.release(&run());
    store();
    assert_eq!(marks.resume(&run()), Some(true), "a span waits");
    waiting.accepted();
    store();
    assert_eq!(marks.resume(&run()), Some(true), "it was resumed");
    marks.release(&run());
    store();
    assert_eq!(marks.resume(&run()), None);
}
