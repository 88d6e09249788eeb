use std::time::SystemTime;

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::*;

/// A span of about that many bytes.
pub(in super::super) fn span(bytes: usize) -> SpanData {
    SpanData {
        span_context: SpanContext::empty_context(),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: "span".into(),
        start_time: SystemTime::UNIX_EPOCH,
        end_time: SystemTime::UNIX_EPOCH,
        attributes: vec![KeyValue::new("text", "x".repeat(bytes))],
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Ok,
        instrumentation_scope: InstrumentationScope::default(),
    }
}

/// Bounds with almost no delay for batching.
pub(in super::super) fn bounds(queue: usize, batch: usize) -> Batching {
    let timeout = Duration::from_secs(30);
    Batching {
        queue,
        queue_bytes: 64 * 1024 * 1024,
        batch,
        batch_bytes: 3 * 1024 * 1024,
        delay: Duration::from_millis(1),
        timeout,
    }
}

fn queue(bounds: Batching, spans: &[usize]) -> ExportQueue<SpanData> {
    let queue = ExportQueue::new(bounds);
    spans.iter().for_each(|bytes| queue.offer(span(*bytes)));
    queue
}

fn batches(queue: &ExportQueue<SpanData>) -> Vec<usize> {
    std::iter::from_fn(|| queue.take()).map(|batch| batch.items.len()).collect()
}

#[test]
fn a_batch_ends_before_it_is_too_large_and_loses_no_span() {
    const MIB: usize = 1024 * 1024;
    assert_eq!(batches(&queue(bounds(100, 100), &[MIB, MIB, 9 * MIB, MIB, MIB, MIB, 10])), [2, 1, 2, 2]);
    assert_eq!(batches(&queue(bounds(100, 2), &[1, 1, 1, 1, 1])), [2, 2, 1]);
}

#[test]
fn a_span_beyond_the_queue_is_dropped_and_counted() {
    let by_number = queue(bounds(3, 3), &[1, 1, 1, 1, 1]);
    assert_eq!(
        by_number.span_counts(),
        SpanCounts {
            queued: 3,
            dropped: 2,
            queued_bytes: by_number.span_counts().queued_bytes,
            ..SpanCounts::default()
        }
    );

    let by_bytes = queue(Batching { queue_bytes: 5_000, ..bounds(100, 100) }, &[2_000, 2_000, 2_000, 100]);
    let counts = by_bytes.span_counts();
    assert_eq!((counts.queued, counts.dropped), (3, 1), "the small span still fits");
    assert!((4_100..5_000).contains(&counts.queued_bytes), "{counts:?}");
}

#[test]
fn a_batch_in_flight_holds_its_place_until_it_is_sent_or_fails() {
    let queue = queue(bounds(2, 1), &[1, 1]);
    let (first, second) = (queue.take().unwrap(), queue.take().unwrap());
    queue.offer(span(1));
    assert_eq!((queue.span_counts().queued, queue.span_counts().dropped), (2, 1));

    queue.settle(first.size, Delivery::TakenInPart(0));
    queue.settle(second.size, Delivery::Failed);
    queue.offer(span(1));

    let counts = queue.span_counts();
    assert_eq!((counts.queued, counts.exported, counts.dropped, counts.failed), (1, 1, 1, 1));
    assert_eq!(counts.queued_bytes, span(1).byte_size() as u64);
}

#[test]
fn a_closed_queue_accepts_no_span() {
    let queue = queue(bounds(10, 10), &[1]);
    queue.close(Duration::ZERO);
    queue.offer(span(1));
    assert_eq!((queue.span_counts().queued, queue.span_counts().dropped), (1, 1));
}
