//! A file of answers, read into the input that the runner takes.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::who;
use crate::cli::binding_digest;
use crate::cli::error::CliError;
use crate::core::id::CallId;
use crate::core::run::{Answer, Channel, Coverage, Decision, ElicitationAnswer, HumanAnswer, Resume, Scope};
use crate::core::tool::{Arguments, Choice, ElicitationResponses, Outcome};
use crate::service::{coverage, outcome, present};

/// A file of answers, JSON.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AnswersFile {
    results: Vec<WrittenResult>,
    decisions: Vec<WrittenDecision>,
    answers: Vec<WrittenAnswer>,
    inputs: Vec<WrittenInput>,
    partial: bool,
    expected_version: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenResult {
    call_id: CallId,
    #[serde(default, deserialize_with = "present")]
    output: Option<Value>,
    error: Option<String>,
    #[serde(default)]
    abandoned: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDecision {
    call_id: CallId,
    decision: Answer,
    #[serde(default)]
    scope: Scope,
    /// Which later calls a wider scope covers: those with the same arguments, or any of the tool.
    covers: Option<Coverage>,
    expires_at: Option<Timestamp>,
    reason: Option<String>,
    edited_arguments: Option<serde_json::Map<String, Value>>,
    /// The digest of what was shown, as the listing of approvals gives it.
    seen: Option<String>,
    by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAnswer {
    call_id: CallId,
    #[serde(default)]
    chosen: Vec<String>,
    text: Option<String>,
    by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenInput {
    call_id: CallId,
    answers: ElicitationResponses,
    /// Whether a call that had begun may be sent a second time.
    #[serde(default)]
    repeat: bool,
    by: Option<String>,
}

/// Reads a file of answers.
pub(in crate::cli) fn read(text: &str, name: &str) -> Result<Resume, CliError> {
    let file: AnswersFile = serde_json::from_str(text).map_err(|error| {
        CliError::usage(format!("{name} cannot be read as answers: {error}")).with_remedy(
            "write {\"results\": [{\"call_id\": …, \"output\": …}], \"decisions\": [{\"call_id\": …, \"decision\": \
             \"approve\"}], \"inputs\": [{\"call_id\": …, \"answers\": {\"KEY\": {\"action\": \"accept\", \"content\": \
             {…}}}}]}",
        )
    })?;
    let results = file.results.into_iter().map(WrittenResult::outcome).collect::<Result<_, _>>()?;
    let seen = file.decisions.iter().filter_map(WrittenDecision::seen).collect::<Result<_, _>>()?;
    let decisions = file.decisions.into_iter().map(WrittenDecision::decision).collect();
    Ok(Resume {
        results,
        decisions,
        seen,
        answers: file.answers.into_iter().map(WrittenAnswer::answer).collect(),
        inputs: file.inputs.into_iter().map(WrittenInput::given).collect(),
        partial: file.partial,
        expected_version: file.expected_version,
    })
}

impl WrittenResult {
    fn outcome(self) -> Result<(CallId, Outcome), CliError> {
        let message = format!("the result of `{}` needs exactly one of output, error, abandoned", self.call_id);
        outcome(self.call_id, self.output, self.error, self.abandoned).ok_or_else(|| CliError::usage(message))
    }
}

impl WrittenDecision {
    fn seen(&self) -> Option<Result<(CallId, String), CliError>> {
        let call = &self.call_id;
        let digest = binding_digest::digest(self.seen.as_ref()?);
        let digest = digest.map(|seen| (call.clone(), seen.into_digest()));
        Some(digest.map_err(|why| CliError::usage(format!("`seen` of call `{call}`: {why}"))))
    }

    fn decision(self) -> (CallId, Decision) {
        let decision = Decision {
            via: Channel::CommandLine,
            reason: self.reason,
            scope: self.scope,
            covers: coverage(self.scope, self.covers),
            expires_at: self.expires_at,
            edited_arguments: self.edited_arguments.map(Arguments::Object),
            ..Decision::new(self.decision, self.by.unwrap_or_else(who))
        };
        (self.call_id, decision)
    }
}

impl WrittenAnswer {
    fn answer(self) -> (CallId, HumanAnswer) {
        let choice = Choice { chosen: self.chosen, text: self.text };
        (self.call_id, HumanAnswer { choice, by: self.by.unwrap_or_else(who), via: Channel::CommandLine })
    }
}

impl WrittenInput {
    fn given(self) -> (CallId, ElicitationAnswer) {
        let by = self.by.unwrap_or_else(who);
        (
            self.call_id,
            ElicitationAnswer { reactions: self.answers, by, via: Channel::CommandLine, repeat: self.repeat },
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::tool::ToolOutput;
    use crate::runner::ResultFor;

    #[test]
    fn a_file_gives_outputs_errors_and_abandoned_calls() {
        let text = r#"{"results": [{"call_id": "a", "output": null}, {"call_id": "b", "error": "no"},
                       {"call_id": "c", "abandoned": true}], "partial": true, "expected_version": 7}"#;
        let resume = read(text, "answers.json").unwrap();
        let null = ToolOutput::from_value(Value::Null);
        assert_eq!(resume.results[0], (CallId::from("a"), Outcome::Returned(null)));
        assert_eq!(resume.results[1], ResultFor::error("b", "no"));
        assert_eq!(resume.results[2], ResultFor::abandoned("c"));
        assert_eq!((resume.partial, resume.expected_version), (true, Some(7)));
    }

    #[test]
    fn a_result_that_says_two_things_is_refused() {
        let error = read(r#"{"results": [{"call_id": "a", "output": 1, "error": "x"}]}"#, "f").unwrap_err();
        assert!(error.to_string().contains("exactly one of"), "{error}");
        assert!(read(r#"{"result": []}"#, "f").unwrap_err().to_string().contains("unknown field"));
    }

    #[test]
    fn a_yes_that_reaches_further_covers_these_arguments_unless_it_says_otherwise() {
        let covers = |more: &str| {
            let text = format!(r#"{{"decisions": [{{"call_id": "a", "decision": "approve"{more}}}]}}"#);
            read(&text, "f").map(|resume| resume.decisions[0].1.covers)
        };
        for (more, expected) in [
            ("", Coverage::Tool),
            (r#", "scope": "session""#, Coverage::Arguments),
            (r#", "scope": "always", "covers": "tool""#, Coverage::Tool),
        ] {
            assert_eq!(covers(more).unwrap(), expected, "{more}");
        }
        assert!(covers(r#", "seen": "sha256:""#).unwrap_err().to_string().contains("call `a`"));
    }

    #[test]
    fn a_file_answers_what_servers_want_to_know() {
        let text = r#"{"inputs": [{"call_id": "a", "by": "kim", "answers":
                       {"sure": {"action": "accept", "content": {"ok": true}}, "login": {"action": "decline"}}}]}"#;
        let resume = read(text, "answers.json").unwrap();
        let (call, given) = &resume.inputs[0];
        assert_eq!((call.as_str(), given.by.as_str()), ("a", "kim"));
        let answers = json!({"login": {"action": "decline"}, "sure": {"action": "accept", "content": {"ok": true}}});
        assert_eq!(json!(given.reactions), answers);
        assert!(read(r#"{"inputs": [{"call_id": "a", "answers": {"sure": {"action": "maybe"}}}]}"#, "f").is_err());
    }
}
