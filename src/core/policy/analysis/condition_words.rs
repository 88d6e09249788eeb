//! Condition of a grant in words, for the forms that proposals have.

use serde_json::json;

use super::command_proposal::command_words;
use super::grant_proposals::{FOLDERS, place_in_words};
use crate::policy::{CommandPattern, FollowingWords, WantedCommand};

/// A condition such as `args.commandStartsWith(["git","diff"]) && args.cwd == "/srv"` in words: ``a command `git diff …` in
/// /srv``. `None` for a condition in another form, which a person wrote.
pub fn condition_in_words(condition: &str) -> Option<String> {
    let (mut words, mut folders) = (Vec::new(), String::new());
    for part in conjuncts(condition) {
        let part = part.strip_prefix("args.")?;
        // The names of the arguments that a call may have only narrow the condition.
        if part.starts_with("all(name, name in [") {
            continue;
        }
        match part.split_once(" == ") {
            Some((name, value)) if FOLDERS.contains(&name) => {
                folders.push_str(&format!(" in {}", serde_json::from_str::<String>(value).ok()?));
            }
            Some((name, value)) if is_name(name) => {
                words.push(format!("{name} {}", serde_json::from_str::<serde_json::Value>(value).ok()?));
            }
            Some(_) => return None,
            None => words.push(test_words(part)?),
        }
    }
    (!words.is_empty()).then(|| words.join(" and ") + &folders)
}

/// The values of `command` in rules that come closest to a condition about commands, as JSON. A rule also covers words that name
/// files outside of the folder, which a grant does not. `None` for a condition in another form.
pub fn nearest_command_criteria(condition: &str) -> Option<Vec<String>> {
    let tests = conjuncts(condition).filter_map(|part| part.strip_prefix("args.")?.strip_suffix(')')?.split_once('('));
    for (function, arguments) in tests {
        let lists = || serde_json::from_str::<Vec<Vec<String>>>(&format!("[{arguments}]")).ok();
        let criteria: Option<Vec<String>> = match function {
            "commandStartsWith" | "commandPartsStartWith" => {
                lists().map(|lists| lists.iter().map(|words| json!(words).to_string()).collect())
            }
            "commandEquals" => lists().map(|lists| {
                lists.iter().map(|words| format!("{{\"words\":{},\"exact\":true}}", json!(words))).collect()
            }),
            _ => None,
        };
        if criteria.is_some() {
            return criteria;
        }
    }
    None
}

/// The words of a comparison that is no equality.
fn test_words(test: &str) -> Option<String> {
    if let Some((name, most)) = test.split_once(" <= ") {
        return (is_name(name) && most.parse::<f64>().is_ok()).then(|| format!("{name} at most {most}"));
    }
    let (function, arguments) = test.strip_suffix(')')?.split_once('(')?;
    let pattern = |words: Vec<String>| CommandPattern {
        argument: None,
        words: words.into_iter().map(|word| vec![word]).collect(),
        rest: FollowingWords::Any,
    };
    match function {
        "commandStartsWith" => {
            let words = serde_json::from_str(arguments).ok()?;
            Some(command_words(&WantedCommand::Parts(vec![pattern(words)])))
        }
        "commandPartsStartWith" => {
            let lists: Vec<Vec<String>> = serde_json::from_str(&format!("[{arguments}]")).ok()?;
            Some(command_words(&WantedCommand::Parts(lists.into_iter().map(pattern).collect())))
        }
        "commandEquals" => {
            let words = serde_json::from_str::<Vec<String>>(arguments).map(|words| words.join(" "));
            let text = words.or_else(|_| serde_json::from_str(arguments)).ok()?;
            Some(format!("the command `{text}`"))
        }
        _ => {
            let name = function.strip_suffix(".lexicallyWithin").filter(|name| is_name(name))?;
            Some(place_in_words(name, &serde_json::from_str::<String>(arguments).ok()?))
        }
    }
}

fn is_name(name: &str) -> bool {
    name.chars().all(|sign| sign.is_alphanumeric() || sign == '_')
}

/// The parts of a conjunction, without the parentheses around a part.
fn conjuncts(condition: &str) -> impl Iterator<Item = &str> {
    let (mut starts, mut ends) = (vec![0], Vec::new());
    let (mut depth, mut is_quoted, mut is_escaped) = (0_u32, false, false);
    for (at, sign) in condition.char_indices() {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '(' | '[' if !is_quoted => depth += 1,
            ')' | ']' if !is_quoted => depth = depth.saturating_sub(1),
            '&' if depth == 0 && !is_quoted && condition.get(at..).is_some_and(|rest| rest.starts_with("&& ")) => {
                ends.push(at);
                starts.push(at + 3);
            }
            _ => {}
        }
    }
    ends.push(condition.len());
    let parts = starts.into_iter().zip(ends).filter_map(|(start, end)| condition.get(start..end));
    parts.map(|part| {
        let part = part.trim();
        part.strip_prefix('(').and_then(|part| part.strip_suffix(')')).unwrap_or(part)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{grant_proposals, likely_proposal};
    use super::*;

    #[test]
    fn every_proposal_has_words() {
        for arguments in [
            json!({"command": "git diff HEAD && echo \") && (\" | head", "cwd": "/srv", "timeout": 3}),
            json!({"command": "git diff > x", "cwd": "/a && b"}),
            json!({"command": "cat a b"}),
            json!({"path": "a.rs", "content": "x"}),
            json!({"path": "/srv/app/src/main.rs", "amount": 3, "name": "a\"b", "sure": true}),
        ] {
            let arguments = arguments.as_object().unwrap();
            for proposal in grant_proposals(arguments).into_iter().chain(likely_proposal(arguments)) {
                assert!(condition_in_words(&proposal.condition).is_some(), "{}", proposal.condition);
            }
        }
    }

    #[test]
    fn a_condition_about_commands_has_a_nearest_rule() {
        let nearest = |condition: &str| nearest_command_criteria(condition).map(|criteria| criteria.join(" "));
        let parts = r#"args.commandPartsStartWith(["git","diff"], ["head"]) && args.cwd == "/srv""#;
        assert_eq!(nearest(parts).as_deref(), Some(r#"["git","diff"] ["head"]"#));
        let whole = r#"args.commandEquals(["npm","test"])"#;
        assert_eq!(nearest(whole).as_deref(), Some(r#"{"words":["npm","test"],"exact":true}"#));
        assert_eq!(nearest(r#"args.commandEquals("git diff > x")"#), None);
        assert_eq!(nearest("args.amount <= 5"), None);
    }

    #[test]
    fn conditions_are_told_in_words() {
        for (condition, words) in [
            (
                r#"args.commandPartsStartWith(["git","diff"]) && args.cwd == "/srv" && args.all(name, name in ["command"])"#,
                Some("a command `git diff …` in /srv"),
            ),
            (r#"args.commandEquals(["git","diff"])"#, Some("the command `git diff`")),
            (r#"args.commandEquals("git diff > x")"#, Some("the command `git diff > x`")),
            (r#"(args.order == 7) && (args.amount <= 100)"#, Some("order 7 and amount at most 100")),
            (r#"args.path.lexicallyWithin("/srv")"#, Some("path under /srv")),
            (r#"args.path.lexicallyWithin(".")"#, Some("any relative path")),
            (r#"args.a == "x && y""#, Some(r#"a "x && y""#)),
            ("args.a < 5", None),
            ("args.a == 1 || args.b == 2", None),
            ("args.cwd == \"/srv\"", None),
            ("!(args.a == 1)", None),
            ("args.a == args.b", None),
        ] {
            assert_eq!(condition_in_words(condition).as_deref(), words, "{condition}");
        }
    }
}
