use std::future::pending;

use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::SpanData;

use super::super::queue::tests::{bounds, span};
use super::*;

/// A receiver as the SDK's exporter presents it.
#[derive(Clone, Copy, Debug)]
enum Receives {
    Everything,
    Nothing,
    /// It neither accepts nor rejects.
    Silence,
    /// It accepts each batch after two seconds.
    Slow,
}

/// The time for the last items.
const LIMIT: Duration = Duration::from_secs(30);

impl BatchExporter for Receives {
    type Item = SpanData;

    async fn export_batch(&self, _spans: Vec<SpanData>) -> OTelSdkResult {
        match self {
            Self::Everything => Ok(()),
            Self::Nothing => Err(OTelSdkError::InternalFailure("status 401".into())),
            Self::Silence => pending().await,
            Self::Slow => {
                tokio::time::sleep(Duration::from_secs(2)).await;
                Ok(())
            }
        }
    }
}

/// The reachability of an unknown receiver.
fn reachability() -> Reachability {
    Reachability::noted(&reqwest::Url::parse("http://carried.test:4318").unwrap())
}

fn round(exporter: Receives, batching: Batching, spans: usize) -> Arc<SendLoop<Receives>> {
    let queue = Arc::new(ExportQueue::new(batching));
    (0..spans).for_each(|_| queue.offer(span(1)));
    Arc::new(SendLoop {
        signal: Signal::Traces,
        exporter,
        reachability: reachability(),
        rejections: Rejections::listen(),
        queue,
        batching,
        reason: Arc::default(),
        last_taken: watch::Sender::new(Instant::now()),
        accepts: AtomicBool::new(false),
        given_up: AtomicBool::new(false),
        has_complained: AtomicBool::new(false),
    })
}

/// Sends until everything is settled, on paused time. Returns the time that took, the counts and the reason of losses.
async fn carried(round: Arc<SendLoop<Receives>>) -> (Duration, SpanCounts, Option<String>) {
    let (queue, reason, began) = (round.queue.clone(), round.reason.clone(), Instant::now());
    round.carry(channel().0).await;
    let reason = reason.lock().unwrap().clone();
    (began.elapsed(), queue.span_counts(), reason)
}

#[tokio::test(start_paused = true)]
async fn all_waiting_spans_are_sent_before_the_end() {
    let round = round(Receives::Everything, bounds(1_000, 10), 95);
    round.queue.close(LIMIT);
    let (took, counts, _) = carried(round).await;
    assert_eq!((took, counts), (Duration::ZERO, SpanCounts { exported: 95, ..SpanCounts::default() }));
}

#[tokio::test(start_paused = true)]
async fn a_slow_receiver_gets_several_batches_at_once() {
    let round = round(Receives::Slow, bounds(1_000, 10), 900);
    round.queue.close(LIMIT);
    let (took, counts, _) = carried(round).await;
    // One batch shows that it accepts spans; the other 89 follow eight at a time.
    assert_eq!((took, counts.exported, counts.failed), (Duration::from_secs(2 + 2 * 12), 900, 0));
}

#[tokio::test(start_paused = true)]
async fn spans_that_a_slow_receiver_did_not_get_in_time_are_counted() {
    let round = round(Receives::Slow, bounds(10_000, 10), 2_000);
    round.queue.close(Duration::from_secs(5));
    let (took, counts, reason) = carried(round).await;
    assert_eq!((took, counts.exported, counts.failed), (Duration::from_secs(5), 90, 1_910));
    assert!(reason.is_some_and(|reason| reason.contains("time for the end of the process")));
}

#[tokio::test(start_paused = true)]
async fn a_silent_receiver_is_given_up_after_a_few_seconds() {
    let round = round(Receives::Silence, bounds(1_000, 10), 95);
    round.queue.close(LIMIT);
    let (took, counts, reason) = carried(round).await;
    assert_eq!((took, counts.failed, counts.queued), (STALL_TIMEOUT, 95, 0));
    assert!(reason.is_some_and(|reason| reason.contains("accepted nothing")));
}

#[tokio::test(start_paused = true)]
async fn an_export_in_flight_is_cut_short_when_the_process_ends() {
    let round = round(Receives::Silence, bounds(1_000, 10), 10);
    let queue = round.queue.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(20)).await;
        queue.close(LIMIT);
    });
    let (took, counts, _) = carried(round).await;
    assert_eq!((took, counts.failed), (Duration::from_secs(20) + STALL_TIMEOUT, 10));
}

#[tokio::test(start_paused = true)]
async fn a_running_process_gives_an_export_its_configured_time() {
    let round = round(Receives::Silence, Batching { timeout: Duration::from_secs(3), ..bounds(1_000, 10) }, 20);
    let queue = round.queue.clone();
    tokio::spawn(round.carry(channel().0));
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(
        (queue.span_counts().failed, queue.span_counts().queued),
        (10, 10),
        "the first batch failed, the second is in flight"
    );
}

#[tokio::test(start_paused = true)]
async fn rejected_spans_are_counted_with_the_reason() {
    let round = round(Receives::Nothing, bounds(1_000, 10), 25);
    round.queue.close(LIMIT);
    let (_, counts, reason) = carried(round).await;
    assert_eq!((counts.failed, counts.queued), (25, 0));
    assert!(reason.is_some_and(|reason| reason.contains("status 401")));
}

#[test]
fn the_error_names_the_count_the_receiver_and_the_reason() {
    let runtime = ExportRuntime::start().unwrap();
    let sender = ExportSender::start(
        Signal::Traces,
        (Receives::Nothing, reachability()),
        "http://there:4318/v1/traces".into(),
        bounds(10, 10),
        runtime,
    );
    (0..3).for_each(|_| sender.offer(span(1)));
    let complaint = sender.finish(LIMIT).expect_err("lost").to_string();
    for said in ["3 spans", "http://there:4318/v1/traces", "status 401", "OTEL_EXPORTER_OTLP_ENDPOINT"] {
        assert!(complaint.contains(said), "{said}: {complaint}");
    }
}
