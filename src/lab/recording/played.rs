//! Playable sides of a recording: the recorded model as a script.

use serde_json::{Map, Value};
use toolgate_core::chat;
use toolgate_core::tool::{Arguments, FailureKind, Outcome, ToolOutput};
use toolgate_models::scripted::{Script, ScriptedCall, ScriptedTurn};

use super::expected::Expected;
use super::file::{Part, RecordedCall, RecordedResult, RecordedTurn, Recording};
use super::json_path::JsonPath;

impl Recording {
    /// The recorded model: it gives the recorded replies, whatever the results of its calls. The error names a matcher
    /// that has no value to play.
    pub fn script(&self) -> Result<Script, String> {
        let turns = self.turns.iter().map(scripted_turn).collect::<Result<_, _>>()?;
        let summary = self.summary.clone().map(|text| ScriptedTurn { say: Some(text), ..ScriptedTurn::default() });
        Ok(Script { turns, summary })
    }

    /// The final answer of a run that was recorded just now, whose values are literal.
    pub fn answer(&self) -> Option<Value> {
        self.end.answer.as_ref().and_then(|answer| answer.example().ok())
    }

    /// The server's own name of a tool, by the name that the model sees.
    pub fn own_name(&self, tool: &str) -> Option<&str> {
        self.tools().find(|(_, known)| known.model_name == tool).map(|(_, known)| known.name.as_str())
    }

    /// Whether a comparison leaves out this place.
    pub(super) fn ignores(&self, tool: &str, part: Part, path: &JsonPath) -> bool {
        let concerns = |pattern: &toolgate_core::pattern::NamePattern| pattern.fits(tool).unwrap_or(false);
        self.ignore.iter().any(|ignore| {
            ignore.part == part
                && ignore.tool.as_ref().is_none_or(concerns)
                && ignore.path.as_ref().is_none_or(|pattern| pattern.covers(path))
        })
    }
}

fn scripted_turn(turn: &RecordedTurn) -> Result<ScriptedTurn, String> {
    Ok(ScriptedTurn {
        reasoning: turn.reasoning.clone(),
        say: turn.say.clone(),
        calls: turn.calls.iter().map(scripted_call).collect::<Result<_, _>>()?,
        stop: turn.stop,
        usage: turn.usage,
        ..ScriptedTurn::default()
    })
}

fn scripted_call(call: &RecordedCall) -> Result<ScriptedCall, String> {
    let arguments = call.arguments.example().map_err(|error| format!("{} ({}): {error}", call.id, call.tool))?;
    let arguments = match arguments {
        Value::String(text) => Arguments::Malformed(text),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Arguments::from_value(other)
        }
    };
    Ok(ScriptedCall { id: Some(call.id.clone()), name: call.tool.clone(), arguments })
}

impl RecordedResult {
    /// The whole result as one expected value; `None` if a member cannot be read.
    pub fn expected(&self) -> Option<Expected> {
        let mut members = Map::new();
        let optional = [("text", &self.text), ("content", &self.content), ("structured", &self.structured)];
        for (name, value) in optional {
            members.extend(value.as_ref().map(|value| (name.to_owned(), value.written().clone())));
        }
        members.insert("error".to_owned(), self.error.into());
        for (name, word) in [("failed", &self.failed), ("rejected", &self.rejected)] {
            members.extend(word.as_deref().map(|word| (name.to_owned(), word.into())));
        }
        Expected::parse(Value::Object(members)).ok()
    }

    /// The outcome that plays the result again. The error names a matcher that has no value to play.
    pub fn outcome(&self) -> Result<Outcome, String> {
        let example = |value: &Option<Expected>| value.as_ref().map(Expected::example).transpose();
        let text = example(&self.text)?.and_then(|text| text.as_str().map(str::to_owned));
        if let Some(kind) = &self.failed {
            let kind = serde_json::from_value::<FailureKind>(kind.as_str().into()).ok();
            let message = text.unwrap_or_else(|| "the recorded call failed".to_owned());
            return Ok(kind.map_or(Outcome::Unknown, |kind| Outcome::failed(kind, message)));
        }
        let unreadable = |error: serde_json::Error| format!("`content` is not a list of parts: {error}");
        let content = match example(&self.content)? {
            Some(parts) => serde_json::from_value(parts).map_err(unreadable)?,
            None => text.into_iter().map(chat::Part::text).collect(),
        };
        let structured = example(&self.structured)?;
        Ok(Outcome::Returned(ToolOutput { content, structured, is_error: self.error, ..ToolOutput::default() }))
    }

    /// Whether the model read an error.
    pub fn is_error(&self) -> bool {
        self.error || self.failed.is_some() || self.rejected.is_some()
    }

    /// Whether a server gave it. toolgate rejects the other calls without sending them.
    pub(super) fn is_from_server(&self) -> bool {
        self.rejected.is_none()
    }
}
