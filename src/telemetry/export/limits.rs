//! OpenTelemetry span limits, applied before a span is sent. Pure.
//!
//! There is no limit unless the operator sets one: the 128 attributes that the specification proposes would cut off a
//! conversation after a dozen messages. Removed values are counted on the span. The first attributes are kept, and our
//! spans list the essential ones first.

use super::SettingsError;
use super::variables::Variables;
use crate::spans::{Span, Value};

/// The limits; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// Characters of a text.
    value: Option<usize>,
    attributes: Option<usize>,
    events: Option<usize>,
    links: Option<usize>,
    event_attributes: Option<usize>,
}

/// The counts of what the limits removed from a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DroppedCounts {
    pub(super) attributes: u32,
    pub(super) events: u32,
    pub(super) links: u32,
    /// For each event that remains.
    pub(super) event_attributes: Vec<u32>,
}

impl Limits {
    /// Reads the variables.
    pub(super) fn resolve(variables: Variables<'_>) -> Result<Self, SettingsError> {
        let number = |name| variables.number(name, 0);
        let value = number("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT")?;
        let count = number("OTEL_ATTRIBUTE_COUNT_LIMIT")?;
        number("OTEL_LINK_ATTRIBUTE_COUNT_LIMIT")?; // our links have no attributes; an invalid value is still an error
        Ok(Self {
            value: number("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT")?.or(value),
            attributes: number("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT")?.or(count),
            events: number("OTEL_SPAN_EVENT_COUNT_LIMIT")?,
            links: number("OTEL_SPAN_LINK_COUNT_LIMIT")?,
            event_attributes: number("OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT")?.or(count),
        })
    }

    /// Cuts a span down to the limits.
    pub(super) fn apply(&self, span: &mut Span) -> DroppedCounts {
        let left_out = DroppedCounts {
            attributes: keep(&mut span.attributes, self.attributes),
            events: keep(&mut span.events, self.events),
            links: keep(&mut span.links, self.links),
            event_attributes: span
                .events
                .iter_mut()
                .map(|event| keep(&mut event.attributes, self.event_attributes))
                .collect(),
        };
        if let Some(chars) = self.value {
            let of_events = span.events.iter_mut().flat_map(|event| &mut event.attributes);
            span.attributes.iter_mut().chain(of_events).for_each(|(_, value)| shorten(value, chars));
        }
        left_out
    }
}

/// Keeps the first values and returns the number removed.
fn keep<T>(all: &mut Vec<T>, most: Option<usize>) -> u32 {
    let before = all.len();
    all.truncate(most.unwrap_or(before));
    u32::try_from(before - all.len()).unwrap_or(u32::MAX)
}

fn shorten(value: &mut Value, chars: usize) {
    let end = |text: &str| text.char_indices().nth(chars).map(|(end, _)| end);
    match value {
        Value::Text(text) => {
            if let Some(kept) = end(text).and_then(|end| text.get(..end)) {
                *text = kept.to_owned().into();
            }
        }
        Value::Texts(texts) => texts.iter_mut().for_each(|text| text.truncate(end(text).unwrap_or(text.len()))),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spans::{Attribute, Kind, Link, SpanEvent, Status};
    use jiff::Timestamp;
    use toolgate_core::trace::{SpanId, TraceId};

    fn limits(set: &[(&str, &str)]) -> Result<Limits, SettingsError> {
        let env = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Limits::resolve(Variables(&env))
    }

    fn attributes(count: usize) -> Vec<Attribute> {
        (0..count).map(|n| (format!("name {n}").into(), Value::Text("äöüß€".into()))).collect()
    }

    fn span() -> Span {
        let event = || SpanEvent { name: "event", at: Timestamp::UNIX_EPOCH, attributes: attributes(3) };
        let link = Link { trace: TraceId([1; 16]), span: SpanId([1; 8]) };
        Span {
            trace: TraceId([1; 16]),
            id: SpanId([1; 8]),
            parent: None,
            state: None,
            links: vec![link; 3],
            seq: 0,
            name: "span".into(),
            kind: Kind::Internal,
            start: Timestamp::UNIX_EPOCH,
            end: Timestamp::UNIX_EPOCH,
            status: Status::Ok,
            attributes: attributes(200),
            events: vec![event(), event(), event()],
        }
    }

    #[test]
    fn nothing_is_cut_without_a_limit() {
        let mut cut = span();
        let left_out = limits(&[]).expect("sound").apply(&mut cut);
        assert_eq!((left_out.attributes, left_out.event_attributes), (0, vec![0, 0, 0]));
        assert_eq!(cut, span());
    }

    #[test]
    fn each_limit_keeps_the_first_and_counts_the_rest() {
        let usual = DroppedCounts { event_attributes: vec![0; 3], ..DroppedCounts::default() };
        for (name, expected) in [
            ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", DroppedCounts { attributes: 198, ..usual.clone() }),
            (
                "OTEL_ATTRIBUTE_COUNT_LIMIT",
                DroppedCounts { attributes: 198, event_attributes: vec![1; 3], ..usual.clone() },
            ),
            ("OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", DroppedCounts { event_attributes: vec![1; 3], ..usual.clone() }),
            ("OTEL_SPAN_EVENT_COUNT_LIMIT", DroppedCounts { events: 1, event_attributes: vec![0; 2], ..usual.clone() }),
            ("OTEL_SPAN_LINK_COUNT_LIMIT", DroppedCounts { links: 1, ..usual.clone() }),
        ] {
            let mut cut = span();
            assert_eq!(limits(&[(name, "2")]).expect("sound").apply(&mut cut), expected, "{name}");
            assert_eq!(cut.attributes, span().attributes[..cut.attributes.len()], "{name}");
        }
    }

    #[test]
    fn a_text_is_cut_by_characters_everywhere() {
        for name in ["OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"] {
            let mut cut = span();
            cut.attributes.push(("several".into(), Value::Texts(["äöüß€".into(), "ä".into()].into())));
            limits(&[(name, "2")]).expect("sound").apply(&mut cut);
            assert_eq!(cut.text("name 0"), Some("äö"));
            assert_eq!(cut.attribute("several"), Some(&Value::Texts(["äö".into(), "ä".into()].into())));
            assert_eq!(cut.events[2].attributes[0].1, Value::Text("äö".into()));
        }
    }

    #[test]
    fn span_limits_win_and_malformed_ones_are_rejected_by_name() {
        let both = [("OTEL_ATTRIBUTE_COUNT_LIMIT", "1"), ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "2")];
        assert_eq!(limits(&both).expect("sound").attributes, Some(2));
        let refused = limits(&[("OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", "-1")]).expect_err("refused").to_string();
        assert!(refused.contains("OTEL_LINK_ATTRIBUTE_COUNT_LIMIT is `-1`"), "{refused}");
    }
}
