//! Span marks: what a collector has of a run's spans, and which exporter sends the rest.

use std::sync::Arc;
use std::time::Duration;

use toolgate::core::run::Status;
use toolgate::ports::{Append, ClaimedSpans, SpanClaim, SpanMark};

use super::Store;
use crate::stores::journals::{Appending, LONG, append, run};

/// A run of two events, whose creator exports its spans from a position on.
async fn exported(store: &impl Store, number: usize, from: u64) {
    let created = append(run(number), 0, 1).by("node_a");
    store.append(Append { spans_sent: Some(from), ..created }).await.unwrap();
    store.append(append(run(number), 1, 1).by("node_a").leaving(Status::Completed)).await.unwrap();
}

fn claim(number: usize, at: u64) -> SpanClaim {
    SpanClaim { run: run(number), at, is_abandoned: false, lease: LONG }
}

fn mark(number: usize, sent: u64, lease: Duration) -> SpanMark {
    SpanMark { run: run(number), sent, lease }
}

pub(crate) async fn a_run_without_export_has_no_mark<S: Store>(store: Arc<S>) {
    store.append(append(run(1), 0, 1).leaving(Status::Completed)).await.unwrap();
    assert_eq!(store.claim_spans(&claim(1, 0)).await.unwrap(), ClaimedSpans::Unmarked);
    assert_eq!(store.claim_spans(&claim(2, 0)).await.unwrap(), ClaimedSpans::Unmarked, "no such run");
    assert_eq!(store.unsent_spans(None, 9).await.unwrap(), []);

    store.mark_spans(&[mark(1, 1, Duration::ZERO)]).await.unwrap();

    assert_eq!(store.claim_spans(&claim(1, 1)).await.unwrap(), ClaimedSpans::From(1));
}

pub(crate) async fn an_exporter_keeps_others_from_its_spans<S: Store>(store: Arc<S>) {
    exported(&*store, 1, 0).await;
    assert_eq!(store.claim_spans(&claim(1, 2)).await.unwrap(), ClaimedSpans::Held);
    assert_eq!(store.claim_spans(&claim(1, 0)).await.unwrap(), ClaimedSpans::From(0), "nothing before is missing");
    let abandoned = SpanClaim { is_abandoned: true, ..claim(1, 2) };
    assert_eq!(store.claim_spans(&abandoned).await.unwrap(), ClaimedSpans::From(0));

    store.mark_spans(&[mark(1, 1, Duration::ZERO)]).await.unwrap();

    assert_eq!(store.claim_spans(&claim(1, 2)).await.unwrap(), ClaimedSpans::From(1));
    assert_eq!(store.claim_spans(&claim(1, 2)).await.unwrap(), ClaimedSpans::Held, "a claim gives the lease");
}

pub(crate) async fn marks_move_together_and_never_back<S: Store>(store: Arc<S>) {
    exported(&*store, 1, 0).await;
    exported(&*store, 2, 1).await;
    store.mark_spans(&[mark(1, 2, LONG), mark(2, 0, Duration::ZERO), mark(3, 1, LONG)]).await.unwrap();
    assert_eq!(store.claim_spans(&claim(1, 2)).await.unwrap(), ClaimedSpans::From(2));
    assert_eq!(store.claim_spans(&claim(2, 2)).await.unwrap(), ClaimedSpans::From(1));
}

pub(crate) async fn unsent_spans_are_listed_once_no_exporter_has_them<S: Store>(store: Arc<S>) {
    for number in 1..=4 {
        exported(&*store, number, 0).await;
    }
    store.append(Append { spans_sent: Some(0), ..append(run(5), 0, 1).by("node_a") }).await.unwrap();
    assert_eq!(store.unsent_spans(None, 9).await.unwrap(), []);
    let none = Duration::ZERO;

    let marks = [mark(1, 1, none), mark(2, 2, none), mark(3, 0, LONG), mark(4, 0, none), mark(5, 0, none)];
    store.mark_spans(&marks).await.unwrap();

    assert_eq!(store.unsent_spans(None, 9).await.unwrap(), [run(1), run(4)], "5 is running");
    assert_eq!(store.unsent_spans(Some(&run(1)), 9).await.unwrap(), [run(4)]);
    assert_eq!(store.unsent_spans(None, 1).await.unwrap(), [run(1)]);
}
