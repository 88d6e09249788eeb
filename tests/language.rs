//! Language of the sources and documents: words that hide the actor stay out of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::{Path, PathBuf};

/// Folders and files whose text people read.
const PLACES: [&str; 23] = [
    "src",
    "clients",
    "tests",
    "examples",
    "benches",
    "fuzz",
    "scripts",
    "deploy",
    "docs",
    "approvals",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "Cargo.toml",
    "otel-collector.yaml",
    "clippy.toml",
    ".ci",
    ".github",
    ".editorconfig",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "deny.toml",
    "rust-toolchain.toml",
];

/// Extensions of text files; files without one are scripts.
const TEXTS: [&str; 13] = ["rs", "md", "sql", "yaml", "yml", "json", "py", "ts", "toml", "sh", "snap", "service", "js"];

/// Paths that hold the words of others: recorded provider responses, installed packages, corpora, and foreign assets.
const EXEMPT: [&str; 6] = ["tests/fixtures/providers", "node_modules", ".venv", "fuzz/target", "fuzz/corpus", "assets"];

/// The pronouns that name no actor, in the spelling of a comparison.
fn banned() -> [String; 5] {
    ["who|ever", "no|body", "some|body", "any|body", "who|m"].map(|word| word.replace('|', ""))
}

#[test]
fn sentences_name_their_actor() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    PLACES.iter().for_each(|place| collect(&root.join(place), &mut files));
    assert!(files.len() > 500, "only {} files were found", files.len());
    let findings: Vec<String> =
        files.iter().flat_map(|file| findings(file.strip_prefix(root).unwrap(), file)).collect();
    assert!(findings.is_empty(), "{} sentences without an actor:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn the_check_finds_words_and_not_their_parts() {
    let [first, second, ..] = banned();
    assert!(has_banned_word(&format!("{first} calls")) && has_banned_word(&format!("a_test_that_{second}_reads")));
    assert!(!has_banned_word("whomping somebodies"));
}

fn findings(name: &Path, file: &Path) -> Vec<String> {
    let Ok(text) = fs::read_to_string(file) else { return Vec::new() };
    let lines = text.lines().enumerate().filter(|(_, line)| has_banned_word(line));
    lines.map(|(number, line)| format!("{}:{}: {}", name.display(), number + 1, line.trim())).collect()
}

fn has_banned_word(line: &str) -> bool {
    let line = line.to_lowercase();
    let banned = banned();
    line.split(|character: char| !character.is_alphabetic()).any(|word| banned.iter().any(|banned| banned == word))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if EXEMPT.iter().any(|exempt| path.ends_with(exempt)) {
        return;
    }
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), files);
        }
    } else if path.extension().is_none_or(|extension| TEXTS.iter().any(|text| extension == *text)) {
        files.push(path.to_owned());
    }
}
