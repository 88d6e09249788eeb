//! A text of spans for the review of snapshots.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use toolgate::core::id::RunId;
use toolgate::telemetry::spans::Span;

/// Writes the first span of each kind with all its attributes, and every later one by its differences from that one: `~` for
/// another value, `+` for a further attribute, `-` for one that it does not have.
#[derive(Default)]
pub(super) struct Review {
    bases: BTreeMap<String, (RunId, Attributes)>,
}

type Attributes = Vec<(String, String)>;

impl Review {
    pub(super) fn text(&mut self, run: &RunId, span: &Span) -> String {
        let attributes: Attributes =
            span.attributes.iter().map(|(name, value)| (name.to_string(), json(value))).collect();
        let kind = span.text("openinference.span.kind").expect("an OpenInference kind");
        let base = format!("{kind} {}", span.name.split(' ').next().unwrap_or_default());
        let mut text = place(span);
        match self.bases.get(&base) {
            None => {
                for (name, value) in &attributes {
                    let _ = writeln!(text, "  {name} = {value}");
                }
                self.bases.insert(base, (run.clone(), attributes));
            }
            Some((of, expected)) => {
                let _ = writeln!(text, "  as {base} of {of}, except");
                text += &differences(expected, &attributes);
            }
        }
        for event in &span.events {
            let _ = writeln!(text, "  event {}", json(event));
        }
        text
    }
}

fn place(span: &Span) -> String {
    let (start, end) = (span.start.as_millisecond(), span.end.as_millisecond());
    let mut text = format!("{} · {:?} · {:?} · {start} to {end} ms\n", span.name, span.kind, span.status);
    let _ = write!(text, "  {} in trace {}", span.id, span.trace);
    if let Some(parent) = &span.parent {
        let _ = write!(text, ", child of {}{}", parent.id, if parent.remote { " of the caller" } else { "" });
    }
    text.push('\n');
    for link in &span.links {
        let _ = writeln!(text, "  link {}", json(link));
    }
    if let Some(state) = &span.state {
        let _ = writeln!(text, "  state {state}");
    }
    text
}

fn differences(expected: &Attributes, attributes: &Attributes) -> String {
    let value =
        |of: &Attributes, name: &str| of.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let mut text = String::new();
    for (name, found) in attributes {
        match value(expected, name) {
            Some(same) if same == *found => {}
            Some(_) => drop(writeln!(text, "  ~ {name} = {found}")),
            None => drop(writeln!(text, "  + {name} = {found}")),
        }
    }
    for (name, _) in expected.iter().filter(|(name, _)| value(attributes, name).is_none()) {
        let _ = writeln!(text, "  - {name}");
    }
    text
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("JSON")
}
