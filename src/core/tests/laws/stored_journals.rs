//! Stored journals: from the first release on, a build reads the journals of every earlier one, with
//! the same outcome.
//!
//! `fixtures/journals.jsonl` has a journal per line, with the status and the transcript that it folds to. A
//! change that cannot read its lines is incompatible and belongs in the changelog; after the first release there is none.
//! Add a line for a new event or member with
//! `TOOLGATE_BLESS=1 cargo test -p toolgate-core --test laws stored_journals`, which keeps the lines that are there.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolgate_core::id::RunId;
use toolgate_core::run::{Event, Limits, Run, Trigger};

use crate::choices::Tape;
use crate::forks::copied;
use crate::world::{World, journey, wild_journey};

/// How many generated journals are searched for members that the fixture lacks.
const SEARCHED: u64 = 500;

/// Members whose value is a word of the format, unless it is a sentence.
const WORDS: &[&str] = &[
    "action",
    "answer",
    "code",
    "form",
    "kind",
    "limit",
    "match",
    "mode",
    "on_deny",
    "on_tool_error",
    "on_unknown_outcome",
    "reason",
    "role",
    "scope",
    "status",
    "stop",
    "tiers",
    "tool_access",
    "type",
    "verdict",
    "via",
];
/// Members whose content is not of the format: a tool's, a model's or a server's.
const FREE_FORM: &[&str] = &[
    "annotations",
    "arguments",
    "edited_arguments",
    "input_schema",
    "output_schema",
    "provider_state",
    "questions",
    "reactions",
    "schema",
    "structured",
];

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journals.jsonl")
}

fn stored() -> Vec<Value> {
    let text = std::fs::read_to_string(path()).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The members of the events of a journal, such as `approval.decided.decision.match`, and their values that are a word
/// of the format, such as `tool.checked.verdict.rejected.reason=denied`.
fn members(journal: &Value) -> BTreeSet<String> {
    let mut members = BTreeSet::new();
    for event in journal["events"].as_array().unwrap() {
        collect(event, event["type"].as_str().unwrap(), &mut members);
    }
    members
}

fn collect(value: &Value, path: &str, members: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let path = format!("{path}.{name}");
                match value {
                    Value::String(word) if WORDS.contains(&name.as_str()) && !word.contains(' ') => {
                        members.insert(format!("{path}={word}"))
                    }
                    _ => members.insert(path.clone()),
                };
                if !FREE_FORM.contains(&name.as_str()) && !path.ends_with(".content.input") {
                    collect(value, &path, members);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, path, members)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A journal as it is stored: alone, without the conversation before it.
fn line(events: &[Event]) -> Value {
    let mut events = events.to_vec();
    events[0] = events[0].with_conversation(None);
    let run = Run::replay(&events).unwrap().unwrap();
    json!({"status": run.status(), "transcript": run.transcript(), "events": events})
}

/// A tape that depends on the seed alone.
fn tape(seed: u64) -> Tape {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    Tape::new((0..400).map(|_| byte()).collect())
}

/// A fork and a retry of a generated journal.
fn copies() -> [Vec<Event>; 2] {
    let (source, limits) = (journey(tape(0)), Limits::default());
    let at = Run::fork_position(&source, true, &limits).unwrap() as usize;
    let (run, authors) = (|| RunId::from("run_source"), || BTreeSet::from(["ann".to_owned()]));
    let begin = |trigger: fn(RunId, u64, BTreeSet<String>) -> Trigger| {
        let copy = copied(|at| trigger(run(), at, authors()), &limits, &source, at, Some("again"));
        World::resume_run(&copy, Tape::blank()).into_ended()
    };
    [
        begin(|run, at, authors| Trigger::Fork { run, at, authors }),
        begin(|run, at, authors| Trigger::Retry { run, at, authors }),
    ]
}

/// The words that other ones replaced: a member, its word, and the present one.
const RENAMED: &[(&str, &str, &str)] = &[
    ("status", "turn_limit", "incomplete"),
    ("limit", "iterations", "max_iterations"),
    ("limit", "tokens", "max_tokens"),
    ("limit", "cost", "max_cost_usd"),
];

/// Writes the words and the amounts of an earlier build as this one does.
fn modernize(stored: &mut Value) {
    match stored {
        Value::Object(object) => {
            if let Some(rule) = object.remove("in_doubt") {
                object.insert("on_unknown_outcome".to_owned(), rule);
            }
            if object.contains_key("grant") && object.contains_key("tool") {
                for (old, new) in [("tool", "tool_name"), ("grant", "grant_id"), ("arguments", "arguments_hash")] {
                    if let Some(value) = object.remove(old) {
                        object.insert(new.to_owned(), value);
                    }
                }
            }
            for (name, value) in object {
                match value {
                    Value::Number(amount) if name.ends_with("cost_usd") => *value = json!(amount.to_string()),
                    Value::String(word) => {
                        let renamed = RENAMED.iter().find(|(member, old, _)| name == member && word == old);
                        *word = renamed.map_or(word.clone(), |(_, _, new)| (*new).to_owned());
                    }
                    _ => modernize(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(modernize),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_stored_journal_is_read_with_its_outcome() {
    let stored = stored();
    assert!(!stored.is_empty(), "no journal is stored");
    for (number, mut expected) in stored.into_iter().enumerate() {
        let events: Vec<Event> = serde_json::from_value(expected["events"].clone()).unwrap();
        modernize(&mut expected);
        assert_eq!(line(&events), expected, "line {}", number + 1);
    }
}

#[test]
fn the_stored_journals_have_every_member_of_every_event() {
    let mut lines = stored();
    let mut known: BTreeSet<String> = lines.iter().flat_map(members).collect();
    let mut missing = BTreeSet::new();
    for journal in (0..SEARCHED).map(|seed| wild_journey(tape(seed))).chain(copies()) {
        let journal = line(&journal);
        let new: Vec<String> = members(&journal).difference(&known).cloned().collect();
        if !new.is_empty() {
            known.extend(new.iter().cloned());
            missing.extend(new);
            lines.push(journal);
        }
    }
    if std::env::var_os("TOOLGATE_BLESS").is_some() && !missing.is_empty() {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::create_dir_all(path().parent().unwrap()).unwrap();
        std::fs::write(path(), text).unwrap();
        return;
    }
    assert!(missing.is_empty(), "no stored journal has {missing:?}");
}
