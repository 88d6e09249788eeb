//! A file of answers, read into the input that the runner takes.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{unpause, who};
use crate::cli::binding_digest;
use crate::cli::error::CliError;
use crate::core::id::CallId;
use crate::core::run::{
    Answer, Channel, Coverage, Decision, DecisionKind, ElicitationAnswer, HumanAnswer, Resume, Scope, TighterLimits,
};
use crate::core::tool::{Arguments, Choice, ElicitationResponses};
use crate::service::{GivenResult, coverage};

/// A file of answers, JSON. Its entries are those of the API, and those of people may name the person (`by`).
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AnswersFile {
    results: Vec<GivenResult>,
    decisions: Vec<WrittenDecision>,
    answers: Vec<WrittenAnswer>,
    inputs: Vec<WrittenInput>,
    #[serde(rename = "continue")]
    continues: bool,
    /// Other limits of a run that continues.
    #[serde(default)]
    limits: TighterLimits,
    partial: bool,
    expected_version: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDecision {
    call_id: CallId,
    decision: DecisionKind,
    #[serde(default)]
    scope: Scope,
    /// Which later calls a wider scope covers: those with the same arguments, or any of the tool.
    #[serde(rename = "match")]
    coverage: Option<Coverage>,
    expires_at: Option<Timestamp>,
    reason: Option<String>,
    edited_arguments: Option<serde_json::Map<String, Value>>,
    /// The digest of what was shown, as the listing of approvals gives it.
    digest: Option<String>,
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
    let results = file.results.into_iter().map(result);
    let decisions = file.decisions.into_iter().map(WrittenDecision::answer);
    let answers = file.answers.into_iter().map(|written| Ok(written.answer()));
    let inputs = file.inputs.into_iter().map(|written| Ok(written.answer()));
    let answers = results.chain(decisions).chain(answers).chain(inputs).collect::<Result<_, CliError>>()?;
    let unpause = file.continues.then(|| unpause(file.limits));
    Ok(Resume { answers, unpause, partial: file.partial, expected_version: file.expected_version })
}

fn result(written: GivenResult) -> Result<(CallId, Answer), CliError> {
    written.answer().map_err(|call| {
        CliError::usage(format!("the result of `{call}` needs exactly one of output, error, abandoned"))
    })
}

impl WrittenDecision {
    fn answer(self) -> Result<(CallId, Answer), CliError> {
        let digest = self.digest.as_deref().map(binding_digest::digest).transpose();
        let digest = digest.map_err(|why| CliError::usage(format!("`digest` of call `{}`: {why}", self.call_id)))?;
        let decision = Decision {
            via: Channel::CommandLine,
            reason: self.reason,
            scope: self.scope,
            coverage: coverage(self.scope, self.coverage),
            expires_at: self.expires_at,
            edited_arguments: self.edited_arguments.map(Arguments::Object),
            ..Decision::new(self.decision, self.by.unwrap_or_else(who))
        };
        let digest = digest.map(binding_digest::DigestPrefix::into_digest);
        Ok((self.call_id, Answer::Decision { decision: Box::new(decision), digest }))
    }
}

impl WrittenAnswer {
    fn answer(self) -> (CallId, Answer) {
        let choice = Choice { chosen: self.chosen, text: self.text };
        (self.call_id, HumanAnswer { choice, by: self.by.unwrap_or_else(who), via: Channel::CommandLine }.into())
    }
}

impl WrittenInput {
    fn answer(self) -> (CallId, Answer) {
        let by = self.by.unwrap_or_else(who);
        let given = ElicitationAnswer { reactions: self.answers, by, via: Channel::CommandLine, repeat: self.repeat };
        (self.call_id, given.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_gives_outputs_errors_and_abandoned_calls() {
        let text = r#"{"results": [{"call_id": "a", "output": null}, {"call_id": "b", "error": "no"},
                       {"call_id": "c", "abandoned": true}], "partial": true, "expected_version": 7}"#;
        let resume = read(text, "answers.json").unwrap();
        let expected = [("a", Answer::output(Value::Null)), ("b", Answer::error("no")), ("c", Answer::abandoned())];
        assert_eq!(resume.answers, expected.map(|(call, answer)| (CallId::from(call), answer)));
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
            read(&text, "f").map(|resume| resume.decisions().next().unwrap().1.coverage.clone())
        };
        for (more, expected) in [
            ("", Coverage::Tool),
            (r#", "scope": "session""#, Coverage::Arguments),
            (r#", "scope": "always", "match": "tool""#, Coverage::Tool),
        ] {
            assert_eq!(covers(more).unwrap(), expected, "{more}");
        }
        assert!(covers(r#", "digest": "sha256:""#).unwrap_err().to_string().contains("call `a`"));
    }

    #[test]
    fn a_file_answers_what_servers_want_to_know() {
        let text = r#"{"inputs": [{"call_id": "a", "by": "kim", "answers":
                       {"sure": {"action": "accept", "content": {"ok": true}}, "login": {"action": "decline"}}}]}"#;
        let resume = read(text, "answers.json").unwrap();
        let (call, answer) = &resume.answers[0];
        let given = answer.elicitation().unwrap();
        assert_eq!((call.as_str(), given.by.as_str()), ("a", "kim"));
        let answers = json!({"login": {"action": "decline"}, "sure": {"action": "accept", "content": {"ok": true}}});
        assert_eq!(json!(given.reactions), answers);
        assert!(read(r#"{"inputs": [{"call_id": "a", "answers": {"sure": {"action": "maybe"}}}]}"#, "f").is_err());
    }
}
