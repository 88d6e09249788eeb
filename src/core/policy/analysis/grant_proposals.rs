//! Grant proposals: conditions for a grant, made from the call that a person is asked about. Pure.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::command_proposal::{command_proposals, same_command};
use super::grant_proposal::{Breadth, GrantProposal};
use crate::policy::{Condition, command};

/// The most proposals for one call.
const MOST: usize = 6;
/// The longest text that is compared, in characters.
const LONGEST: usize = 100;
/// Parts of the names of arguments whose number is an amount, so that a smaller one is less.
const AMOUNTS: [&str; 8] = ["amount", "price", "total", "cost", "count", "limit", "max", "quantity"];

/// The names that tools give to the folder in which a command runs.
pub(super) const FOLDERS: [&str; 6] =
    ["cwd", "workdir", "working_dir", "working_directory", "workingDirectory", "directory"];
/// The names that tools give to the path of a file.
const PATHS: [&str; 6] = ["path", "file_path", "filePath", "filepath", "file", "notebook_path"];
/// Arguments of a command that change nothing about what it does, and that calls have or not.
pub const HARMLESS: [&str; 3] = ["description", "timeout", "timeout_ms"];

/// The proposals for a call with these arguments, the narrowest first. For a call with a command, only conditions about the
/// command, in the folder of the call and in any: with the same `timeout` alone, any command would run.
pub fn grant_proposals(arguments: &Map<String, Value>) -> Vec<GrantProposal> {
    let has_command = command_argument(arguments).is_some();
    let of_values = arguments.iter().filter(|_| !has_command).flat_map(|(name, value)| of_argument(name, value));
    let of_commands = command_proposals(arguments).into_iter().flat_map(|of_command| {
        let in_folder = in_same_folder(&of_command, arguments);
        let breadth = if in_folder.is_some() { Breadth::ManyValues } else { of_command.breadth };
        in_folder.into_iter().chain([GrantProposal { breadth, ..of_command }])
    });
    let proposals = of_commands.chain(of_values);
    let mut proposals: Vec<GrantProposal> =
        proposals.filter(|proposal| Condition::for_grant(&proposal.condition).is_ok()).collect();
    proposals.sort_by_key(|proposal| proposal.breadth);
    proposals.truncate(MOST);
    proposals
}

/// The proposal that a person most likely means by calls like this one: the first words of its command if they say what it
/// does, otherwise the same command, in the same folder, with no argument that this call does not have. There is none for a
/// file (decision 0015).
pub fn likely_proposal(arguments: &Map<String, Value>) -> Option<GrantProposal> {
    command_argument(arguments)?;
    let has_folder = folder_arguments(arguments).next().is_some();
    let of_first_words = command_proposals(arguments).into_iter().find(GrantProposal::covers_similar_values);
    let GrantProposal { words, mut condition, breadth } = match of_first_words {
        Some(likely) if has_folder => in_same_folder(&likely, arguments)?,
        Some(likely) => likely,
        None => with_same_arguments(same_command(arguments)?, arguments)?,
    };
    let names: BTreeSet<&str> = arguments.keys().map(String::as_str).chain(HARMLESS).collect();
    let names: Vec<String> = names.into_iter().map(literal).collect();
    condition.push_str(&format!(" && args.all(name, name in [{}])", names.join(", ")));
    Condition::for_grant(&condition).ok()?;
    Some(GrantProposal { words, condition, breadth })
}

/// A path in this folder, in words. `.` is the folder of the server, which compares relative paths without `..`.
pub(super) fn place_in_words(argument: &str, folder: &str) -> String {
    if folder == "." { format!("any relative {argument}") } else { format!("{argument} under {folder}") }
}

fn folder_arguments(arguments: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    arguments.iter().filter(|(name, _)| FOLDERS.contains(&name.as_str()))
}

/// The same proposal for commands in the folder of the call. `None` if the call names no folder, or one that cannot be
/// compared.
fn in_same_folder(of_command: &GrantProposal, arguments: &Map<String, Value>) -> Option<GrantProposal> {
    folder_arguments(arguments).next()?;
    let mut narrower = of_command.clone();
    for (name, value) in folder_arguments(arguments) {
        let folder = value.as_str().filter(|text| is_comparable(text))?;
        narrower.words.push_str(&format!(" in {folder}"));
        narrower.condition.push_str(&format!(" && args.{name} == {}", literal(folder)));
    }
    Some(narrower)
}

/// The proposal for the same command, with the same further arguments. `None` if one of them cannot be compared.
fn with_same_arguments(of_command: GrantProposal, arguments: &Map<String, Value>) -> Option<GrantProposal> {
    let mut narrower = of_command;
    for (name, value) in arguments {
        if command::is_part_of_command(name) || HARMLESS.contains(&name.as_str()) {
            continue;
        }
        let value = match value {
            Value::String(text) if is_comparable(text) => literal(text),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::String(_) | Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        narrower.words.push_str(&format!(", the same {name}"));
        narrower.condition.push_str(&format!(" && args.{name} == {value}"));
    }
    Some(narrower)
}

fn of_argument(name: &str, value: &Value) -> Vec<GrantProposal> {
    let proposal = |words: String, condition: String, breadth| GrantProposal { words, condition, breadth };
    match value {
        Value::String(text) if is_command(name) || !is_comparable(text) => Vec::new(),
        Value::String(text) => {
            let same =
                proposal(format!("the same {name}"), format!("args.{name} == {}", literal(text)), Breadth::SameValue);
            let within =
                folders(name, text).zip([Breadth::SomeValues, Breadth::ManyValues]).map(|(folder, breadth)| {
                    let condition = format!("args.{name}.lexicallyWithin({})", literal(folder));
                    proposal(format!("{}, links unchecked", place_in_words(name, folder)), condition, breadth)
                });
            [same].into_iter().chain(within).collect()
        }
        Value::Number(number) => {
            let lower = name.to_lowercase();
            let is_amount = AMOUNTS.iter().any(|part| lower.contains(part)) && number.as_f64().is_some_and(|n| n > 0.0);
            let at_most = is_amount.then(|| {
                let condition = format!("args.{name} <= {number}");
                proposal(format!("{name} at most {number}"), condition, Breadth::ManyValues)
            });
            let same = proposal(format!("the same {name}"), format!("args.{name} == {number}"), Breadth::SameValue);
            [same].into_iter().chain(at_most).collect()
        }
        Value::Bool(is_set) => {
            vec![proposal(format!("{name} {is_set}"), format!("args.{name} == {is_set}"), Breadth::HalfOfAll)]
        }
        Value::Null | Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}

/// The argument of a call that says what runs: a shell command, a script, a query. With any value for it, a tool does
/// whatever the model writes.
pub fn command_argument(arguments: &Map<String, Value>) -> Option<&str> {
    arguments.keys().map(String::as_str).find(|name| is_command(name))
}

fn is_command(name: &str) -> bool {
    // A `description` is no `script`.
    let name = name.to_lowercase().replace("description", "");
    ["command", "cmd", "script", "code", "query", "sql"].iter().any(|part| name.contains(part))
}

fn is_comparable(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= LONGEST && !text.chars().any(char::is_control)
}

/// A text as a literal of the language. JSON has the same escapes.
fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

/// The folder of a path, and the folder above it: never the root, and `.` for that of a relative path. A name without a dot
/// may be a folder itself.
fn folders<'p>(argument: &str, path: &'p str) -> impl Iterator<Item = &'p str> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_relative = !path.starts_with('/');
    // A text without a separator may be anything, unless its name says that it is a path.
    let is_path =
        (path.contains('/') || PATHS.contains(&argument)) && !path.split('/').any(|part| matches!(part, "." | ".."));
    let path = path.trim_end_matches('/');
    let outer = |path| folder_of(path).or(is_relative.then_some("."));
    let own = Some(path)
        .filter(|path| path.contains('/') && is_path && outer(path).is_some() && !file_name(path).contains('.'));
    let above = own.or_else(|| outer(path).filter(|_| is_path));
    [above, above.filter(|folder| *folder != ".").and_then(outer)].into_iter().flatten()
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn folder_of(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(folder, _)| folder).filter(|folder| !folder.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Example, Subject};
    use serde_json::json;

    fn conditions(arguments: Value) -> Vec<String> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        grant_proposals(&arguments)
            .into_iter()
            .map(|proposal| format!("{}: {}", proposal.words, proposal.condition))
            .collect()
    }

    #[test]
    fn values_folders_and_amounts_are_proposed_the_narrowest_first() {
        assert_eq!(
            conditions(json!({"path": "/srv/app/src/main.rs", "content": "fn main() {}\n"})),
            [
                "the same path: args.path == \"/srv/app/src/main.rs\"",
                "path under /srv/app/src, links unchecked: args.path.lexicallyWithin(\"/srv/app/src\")",
                "path under /srv/app, links unchecked: args.path.lexicallyWithin(\"/srv/app\")",
            ]
        );
        assert_eq!(
            conditions(json!({"path": "/srv/app"})),
            [
                "the same path: args.path == \"/srv/app\"",
                "path under /srv/app, links unchecked: args.path.lexicallyWithin(\"/srv/app\")",
                "path under /srv, links unchecked: args.path.lexicallyWithin(\"/srv\")",
            ]
        );
        let relative = "any relative path, links unchecked: args.path.lexicallyWithin(\".\")";
        assert_eq!(
            conditions(json!({"path": "src/a.py"})),
            [
                "the same path: args.path == \"src/a.py\"",
                "path under src, links unchecked: args.path.lexicallyWithin(\"src\")",
                relative,
            ]
        );
        assert_eq!(conditions(json!({"path": "./src/a.py"}))[1..].len(), 2);
        assert_eq!(conditions(json!({"path": "a.py"})), ["the same path: args.path == \"a.py\"", relative]);
        assert_eq!(conditions(json!({"path": "Makefile"})), ["the same path: args.path == \"Makefile\"", relative]);
        assert_eq!(conditions(json!({"name": "a.py"})).len(), 1);
        assert_eq!(
            conditions(json!({"command": "git diff", "path": "/srv/x", "timeout": 10})),
            [
                "the same command: args.commandEquals([\"git\",\"diff\"])",
                "a command `git diff …`: args.commandPartsStartWith([\"git\",\"diff\"])",
            ]
        );
        assert_eq!(
            conditions(json!({"command": "git diff", "cwd": "/srv"})),
            [
                "the same command in /srv: args.commandEquals([\"git\",\"diff\"]) && args.cwd == \"/srv\"",
                "a command `git diff …` in /srv: args.commandPartsStartWith([\"git\",\"diff\"]) && args.cwd == \"/srv\"",
                "the same command: args.commandEquals([\"git\",\"diff\"])",
                "a command `git diff …`: args.commandPartsStartWith([\"git\",\"diff\"])",
            ]
        );
        assert_eq!(
            conditions(json!({"amount": 100, "dry_run": true, "order": 7, "description": ""})),
            [
                "the same amount: args.amount == 100",
                "the same order: args.order == 7",
                "amount at most 100: args.amount <= 100",
                "dry_run true: args.dry_run == true",
            ]
        );
    }

    #[test]
    fn what_says_little_or_cannot_be_written_is_not_proposed() {
        for arguments in [
            json!({"command": "git diff | sh"}),
            json!({"text": "x".repeat(101)}),
            json!({"a-b": "x"}),
            json!({"in": "x"}),
            json!({"list": [1], "nothing": null}),
        ] {
            assert_eq!(conditions(arguments.clone()), Vec::<String>::new(), "{arguments}");
        }
        assert_eq!(conditions(json!({"path": "/x"})), ["the same path: args.path == \"/x\""]);
        assert_eq!(conditions(json!({"text": "late"})), ["the same text: args.text == \"late\""]);
        assert_eq!(conditions(json!({"path": "/a/../b/c"})), ["the same path: args.path == \"/a/../b/c\""]);
        assert_eq!(conditions(json!({"name": "a\"b\\c"})), ["the same name: args.name == \"a\\\"b\\\\c\""]);
    }

    #[test]
    fn a_likely_grant_covers_no_argument_that_the_call_does_not_have() {
        let call = json!({"command": "cargo test", "cwd": "/srv"});
        let condition = Condition::for_grant(&likely_proposal(call.as_object().unwrap()).unwrap().condition).unwrap();
        let tool = Example { server: Some("work".into()), tool: "run".into(), ..Example::default() }.tool();
        for (covered, call) in [
            (true, json!({"command": "cargo test -q", "cwd": "/srv", "timeout": 9})),
            (false, json!({"command": "cargo test", "cwd": "/tmp"})),
            (false, json!({"command": "cargo test"})),
            (false, json!({"command": "cargo test", "cwd": "/srv", "host": "x"})),
        ] {
            let subject = Subject { tool: &tool, agent: None, principal: None, arguments: call.as_object() };
            assert_eq!(condition.holds_for(&subject), covered, "{call}");
        }
    }
}
