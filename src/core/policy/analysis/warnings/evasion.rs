//! Evasion lint: tests of a part of a command, path or URL. `git diff HEAD; rm -rf /` begins with `git diff`, and
//! `/srv/../etc/passwd` with `/srv`; a call evades a denial of such a part with another spelling.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::warning::{Part, Warning};
use crate::policy::{Rule, TextFunction, TextTest, Verdict};
use crate::tool::escape_untrusted;

/// The kind of an argument's content, guessed from its name or its values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Command,
    Path,
    Address,
    Host,
}

const COMMANDS: [&str; 8] = ["command", "commands", "cmd", "cmdline", "script", "shell", "exec", "argv"];
const PATHS: [&str; 14] = [
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filepath",
    "dir",
    "directory",
    "folder",
    "root",
    "cwd",
    "workdir",
    "pathname",
    "directories",
];
const ADDRESSES: [&str; 9] = ["url", "urls", "uri", "uris", "href", "link", "links", "endpoint", "origin"];
const HOSTS: [&str; 5] = ["host", "hosts", "hostname", "domain", "domains"];

/// The warnings about a rule's condition, one for each argument.
pub(super) fn of_rule(rule: &Rule) -> Vec<Warning> {
    let Some(when) = rule.when() else { return Vec::new() };
    let mut seen = BTreeSet::new();
    let tests = when.text_tests().iter().filter_map(|test| {
        let kind = kind(test, rule).filter(|kind| is_evaded(test, *kind))?;
        seen.insert(test.argument.clone()).then(|| warning(test, kind, rule.verdict))
    });
    tests.collect()
}

fn kind(test: &TextTest, rule: &Rule) -> Option<Kind> {
    let name = test.argument.rsplit('.').next().unwrap_or_default();
    by_name(name).or_else(|| by_text(&test.text)).or_else(|| {
        let examples = rule.examples().0.iter().filter_map(|example| example.arguments.as_ref());
        let values = examples.flat_map(|arguments| texts(arguments, &test.argument));
        values.into_iter().find_map(by_text)
    })
}

fn by_name(name: &str) -> Option<Kind> {
    let words = words(name);
    let has = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    let kinds =
        [(Kind::Command, &COMMANDS[..]), (Kind::Path, &PATHS), (Kind::Address, &ADDRESSES), (Kind::Host, &HOSTS)];
    kinds.into_iter().find(|(_, names)| has(names)).map(|(kind, _)| kind)
}

/// The words of a name: `filePath`, `file_path`, `file-path`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = None;
    for letter in name.chars() {
        let begins = letter.is_uppercase() && before.is_some_and(char::is_lowercase);
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        before = Some(letter);
    }
    words
}

fn by_text(text: &str) -> Option<Kind> {
    let text = text.trim_start_matches('^');
    if text.contains("://") {
        return Some(Kind::Address);
    }
    let is_path = text == ".." || ["/", "~/", "./", "../"].iter().any(|begin| text.starts_with(begin));
    is_path.then_some(Kind::Path)
}

/// The texts in an example's arguments at a path such as `args.options.path`.
fn texts<'a>(arguments: &'a Map<String, Value>, argument: &str) -> Vec<&'a str> {
    let mut fields = argument.split('.').skip(1);
    let first = fields.next().and_then(|field| arguments.get(field));
    let found = fields.try_fold(first, |value, field| value.map(|value| value.get(field)));
    match found.flatten() {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}

/// Whether an unintended text passes the test, or an intended one evades it.
fn is_evaded(test: &TextTest, kind: Kind) -> bool {
    let text = test.text.as_str();
    match (test.function, kind) {
        (TextFunction::Matches, _) => is_open(text, kind),
        // A `/` after the host means that the test compares the whole host.
        (TextFunction::StartsWith, Kind::Address) => text
            .split_once("://")
            .is_none_or(|(_, rest)| !rest.contains('/') || rest.contains('@') || rest.starts_with('/')),
        (TextFunction::EndsWith, Kind::Host) => !text.starts_with('.'),
        // It tells an absolute path from a relative one.
        (TextFunction::StartsWith, Kind::Path) => text != "/",
        // The test is about the file extension, not the location.
        (TextFunction::EndsWith, Kind::Path) => text.contains('/'),
        (TextFunction::StartsWith | TextFunction::EndsWith | TextFunction::Contains, _) => true,
    }
}

/// Whether a regular expression is not anchored at both ends, or matches nearly any text between them.
fn is_open(pattern: &str, kind: Kind) -> bool {
    let begins = pattern.starts_with('^') || pattern.starts_with(r"\A");
    let ends = pattern.ends_with('$') || pattern.ends_with(r"\z");
    let any = [".*", ".+", "[^", r"\S", r"\D", r"\W"].into_iter().any(|open| pattern.contains(open));
    let has_branches = pattern.contains('|') && !pattern.contains('(');
    match kind {
        Kind::Address => {
            !begins || has_branches || pattern.split_once("://").is_none_or(|(_, host)| !host.contains('/'))
        }
        Kind::Command | Kind::Path | Kind::Host => !begins || !ends || any || has_branches,
    }
}

fn warning(test: &TextTest, kind: Kind, verdict: Verdict) -> Warning {
    let argument = escape_untrusted(&test.argument);
    let shown = match test.text.is_empty() {
        true => format!("`{argument}.{}(…)`", test.function.as_str()),
        false => format!("`{argument}.{}('{}')`", test.function.as_str(), escape_untrusted(&test.text)),
    };
    let (why, remedy) = match kind {
        Kind::Command => (of_command(test, verdict), command_remedy(test)),
        Kind::Path => (of_path(test, verdict), path_remedy(test)),
        Kind::Address | Kind::Host => (
            match verdict {
                Verdict::Allow => {
                    "another host passes it, such as `https://example.com.evil.org` or `https://example.com@evil.org`"
                }
                Verdict::Ask | Verdict::Deny => "another spelling of the address (case, user, port, number) evades it",
            }
            .to_owned(),
            "compare the whole value (`==`, `in […]`), or a pattern from `^` to the `/` after the host".to_owned(),
        ),
    };
    Warning::new(Part::When, format!("{shown} tests a part of {}: {why}", noun(kind)), remedy)
}

fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Command => "a command",
        Kind::Path => "a path",
        Kind::Address => "an address",
        Kind::Host => "a host",
    }
}

/// The literal prefix of the text that a test compares with.
fn literal(test: &TextTest) -> &str {
    let text = test.text.trim_start_matches('^');
    let is_pattern = test.function == TextFunction::Matches;
    let end = text.find(|sign: char| is_pattern && !sign.is_alphanumeric() && !matches!(sign, ' ' | '/' | '-' | '_'));
    end.and_then(|end| text.get(..end)).unwrap_or(text).trim()
}

fn of_command(test: &TextTest, verdict: Verdict) -> String {
    let text = Some(literal(test)).filter(|text| !text.is_empty()).unwrap_or("git diff");
    match verdict {
        Verdict::Allow => format!("`{}; rm -rf /` passes it, too", escape_untrusted(text)),
        Verdict::Ask | Verdict::Deny => {
            "a shell runs the same command written in another way, such as `r\\m` for `rm`".to_owned()
        }
    }
}

fn command_remedy(test: &TextTest) -> String {
    let words: Vec<&str> = literal(test).split_whitespace().collect();
    let words = if words.is_empty() { "git, [diff, log]".to_owned() } else { words.join(", ") };
    let name = test.argument.strip_prefix("args.").unwrap_or("command");
    match name {
        "command" | "cmd" | "command_line" => format!("write `command: [{}]` in `match`", escape_untrusted(&words)),
        other => {
            format!(
                "write `command: {{ argument: {}, words: [{}] }}` in `match`",
                escape_untrusted(other),
                escape_untrusted(&words)
            )
        }
    }
}

fn of_path(test: &TextTest, verdict: Verdict) -> String {
    let root = root(test);
    match (verdict, test.function) {
        (Verdict::Allow, TextFunction::StartsWith) => {
            format!("`{root}/../etc/passwd` passes it, and so does what a link leads to")
        }
        (Verdict::Allow, TextFunction::EndsWith | TextFunction::Contains | TextFunction::Matches) => {
            "a path is more than its letters: `..` and links lead elsewhere".to_owned()
        }
        (Verdict::Ask | Verdict::Deny, _) => format!("`/tmp/..{root}` leads to the same place and evades it"),
    }
}

fn path_remedy(test: &TextTest) -> String {
    format!("write `{}.within('{}')`", escape_untrusted(&test.argument), root(test))
}

/// The intended folder.
fn root(test: &TextTest) -> String {
    let text = literal(test).trim_end_matches('/');
    if text.starts_with('/') { escape_untrusted(text) } else { "/srv".to_owned() }
}
