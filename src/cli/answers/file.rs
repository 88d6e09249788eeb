//! A file of answers, read into the input that the runner takes.

use serde_json::Value;

use super::who;
use crate::cli::binding_digest;
use crate::cli::error::CliError;
use crate::core::run::{Answer, Channel, Resume};
use crate::core::unique_members::UniqueMembers;
use crate::service::Answers;

/// Reads a file of answers, JSON: the body of a resume over HTTP, in which each answer may also name its author (`by`).
pub(in crate::cli) fn read(text: &str, name: &str) -> Result<Resume, CliError> {
    let unreadable = |error: String| {
        CliError::usage(format!("{name} cannot be read as answers: {error}")).with_remedy(
            "write {\"answers\": [{\"type\": \"result\", \"call_id\": …, \"output\": …}, {\"type\": \"decision\", \
             \"call_id\": …, \"decision\": \"approve\"}]}; `toolgate resume --help` shows all types",
        )
    };
    let read: Result<UniqueMembers, _> = serde_json::from_str(text);
    let UniqueMembers(mut file) = read.map_err(|error| unreadable(error.to_string()))?;
    let authors = authors(&mut file).map_err(unreadable)?;
    let answers: Answers = serde_path_to_error::deserialize(file)
        .map_err(|error| unreadable(format!("`{}`: {}", error.path(), error.inner())))?;
    let author = |index: usize| authors.get(index).cloned().flatten().unwrap_or_else(who);
    let mut resume = answers.resume(author, Channel::CommandLine).map_err(|error| {
        let places: Vec<&str> = error.errors.iter().map(|error| error.pointer.as_str()).collect();
        unreadable(format!("`{}`: {}", places.join("`, `"), error.detail))
    })?;
    for (call, answer) in &mut resume.answers {
        if let Answer::Decision { digest: Some(digest), .. } = answer {
            let read = binding_digest::digest(digest);
            let read = read.map_err(|why| CliError::usage(format!("`digest` of call `{call}`: {why}")))?;
            *digest = read.into_digest();
        }
    }
    Ok(resume)
}

/// Takes the author of each answer out of the file.
fn authors(file: &mut Value) -> Result<Vec<Option<String>>, String> {
    let answers = file.get_mut("answers").and_then(Value::as_array_mut);
    let author = |answer: &mut Value| match answer.as_object_mut().and_then(|answer| answer.remove("by")) {
        None => Ok(None),
        Some(Value::String(by)) => Ok(Some(by)),
        Some(other) => Err(format!("`by` is a name, not {other}")),
    };
    answers.into_iter().flatten().map(author).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::id::CallId;
    use crate::core::run::Coverage;

    #[test]
    fn a_file_gives_outputs_errors_and_abandoned_calls() {
        let text = r#"{"answers": [{"type": "result", "call_id": "a", "output": null},
                                   {"type": "result", "call_id": "b", "error": "no"},
                                   {"type": "result", "call_id": "c", "abandoned": true}],
                       "partial": true, "expected_version": 7}"#;
        let resume = read(text, "answers.json").unwrap();
        let expected = [("a", Answer::output(Value::Null)), ("b", Answer::error("no")), ("c", Answer::abandoned())];
        assert_eq!(resume.answers, expected.map(|(call, answer)| (CallId::from(call), answer)));
        assert_eq!((resume.partial, resume.expected_version), (true, Some(7)));
    }

    #[test]
    fn a_result_that_says_two_things_is_refused() {
        let refused = |text: &str| read(text, "f").unwrap_err().to_string();
        let two = refused(r#"{"answers": [{"type": "result", "call_id": "a", "output": 1, "error": "x"}]}"#);
        assert!(two.contains("`/answers/0`: give exactly one of"), "{two}");
        assert!(refused(r#"{"results": []}"#).contains("unknown field"));
        let typo = refused(r#"{"answers": [{"type": "result", "call_id": "a", "outputs": 1}]}"#);
        assert!(typo.contains("`answers[0]`: unknown field `outputs`"), "{typo}");
        assert!(refused(r#"{"answers": [], "answers": []}"#).contains("answers"));
        assert!(refused(r#"{"answers": [["result", "a"]]}"#).contains("expected an object"));
        assert!(refused(r#"{"answers": [{"type": "result", "call_id": "a", "by": 5}]}"#).contains("`by` is a name"));
    }

    #[test]
    fn a_yes_that_reaches_further_covers_these_arguments_unless_it_says_otherwise() {
        let covers = |more: &str| {
            let text =
                format!(r#"{{"answers": [{{"type": "decision", "call_id": "a", "decision": "approve"{more}}}]}}"#);
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
        let text = r#"{"answers": [{"type": "elicitation", "call_id": "a", "by": "kim", "responses":
                       {"sure": {"action": "accept", "content": {"ok": true}}, "login": {"action": "decline"}}}]}"#;
        let resume = read(text, "answers.json").unwrap();
        let (call, answer) = &resume.answers[0];
        let given = answer.elicitation().unwrap();
        assert_eq!((call.as_str(), given.by.as_str()), ("a", "kim"));
        let answers = json!({"login": {"action": "decline"}, "sure": {"action": "accept", "content": {"ok": true}}});
        assert_eq!(json!(given.reactions), answers);
        let unknown =
            r#"{"answers": [{"type": "elicitation", "call_id": "a", "responses": {"sure": {"action": "maybe"}}}]}"#;
        assert!(read(unknown, "f").is_err());
    }
}
