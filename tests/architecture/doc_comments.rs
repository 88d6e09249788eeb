//! Doc comments: a public item has one, and that of a field or variant says more than its name.

use std::collections::BTreeSet;
use std::path::Path;

/// Derives whose comments become texts of an API, a schema or a command line.
const TEXT_DERIVES: [&str; 6] = ["ToSchema", "JsonSchema", "Args", "Parser", "Subcommand", "IntoParams"];

/// Words of a comment that say nothing by themselves.
const FILLERS: [&str; 10] = ["the", "a", "an", "of", "its", "this", "is", "in", "for", "to"];

/// Public functions and types without a doc comment.
pub(crate) fn undocumented_items(file: &Path, source: &str) -> Vec<String> {
    let lines: Vec<&str> = source.lines().collect();
    let is_item = |line: &str| {
        let Some(rest) = line.trim_start().strip_prefix("pub ") else { return false };
        let rest = rest.trim_start_matches("const ").trim_start_matches("async ");
        ["fn ", "struct ", "enum ", "trait ", "type "].iter().any(|kind| rest.starts_with(kind))
    };
    let undocumented = |at: &usize| {
        let above = lines[..*at].iter().rev().take_while(|line| !line.trim().is_empty());
        !above.take(20).any(|line| line.trim_start().starts_with("///") || line.contains("doc"))
    };
    let found = (0..lines.len()).filter(|at| is_item(lines[*at])).filter(undocumented);
    found.map(|at| format!("{}:{}: {}", file.display(), at + 1, lines[at].trim())).collect()
}

/// Doc comments of one line that only repeat the name of their field or variant.
pub(crate) fn repeated_names(file: &Path, source: &str) -> Vec<String> {
    let lines: Vec<&str> = source.lines().collect();
    let is_doc = |at: usize| lines.get(at).is_some_and(|line| line.trim_start().starts_with("///"));
    let mut findings = Vec::new();
    for at in (0..lines.len()).filter(|at| is_doc(*at) && !is_doc(at + 1) && (*at == 0 || !is_doc(at - 1))) {
        let Some(name) = lines.get(at + 1).and_then(|line| member(line)) else { continue };
        let name: BTreeSet<String> = words(name).collect();
        let repeats =
            words(lines[at]).filter(|word| !FILLERS.contains(&word.as_str())).all(|word| name.contains(&word));
        if repeats && !is_text(&lines, at) {
            findings.push(format!("{}:{}: {}", file.display(), at + 1, lines[at].trim()));
        }
    }
    findings
}

/// The name of a field or a variant.
fn member(line: &str) -> Option<&str> {
    let line =
        line.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ").trim_start_matches("pub ");
    let end = line.find(|character: char| !character.is_alphanumeric() && character != '_')?;
    let (name, rest) = line.split_at(end);
    let is_field = rest.starts_with(": ") && line.ends_with(',');
    let is_variant =
        name.starts_with(char::is_uppercase) && (rest == "," || rest.starts_with(" {") || rest.starts_with('('));
    (!name.is_empty() && (is_field || is_variant)).then_some(name)
}

/// Whether the comments of the type around this line are texts for users.
fn is_text(lines: &[&str], at: usize) -> bool {
    let above = lines[..at].iter().rev().take_while(|line| !line.starts_with('}'));
    let mut derives = above.filter(|line| line.starts_with("#[derive("));
    derives.next().is_some_and(|line| TEXT_DERIVES.iter().any(|derive| line.contains(derive)))
}

/// The words of a comment or a name, in lower case and without the `s` of a plural.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut separated = String::new();
    for character in text.chars() {
        if character.is_uppercase() {
            separated.push(' ');
        }
        separated.extend(character.to_lowercase());
    }
    let words = separated.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word.strip_suffix('s').unwrap_or(word).to_owned()).collect::<Vec<_>>().into_iter()
}

#[test]
fn the_check_finds_a_repeated_name_and_an_undocumented_function() {
    let file = Path::new("src/x.rs");
    let source = "pub struct Run {\n    /// The run.\n    run: Run,\n    /// The run, in seconds.\n    other: Run,\n}\n\npub fn x() {}\n";
    assert_eq!(repeated_names(file, source), ["src/x.rs:2: /// The run."]);
    assert_eq!(undocumented_items(file, source), ["src/x.rs:1: pub struct Run {", "src/x.rs:8: pub fn x() {}"]);
    let schema = format!("#[derive(Debug, ToSchema)]\n{source}");
    assert!(repeated_names(file, &schema).is_empty());
}
