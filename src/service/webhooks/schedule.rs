//! Retry schedule: when a message is sent again, and the health of its endpoint after an attempt. Pure.

use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use toolgate_core::id::MessageId;
use toolgate_ports::{
    Attempt, DeliveryResult, DeliveryState, Disabled, EndpointHealth, WebhookDelivery, WebhookEndpoint,
};

use super::client::AttemptOutcome;

const SECOND: u64 = 1;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The pause after each failed attempt: eight attempts within about 28 hours.
const PAUSES: [u64; 7] = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];

/// The longest pause that an endpoint may ask for.
const LONGEST: Duration = Duration::from_secs(24 * HOUR);

/// How long an endpoint may fail before it is disabled.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(5 * 24 * HOUR);

/// How many attempts are kept in the log of a message.
const KEPT: usize = 24;

/// The state of a message and of its endpoint after an attempt.
pub(super) fn settled(
    endpoint: &WebhookEndpoint,
    mut delivery: WebhookDelivery,
    began: Timestamp,
    took: Duration,
    answered: AttemptOutcome,
) -> DeliveryResult {
    let taken_until = delivery.due_at().unwrap_or(began);
    let now = later(began, took);
    delivery.tries += 1;
    let (status, error) = (answered.status(), answered.error());
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    delivery.attempts.push(Attempt { at: began, duration_ms, status, error });
    delivery.attempts.drain(..delivery.attempts.len().saturating_sub(KEPT));
    let health = match &answered {
        AttemptOutcome::Taken { .. } => EndpointHealth::Well,
        AttemptOutcome::Gone => EndpointHealth::Disabled(Disabled {
            at: now,
            reason: "it answered 410, which means gone for good".to_owned(),
        }),
        AttemptOutcome::Refused { .. } | AttemptOutcome::Nothing { .. } => match endpoint.failing_since {
            Some(since) if now >= later(since, GIVEN_UP_AFTER) => {
                let reason = format!("no message was delivered since {since:.0}");
                EndpointHealth::GivenUp { since, disabled: Disabled { at: now, reason } }
            }
            Some(_) | None => EndpointHealth::Failing(now),
        },
    };
    delivery.state = match &answered {
        AttemptOutcome::Taken { .. } => DeliveryState::Delivered,
        AttemptOutcome::Gone => DeliveryState::Failed,
        AttemptOutcome::Refused { .. } | AttemptOutcome::Nothing { .. } => match pause(&delivery.id, delivery.tries) {
            None => DeliveryState::Failed,
            Some(pause) => {
                let asked = answered.retry_after(now).map_or(Duration::ZERO, |asked| asked.min(LONGEST));
                DeliveryState::Waiting { due_at: later(now, pause.max(asked)) }
            }
        },
    };
    DeliveryResult { delivery, taken_until, health }
}

/// The pause after that many attempts; `None` after the last. A jitter of a fifth spreads retries of messages that
/// failed together.
fn pause(id: &MessageId, tries: u32) -> Option<Duration> {
    let position = usize::try_from(tries).ok()?.checked_sub(1)?;
    let pause = Duration::from_secs(*PAUSES.get(position)?);
    let digest = Sha256::digest(format!("{id} {tries}"));
    let chance = f64::from(digest.first().copied().unwrap_or_default()) / 255.0;
    Some(pause.mul_f64(0.8 + 0.4 * chance))
}

fn later(at: Timestamp, by: Duration) -> Timestamp {
    at.saturating_add(by).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_ports::{EndpointSecrets, WebhookKind, WebhookSecret};

    fn at(second: u64) -> Timestamp {
        later(Timestamp::UNIX_EPOCH, Duration::from_secs(second))
    }

    fn endpoint(failing_since: Option<Timestamp>) -> WebhookEndpoint {
        WebhookEndpoint {
            id: "we_1".into(),
            tenant: "acme".into(),
            url: "https://example.com".into(),
            events: [].into(),
            description: None,
            run: None,
            secrets: EndpointSecrets { current: WebhookSecret::new("whsec_"), previous: Vec::new() },
            created_at: at(0),
            configured: false,
            revision: 1,
            failing_since,
            disabled: None,
        }
    }

    fn delivery(tries: u32) -> WebhookDelivery {
        WebhookDelivery {
            id: "msg_1".into(),
            endpoint: "we_1".into(),
            kind: WebhookKind::Test,
            run: None,
            body: "{}".into(),
            created_at: at(0),
            state: DeliveryState::Waiting { due_at: at(60) },
            tries,
            attempts: Vec::new(),
        }
    }

    fn refused(retry_after: Option<&str>) -> AttemptOutcome {
        AttemptOutcome::Refused { status: 503, retry_after: retry_after.map(str::to_owned) }
    }

    fn next(tries: u32, answered: AttemptOutcome) -> Option<u64> {
        let settled = settled(&endpoint(None), delivery(tries), at(0), Duration::ZERO, answered);
        settled.delivery.due_at().map(|due| u64::try_from(due.as_second()).expect("later"))
    }

    #[test]
    fn a_message_is_tried_eight_times_within_about_a_day() {
        let pauses: Vec<Option<u64>> = (0..8).map(|tries| next(tries, refused(None))).collect();
        for (pause, usual) in pauses.iter().zip(PAUSES) {
            let pause = pause.expect("another attempt");
            assert!((usual * 4 / 5..=usual * 6 / 5).contains(&pause), "{pause} instead of {usual}");
        }
        assert_eq!(pauses[7], None, "eight attempts are all");
        let all: u64 = pauses.iter().flatten().sum();
        assert!((22 * HOUR..34 * HOUR).contains(&all), "{all}");
    }

    #[test]
    fn an_endpoint_can_lengthen_a_pause_and_never_shorten_it() {
        assert_eq!(next(0, refused(Some("120"))), Some(120));
        assert_eq!(next(0, refused(Some("Thu, 01 Jan 1970 00:03:00 GMT"))), Some(180));
        assert_eq!(next(0, refused(Some("99999999"))), Some(24 * HOUR));
        assert!(next(1, refused(Some("1"))).is_some_and(|next| next > 200));
        assert!(next(0, refused(Some("soon"))).is_some_and(|next| next < 10));
    }

    #[test]
    fn an_endpoint_that_is_gone_or_fails_for_days_is_disabled() {
        let health =
            |since, now, answered| settled(&endpoint(since), delivery(0), now, Duration::ZERO, answered).health;
        assert!(matches!(health(None, at(9), AttemptOutcome::Gone), EndpointHealth::Disabled(_)));
        assert_eq!(health(None, at(9), refused(None)), EndpointHealth::Failing(at(9)));
        let days = 5 * 24 * HOUR;
        assert!(matches!(health(Some(at(0)), at(days - 1), refused(None)), EndpointHealth::Failing(_)));
        let given_up = health(Some(at(0)), at(days), refused(None));
        let EndpointHealth::GivenUp { since, disabled } = given_up else { panic!("it is not disabled") };
        assert_eq!(since, at(0));
        assert_eq!(disabled.reason, "no message was delivered since 1970-01-01T00:00:00Z");
        assert_eq!(health(Some(at(0)), at(days), AttemptOutcome::Taken { status: 204 }), EndpointHealth::Well);
    }

    #[test]
    fn the_log_of_a_message_keeps_its_last_attempts() {
        let mut delivery = delivery(0);
        for second in 0..40 {
            delivery.tries = 0;
            delivery = settled(&endpoint(None), delivery, at(second), Duration::from_millis(5), refused(None)).delivery;
        }
        assert_eq!(delivery.attempts.len(), KEPT);
        let last = delivery.attempts.last().expect("attempts");
        assert_eq!((last.at, last.duration_ms, last.status), (at(39), 5, Some(503)));
    }
}
