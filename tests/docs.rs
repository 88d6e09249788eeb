//! Documentation tests: pages that state facts about the program are compared with the program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toolgate::core::error::ErrorCode;
use toolgate::models::scripted::Script;
use toolgate::ports::WebhookKind;
use toolgate::service::ErrorReason;
use toolgate::telemetry::spans::USUAL_NAMES;

#[test]
fn every_error_code_has_a_page_with_its_facts() {
    for code in ErrorCode::ALL {
        let page = read(&format!("docs/errors/{code}.md"));
        let retryable = if code.is_retryable() { "retryable" } else { "not retryable" };
        let facts = format!("HTTP {} · exit code {} · {retryable}", code.http_status(), code.exit_code());
        let head: Vec<&str> = page.lines().take(3).collect();
        assert_eq!(head, [format!("# `{code}`").as_str(), "", facts.as_str()], "the head of docs/errors/{code}.md");
        for section in ["\n## Usual causes\n- ", "\n## What to do\n- "] {
            assert!(page.contains(section), "docs/errors/{code}.md lacks {section:?}");
        }
    }
}

#[test]
fn every_attribute_of_toolgate_is_on_the_page_about_tracing() {
    let (names, page) = (read("src/telemetry/spans/names.rs"), read("docs/tracing.md"));
    let own = names.split('"').filter(|text| text.starts_with("toolgate."));
    let missing: Vec<&str> = own.filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in docs/tracing.md: {missing:?}");
}

#[test]
fn the_usual_names_of_secrets_are_on_the_page_about_configuration() {
    let page = read("docs/configuration.md");
    let row = page.lines().find(|line| line.starts_with("| `telemetry.redact.usual`")).unwrap();
    let named = row.split('`').skip(3).step_by(2).take(USUAL_NAMES.len());
    assert_eq!(named.collect::<Vec<_>>(), USUAL_NAMES);
}

#[test]
fn every_error_reason_has_a_page_with_its_codes() {
    let index = read("docs/errors.md");
    for reason in ErrorReason::ALL.iter().map(|reason| reason.as_str()) {
        let page = read(&format!("docs/errors/{reason}.md"));
        let lines: Vec<&str> = page.lines().take(5).collect();
        let [title, "", codes, "", meaning] = lines[..] else {
            panic!("the head of docs/errors/{reason}.md: {lines:?}")
        };
        assert_eq!(title, format!("# `{reason}`"));
        let codes: Vec<&str> = codes.strip_prefix("Reason of ").unwrap().split(", ").collect();
        for code in &codes {
            let known = |known: &ErrorCode| *code == format!("[`{known}`]({known}.md)");
            assert!(ErrorCode::ALL.iter().any(known), "docs/errors/{reason}.md names {code}");
        }
        let codes: Vec<&str> = codes.iter().map(|code| code.split(['[', ']']).nth(1).unwrap()).collect();
        let row = format!("| [`{reason}`](errors/{reason}.md) | {} | {meaning} |", codes.join(", "));
        assert!(index.contains(&row), "docs/errors.md lacks {row}");
        for section in ["\n## Usual causes\n- ", "\n## What to do\n- "] {
            assert!(page.contains(section), "docs/errors/{reason}.md lacks {section:?}");
        }
    }
}

#[test]
fn every_error_page_belongs_to_a_code_or_a_reason() {
    let codes = ErrorCode::ALL.iter().map(|code| code.as_str());
    let codes: BTreeSet<String> =
        codes.chain(ErrorReason::ALL.iter().map(|reason| reason.as_str())).map(|name| format!("{name}.md")).collect();
    let pages: BTreeSet<String> = fs::read_dir(root().join("docs/errors"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(pages, codes);
}

#[test]
fn the_table_of_error_codes_agrees_with_the_code() {
    let index = read("docs/errors.md");
    let rows: Vec<Vec<&str>> = index
        .lines()
        .take_while(|line| *line != "## Reasons")
        .filter(|line| line.starts_with("| ["))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let facts: Vec<[String; 4]> = rows.iter().map(|row| [0, 1, 2, 3].map(|column| row[column].to_owned())).collect();
    let expected: Vec<[String; 4]> = ErrorCode::ALL
        .iter()
        .map(|code| {
            let retryable = if code.is_retryable() { "yes" } else { "no" };
            [
                format!("[`{code}`](errors/{code}.md)"),
                code.http_status().to_string(),
                code.exit_code().to_string(),
                retryable.to_owned(),
            ]
        })
        .collect();
    assert_eq!(facts, expected);
    for (row, code) in rows.iter().zip(ErrorCode::ALL) {
        let summary = read(&format!("docs/errors/{code}.md")).lines().nth(4).unwrap().to_owned();
        assert_eq!(row[4], summary, "the table and the page of {code} have the same summary");
    }
}

#[test]
fn the_table_of_error_reasons_is_complete() {
    let index = read("docs/errors.md");
    let rows = index.lines().skip_while(|line| *line != "## Reasons").filter_map(|line| line.strip_prefix("| [`"));
    let listed: Vec<&str> = rows.filter_map(|row| row.split_once('`')).map(|(reason, _)| reason).collect();
    assert_eq!(listed, ErrorReason::ALL.iter().map(|reason| reason.as_str()).collect::<Vec<_>>());
}

#[test]
fn the_list_of_events_is_complete() {
    let source = read("src/core/lifecycle/kind.rs");
    let names = source.lines().filter_map(|line| line.trim().strip_suffix("\",")?.split_once("=> \""));
    let named: BTreeSet<&str> = names.map(|(_, name)| name).collect();
    assert!(named.contains("llm.text.delta"), "{named:?}");
    let page = read("docs/events.md");
    let cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
    let words = cells.flat_map(|(cell, _)| cell.split(", ").map(|word| word.trim_matches('`')));
    let listed: BTreeSet<&str> = words.filter(|word| word.contains('.')).collect();
    assert_eq!(listed, named);
    let webhooks: BTreeSet<&str> = WebhookKind::OF_RUNS.iter().map(|kind| kind.as_str()).collect();
    assert!(webhooks.is_subset(&named), "a webhook has the type of the event that it reports: {webhooks:?}");
}

#[test]
fn scripted_turns_are_documented_with_a_working_example() {
    let page = read("docs/scripted-models.md");
    let source = read("src/models/scripted/script.rs");
    let (turn, _) = source.split_once("pub struct ScriptedTurn {").unwrap().1.split_once("\n}").unwrap();
    let keys: BTreeSet<&str> =
        turn.lines().filter_map(|line| Some(line.trim().strip_prefix("pub ")?.split_once(':')?.0)).collect();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let explained: BTreeSet<&str> = rows.map(|(key, _)| key).collect();
    assert_eq!(explained, keys);
    let (_, example) = page.split_once("```yaml\n").unwrap();
    let script: Script = serde_saphyr::from_str(example.split_once("```").unwrap().0).unwrap();
    assert_eq!(script.turns.len(), 2);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    let file: PathBuf = root().join(path);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"))
}
