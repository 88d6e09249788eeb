//! YAML parsing (JSON is YAML) into types, with errors that name a remedy.

use std::io::ErrorKind;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::{Error, MessageFormatter as _, UserMessageFormatter};

use super::error::{Fault, Source};
use super::jsonc::without_comments;
use super::reject_null::{IS_EMPTY, RejectNull};
use super::spanned::Location;
use super::suggest;

/// The names of expected types in errors.
const TRUTH: &str = "`true` or `false`";
const COUNT: &str = "a whole number, 0 or more";
const WHOLE: &str = "a whole number";
const NUMBER: &str = "a number";

/// The largest file that is read.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Reads a file as text.
pub(super) fn read(path: &Path) -> Result<Source, Fault> {
    let name = path.display().to_string();
    let failed = |reason: String| Fault::new(format!("`{name}` cannot be read: {reason}"));
    let unreadable = |error: std::io::Error| match error.kind() == ErrorKind::NotFound {
        true => Fault::new(format!("there is no file `{name}`")).with_remedy("check the path"),
        false => failed(error.kind().to_string()).with_remedy("check the path and the permissions of the file"),
    };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(failed("it is a folder".to_owned()).with_remedy("name a file in it"));
    }
    if metadata.len() > MAX_BYTES {
        return Err(failed(format!("it is larger than {} MiB", MAX_BYTES / 1024 / 1024)));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8 text".into()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(Source::new(name, text))
}

/// Parses the whole source. A key without a value is an error.
pub(super) fn parse<T: DeserializeOwned>(source: &Source) -> Result<T, Fault> {
    let is_blank = |line: &str| matches!(line.trim(), "" | "---" | "...") || line.trim_start().starts_with('#');
    if source.text().lines().all(is_blank) {
        return Err(Fault::new("the file is empty").with_remedy("write something into it").at(source, None));
    }
    parse_part(source, source.text())
}

/// Parses the whole source, whose sections may be empty.
pub(super) fn parse_sections<T: DeserializeOwned>(source: &Source) -> Result<T, Fault> {
    read_as(source, source.text(), |yaml| T::deserialize(RejectNull::sections(yaml)))
}

/// Reads a file that was written for another program, which may accept comments in JSON.
pub(super) fn read_foreign(path: &Path) -> Result<Source, Fault> {
    let source = read(path)?;
    Ok(Source::new(source.name(), without_comments(source.text())))
}

/// Parses the whole source of a file that was written for another program: there `null` may be valid.
pub(super) fn parse_foreign<T: DeserializeOwned>(source: &Source) -> Result<T, Fault> {
    read_as(source, source.text(), |yaml| T::deserialize(yaml))
}

/// Parses a part of the source whose lines have the same numbers as in the whole.
pub(super) fn parse_part<T: DeserializeOwned>(source: &Source, text: &str) -> Result<T, Fault> {
    read_as(source, text, |yaml| T::deserialize(RejectNull::new(yaml)))
}

fn read_as<T>(
    source: &Source,
    text: &str,
    read: impl for<'de, 'e> FnOnce(serde_saphyr::Deserializer<'de, 'e>) -> Result<T, Error>,
) -> Result<T, Fault> {
    // YAML 1.2: `no` and `y` are text, even where a schema lists them; `007` is not a number.
    let options = serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, read).map_err(|error| fault(&error, source))
}

fn fault(error: &Error, source: &Source) -> Fault {
    let place = error.location().and_then(Location::from_location);
    let fault = match misplaced_server(error.without_snippet(), source) {
        Some(fault) => fault,
        None => explained(error.without_snippet()),
    };
    if let Some(place) = place.filter(|_| fault.message().contains("mapping values are not allowed")) {
        let remedy =
            remedy_for_colon(source.text().lines().nth(place.line.saturating_sub(1)).unwrap_or_default(), place.column);
        return fault.with_remedy(remedy).at(source, Some(place));
    }
    if let Error::Unexpected { expected: "mapping start", .. } = error.without_snippet()
        && let Some((place, remedy)) = place.and_then(|place| kind_without_settings(source, place))
    {
        return Fault::new("a kind without its settings").with_remedy(remedy).at(source, Some(place));
    }
    let lines = place.map(|place| source.text().lines().skip(place.line.saturating_sub(2)).take(2));
    if !fault.has_remedy() && lines.into_iter().flatten().any(has_bare_variable) {
        return fault.with_remedy("write variables in quotes: `\"${NAME}\"`").at(source, place);
    }
    fault.at(source, place)
}

/// What to write where a colon in this column begins no value: it is in text, or after a key in a wrong place.
fn remedy_for_colon(line: &str, column: usize) -> &'static str {
    let before: String = line.chars().take(column.saturating_sub(1)).collect();
    match before.contains(": ") {
        true => "put text that has a colon in quotes, for example `instructions: \"Answer: shortly\"`",
        false => "indent this key like the keys beside it; put text that has a colon in quotes",
    }
}

/// A lone word where a kind has to be chosen (`store: memory`), with what to write: the parser reports the place after it.
fn kind_without_settings(source: &Source, after: Location) -> Option<(Location, String)> {
    let mut lines = source.text().lines();
    let above: Vec<&str> = lines.by_ref().take(after.line.saturating_sub(1)).collect();
    let is_next =
        lines.next().unwrap_or_default().chars().take(after.column.saturating_sub(1)).all(char::is_whitespace);
    let number = above.iter().rposition(|line| !line.trim().is_empty()).filter(|_| is_next)?;
    let line = above.get(number)?;
    let (before, word) = line.rsplit_once(": ")?;
    let key = before.trim_start_matches([' ', '-']);
    let is_word =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let word = word.trim_end();
    let column = line.chars().count() - word.chars().count() + 1;
    let remedy = format!("settings follow the kind, if only an empty mapping: `{key}: {{ {word}: {{}} }}`");
    (is_word(key) && is_word(word))
        .then(|| (Location { line: number + 1, column, length: word.chars().count() }, remedy))
}

/// Whether a line has a variable outside quotes, where YAML reads its braces as a mapping.
fn has_bare_variable(line: &str) -> bool {
    let quotes = |text: &str| text.matches(['"', '\'']).count();
    line.match_indices("${").any(|(place, _)| quotes(line.get(..place).unwrap_or_default()) % 2 == 0)
}

/// The form of an MCP server in the place of another key: as editors write it, or without its section.
fn misplaced_server(error: &Error, source: &Source) -> Option<Fault> {
    let Error::SerdeUnknownField { field, expected, .. } = error else { return None };
    let fault = Fault::new(format!("unknown key `{field}`"));
    let is_file = expected.contains(&"servers") && expected.contains(&"agents");
    if is_file && field == "mcpServers" {
        return Some(fault.with_remedy(
            "MCP servers are under `servers:`, each with `stdio: { command: …, args: […] }` or `http: { url: … }`; an \
             editor's file is read as it is with `--mcp-config FILE`",
        ));
    }
    if is_file && is_server(field, source) {
        let remedy = format!(
            "is it an MCP server? Write it under `servers:`, as `{field}: {{ stdio: {{ command: …, args: […] }} }}` or \
             `{field}: {{ http: {{ url: … }} }}`"
        );
        return Some(fault.with_remedy(remedy));
    }
    let is_in_server = expected.contains(&"stdio") && expected.contains(&"http");
    let section = match field.as_str() {
        "command" | "args" | "env" | "cwd" | "inherit_env" => "stdio: { command: …, args: […], env: { … } }",
        "url" | "headers" | "auth" | "type" => "http: { url: …, headers: { … } }",
        _ => return None,
    };
    is_in_server.then(|| fault.with_remedy(format!("write it inside the transport: `{section}`")))
}

/// Whether the value of a key at the top level has the form of a server.
fn is_server(key: &str, source: &Source) -> bool {
    let Ok(written) = serde_saphyr::from_str::<Value>(source.text()) else { return false };
    let of_server = ["command", "url", "stdio", "http"];
    written.get(key).is_some_and(|value| of_server.iter().any(|member| value.get(member).is_some()))
}

fn explained(error: &Error) -> Fault {
    if let Error::SerdeUnknownField { field, expected, .. } = error {
        let remedy = suggest::remedy(field, expected.iter().copied(), "keys");
        return Fault::new(format!("unknown key `{field}`")).with_remedy(remedy);
    }
    if let Error::SerdeUnknownVariant { variant, expected, .. } = error {
        let mut remedy = suggest::remedy(variant, expected.iter().copied(), "words");
        if ["api", "kind", "provider", "type"].contains(&variant.as_str())
            && let Some(kind) = expected.first()
        {
            remedy = format!("the kind itself is the key, with its settings inside: `{kind}: {{ … }}`; {remedy}");
        }
        return Fault::new(format!("unknown value `{variant}`")).with_remedy(remedy);
    }
    if let Error::SerdeMissingField { field, .. } = error {
        return Fault::new(format!("the key `{field}` is missing")).with_remedy(format!("add `{field}:` here"));
    }
    if let Error::DuplicateMappingKey { key, .. } = error {
        let key = key.as_deref().unwrap_or("this key");
        return Fault::new(format!("`{key}` is written twice")).with_remedy("remove or rename one of the two");
    }
    if let Error::Message { msg, .. } = error
        && msg.ends_with(IS_EMPTY)
    {
        return Fault::new(msg).with_remedy("write a value, or remove the key");
    }
    if let Error::NullIntoString { .. } = error {
        return Fault::new("text is missing here").with_remedy("write it, in quotes if it is `null` or `~`");
    }
    if let Error::SerdeInvalidType { unexpected, expected, .. } = error {
        let expected = expected.strip_prefix("struct ").map_or(expected.as_str(), |_| "a mapping");
        return remedied(Fault::new(format!("expected {expected}, found {unexpected}")), expected);
    }
    if let Error::InvalidBooleanStrict { .. } = error {
        return remedied(Fault::new(format!("expected {TRUTH}")), TRUTH);
    }
    if let Error::InvalidScalar { ty, .. } = error {
        let expected = kind_of_scalar(ty);
        return remedied(Fault::new(format!("expected {expected}")), expected);
    }
    if let Error::Unexpected { expected, .. } = error {
        return match *expected {
            "mapping start" => Fault::new("expected a mapping").with_remedy("write `key: value`, indented"),
            "sequence start" => Fault::new("expected a list").with_remedy("write `[a, b]`, or one `- item` per line"),
            "string scalar" => Fault::new("expected text"),
            other => Fault::new(format!("expected {other}")),
        };
    }
    if let Error::ExpectedMappingEndAfterEnumVariantValue { .. } = error {
        let fault = Fault::new("a second key beside the one that chooses the kind");
        return fault.with_remedy("write it inside that kind, for example `scripted: { file: …, … }`, or remove it");
    }
    let message = UserMessageFormatter.format_message(error).into_owned();
    if message.contains("tabs disallowed") {
        return Fault::new(message).with_remedy("indent with spaces; YAML does not allow tabs there");
    }
    Fault::new(message)
}

/// The error, with an example of the expected value if there is one.
fn remedied(fault: Fault, expected: &str) -> Fault {
    match expected {
        TRUTH => fault.with_remedy("write `true` or `false`, without quotes"),
        WHOLE | COUNT => fault.with_remedy("write digits alone, for example `60`, without a unit and without quotes"),
        NUMBER => fault.with_remedy("write digits alone, for example `0.5`, without a unit and without quotes"),
        _ => fault,
    }
}

fn kind_of_scalar(rust_type: &str) -> &str {
    match rust_type {
        "bool" | "boolean" => TRUTH,
        "f32" | "f64" => NUMBER,
        "u8" | "u16" | "u32" | "u64" | "usize" => COUNT,
        "i8" | "i16" | "i32" | "i64" | "isize" => WHOLE,
        other => other,
    }
}
