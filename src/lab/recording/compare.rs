//! Comparison of two recordings: each place where a replayed run differs from the recorded one, the first one first.

use serde_json::{Value, json};

use super::difference::Difference;
use super::divergence::{Divergence, DivergenceKind};
use super::file::{CallOrder, Part, RecordedCall, RecordedTool, Recording};
use super::json_path::JsonPath;
use super::matcher::Members;

/// The side that a recording plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The model; the server is real.
    Model,
    /// The server; the model is real.
    Server,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The differences that matter, in the order of the run.
    pub divergences: Vec<Divergence>,
    /// The differences between the lists of tools that concern no call of the recording.
    pub notes: Vec<Divergence>,
}

/// Compares a replayed run with the recording that one side of it played.
pub fn compare(recorded: &Recording, replayed: &Recording, side: Side) -> Comparison {
    let mut comparison = Comparer { recorded, replayed, side, found: Comparison::default() };
    if side == Side::Model {
        comparison.tools();
    }
    match recorded.order {
        CallOrder::Exact => comparison.calls_in_order(),
        CallOrder::Any => comparison.calls_in_any_order(),
    }
    comparison.end();
    comparison.found
}

struct Comparer<'a> {
    recorded: &'a Recording,
    replayed: &'a Recording,
    side: Side,
    found: Comparison,
}

impl Comparer<'_> {
    fn tools(&mut self) {
        for (server, tool) in self.recorded.tools() {
            let listed = self.replayed.servers.get(server);
            let same = |other: &&RecordedTool| other.name == tool.name;
            match listed.and_then(|listed| listed.tools.iter().find(same)) {
                Some(other) => self.definition(tool, other),
                None => {
                    let reason = listed.and_then(|listed| listed.unavailable.clone());
                    let removed = Divergence {
                        actual: reason.map(Value::from),
                        ..Divergence::of_tool(DivergenceKind::ToolRemoved, &tool.model_name)
                    };
                    self.note_tool(&tool.model_name, removed);
                }
            }
        }
        for (server, tool) in self.replayed.tools() {
            let known = self.recorded.servers.get(server);
            if !known.is_some_and(|known| known.tools.iter().any(|other| other.name == tool.name)) {
                self.found.notes.push(Divergence::of_tool(DivergenceKind::ToolAdded, &tool.model_name));
            }
        }
    }

    fn definition(&mut self, recorded: &RecordedTool, listed: &RecordedTool) {
        let (expected, actual) = (definition(recorded), definition(listed));
        for difference in self.literal_differences(&recorded.model_name, Part::Definition, &expected, &actual) {
            let changed = Divergence::of_tool(DivergenceKind::ToolChanged, &recorded.model_name).at(difference);
            self.note_tool(&recorded.model_name, changed);
        }
    }

    /// A difference of a tool matters if the recording calls the tool.
    fn note_tool(&mut self, tool: &str, divergence: Divergence) {
        let is_called = self.recorded.calls().any(|call| call.tool == tool);
        if is_called { self.found.divergences.push(divergence) } else { self.found.notes.push(divergence) }
    }

    fn calls_in_order(&mut self) {
        let recorded: Vec<&RecordedCall> = self.recorded.calls().collect();
        let replayed: Vec<&RecordedCall> = self.replayed.calls().collect();
        for (index, call) in recorded.iter().enumerate() {
            let Some(other) = replayed.get(index) else {
                return self.found.divergences.push(Divergence::of_call(
                    DivergenceKind::MissingCall,
                    index,
                    &call.tool,
                ));
            };
            if other.tool != call.tool {
                let comes_later = replayed.iter().skip(index).any(|later| later.tool == call.tool);
                let was_recorded = recorded.iter().skip(index).any(|later| later.tool == other.tool);
                let kind = match comes_later && was_recorded {
                    true => DivergenceKind::Order,
                    false => DivergenceKind::Call,
                };
                // The calls after this one no longer correspond to each other.
                return self.found.divergences.push(Divergence {
                    expected: Some(call.tool.as_str().into()),
                    actual: Some(other.tool.as_str().into()),
                    ..Divergence::of_call(kind, index, &call.tool)
                });
            }
            self.call(index, call, other);
        }
        for (index, other) in replayed.iter().enumerate().skip(recorded.len()) {
            self.extra(index, other);
        }
    }

    fn calls_in_any_order(&mut self) {
        let mut open: Vec<(usize, &RecordedCall)> = self.replayed.calls().enumerate().collect();
        for (index, call) in self.recorded.calls().enumerate() {
            let fits =
                |other: &RecordedCall| other.tool == call.tool && self.argument_differences(call, other).is_empty();
            let same = open.iter().position(|(_, other)| fits(other));
            match same.or_else(|| open.iter().position(|(_, other)| other.tool == call.tool)) {
                Some(position) => {
                    let (_, other) = open.remove(position);
                    self.call(index, call, other);
                }
                None => {
                    self.found.divergences.push(Divergence::of_call(DivergenceKind::MissingCall, index, &call.tool));
                }
            }
        }
        for (index, other) in open {
            self.extra(index, other);
        }
    }

    fn extra(&mut self, index: usize, call: &RecordedCall) {
        self.found.divergences.push(Divergence {
            actual: Some(call.arguments.written().clone()),
            ..Divergence::of_call(DivergenceKind::ExtraCall, index, &call.tool)
        });
    }

    fn call(&mut self, index: usize, recorded: &RecordedCall, replayed: &RecordedCall) {
        for difference in self.argument_differences(recorded, replayed) {
            let found = Divergence::of_call(DivergenceKind::Arguments, index, &recorded.tool).at(difference);
            self.found.divergences.push(found);
        }
        if self.side == Side::Model {
            for difference in self.result_differences(recorded, replayed) {
                let found = Divergence::of_call(DivergenceKind::Result, index, &recorded.tool).at(difference);
                self.found.divergences.push(found);
            }
        }
    }

    fn argument_differences(&self, recorded: &RecordedCall, replayed: &RecordedCall) -> Vec<Difference> {
        let Ok(actual) = replayed.arguments.example() else { return Vec::new() };
        let ignored = self.ignored(&recorded.tool, Part::Arguments);
        recorded.arguments.differences(&actual, Members::Exact, &ignored)
    }

    fn result_differences(&self, recorded: &RecordedCall, replayed: &RecordedCall) -> Vec<Difference> {
        let (Some(expected), Some(actual)) = (recorded.result.expected(), replayed.result.expected()) else {
            return Vec::new();
        };
        let Ok(actual) = actual.example() else { return Vec::new() };
        expected.differences(&actual, Members::Exact, &self.ignored(&recorded.tool, Part::Result))
    }

    fn end(&mut self) {
        let (recorded, replayed) = (&self.recorded.end, &self.replayed.end);
        if recorded.status != replayed.status {
            let mut actual = json!({"status": replayed.status});
            if let (Some(members), Some(error)) = (actual.as_object_mut(), &replayed.error) {
                members.insert("error".to_owned(), error.as_str().into());
            }
            return self.found.divergences.push(Divergence {
                expected: Some(json!({"status": recorded.status})),
                actual: Some(actual),
                ..Divergence::new(DivergenceKind::Ending)
            });
        }
        let Some(expected) = &recorded.answer else { return };
        // A real model words its answer in its own way.
        if self.side == Side::Server && !expected.has_matchers() {
            return;
        }
        let actual = replayed.answer.as_ref().and_then(|answer| answer.example().ok()).unwrap_or_default();
        let differences = expected.differences(&actual, Members::Exact, &self.ignored("", Part::Answer));
        let found = differences.into_iter().map(|difference| Divergence::new(DivergenceKind::Answer).at(difference));
        self.found.divergences.extend(found);
    }

    fn literal_differences(&self, tool: &str, part: Part, expected: &Value, actual: &Value) -> Vec<Difference> {
        let expected = super::expected::Expected::literal(expected.clone());
        expected.differences(actual, Members::Exact, &self.ignored(tool, part))
    }

    /// Whether the file says that a place in this part is not compared.
    fn ignored<'s>(&'s self, tool: &'s str, part: Part) -> impl Fn(&JsonPath) -> bool + 's {
        move |path| self.recorded.ignores(tool, part, path)
    }
}

fn definition(tool: &RecordedTool) -> Value {
    json!({
        "description": tool.description, "input_schema": tool.input_schema, "output_schema": tool.output_schema,
        "annotations": tool.annotations,
    })
}
