//! Errors of the YAML parser as faults: the key, its place, and what to write there.

use serde_json::Value;
use serde_saphyr::{Error, MessageFormatter as _, UserMessageFormatter};

use super::entries::{EntryPath, IS_EMPTY, IS_WRITTEN_TWICE, Step, last_key};
use super::error::{Fault, Source};
use super::spanned::Location;
use super::suggest;

/// The names of expected types in errors.
const TRUTH: &str = "`true` or `false`";
const COUNT: &str = "a whole number, 0 or more";
const WHOLE: &str = "a whole number";
const NUMBER: &str = "a number";

/// A part of the parser's message about a colon where no value can begin.
pub(super) const NO_MAPPING: &str = "mapping values are not allowed";

/// Remedies for errors of the syntax, by a part of the parser's message.
const SYNTAX_REMEDIES: &[(&str, &str)] = &[
    ("tabs disallowed", "indent with spaces; YAML does not allow tabs there"),
    ("did not find expected key", "indent this line like the keys beside it"),
    ("anchor or alias", "put text that begins with `*` or `&` in quotes, for example `\"*\"`"),
    ("unknown value", "put text that begins with `*` in quotes, for example `\"*_read\"`"),
    ("unexpected character", "put text that begins with this character in quotes"),
    ("illegal placement of ':'", "a `]`, a `}` or a quote is probably missing in a line above"),
    ("expected ',' or", "put text with a colon or a brace in quotes, and end the list or the mapping"),
    ("unclosed quote", "end the text with the same quote"),
    ("after single-quoted", "write an apostrophe in single quotes twice (`''`), or use double quotes"),
    ("after double-quoted", "write a quote in double quotes as `\\\"`, or use single quotes"),
];

/// What to write for keys whose form is often mistaken.
const FORMS: &[(&str, &str)] = &[
    ("stdio", "write `stdio: { command: …, args: […] }`"),
    ("http", "write `http: { url: … }`"),
    ("command", "write the program alone, and its arguments in `args: […]`"),
    ("tools", "write `tools: { allow: […] }`, with the names or patterns of the tools"),
];

/// The transports of an MCP server, each with keys that editors write beside it.
const TRANSPORTS: [(&str, &[&str]); 2] = [
    ("stdio: { command: …, args: […], env: { … } }", &["command", "args", "env", "cwd", "inherit_env"]),
    ("http: { url: …, headers: { … } }", &["url", "headers", "auth", "type"]),
];

/// Keys that belong into the settings of a kind, or that other programs have in its place.
const BESIDE_KIND: [&str; 8] = ["api", "kind", "provider", "type", "name", "model", "base_url", "api_key"];

/// A fault, and the entries beside it that are a part of the same mistake.
pub(super) struct ParseFault {
    pub(super) fault: Fault,
    pub(super) beside: Vec<EntryPath>,
}

/// The fault for an error of the parser in the entry at this path.
pub(super) fn parse_fault(error: &Error, source: &Source, path: &[Step]) -> ParseFault {
    let place = error.location().and_then(Location::from_location);
    let error = error.without_snippet();
    let above = path.get(..path.len().saturating_sub(1)).unwrap_or_default();
    let entry = |key: &str| above.iter().cloned().chain([Step::Key(key.to_owned())]).collect();
    if let Error::Unexpected { expected: "mapping start", .. } = error
        && let Some((fault, key)) = place.and_then(|place| not_indented(source, place))
    {
        return ParseFault { fault, beside: key.iter().map(|key| entry(key)).collect() };
    }
    if let Some((fault, keys)) = misplaced_server(error, source) {
        return ParseFault { fault: fault.at(source, place), beside: keys.iter().map(|key| entry(key)).collect() };
    }
    let misread = place.and_then(|place| misread(error, source, place, path));
    let fault = misread.unwrap_or_else(|| explained(error, source, place, path).at(source, place));
    ParseFault { fault, beside: Vec::new() }
}

/// The fault where the text shows more than the error does.
fn misread(error: &Error, source: &Source, place: Location, path: &[Step]) -> Option<Fault> {
    if let Error::SerdeMissingField { field, .. } = error
        && !path.is_empty()
    {
        let (key, place) = owner(source, place)?;
        let fault = Fault::new(format!("the key `{field}` is missing in {key}"));
        return Some(fault.with_remedy(format!("add `{field}:` there")).at(source, Some(place)));
    }
    if let Error::Unexpected { expected: "mapping start", .. } = error {
        return kind_without_settings(source, place).or_else(|| without_colon(source, place));
    }
    None
}

/// A mapping that contains this place: the name of its key and where it is written. The parser reports the place of the
/// last key in the mapping.
fn owner(source: &Source, place: Location) -> Option<(String, Location)> {
    let lines: Vec<&str> = source.text().lines().take(place.line).collect();
    let (last, above) = lines.split_last()?;
    let before: String = last.chars().take(place.column - 1).collect();
    let mut closed = 0;
    let opening = before.char_indices().rev().find(|(_, sign)| {
        closed += match sign {
            '}' => 1,
            '{' => -1,
            _ => 0,
        };
        closed < 0
    });
    let (number, text) = match opening {
        Some((at, _)) if !before.get(..at)?.trim_end().ends_with(':') => {
            let column = before.get(..=at)?.chars().count();
            return Some(("this item".to_owned(), Location { line: place.line, column, length: 1 }));
        }
        Some((at, _)) => (place.line, before.get(..at)?),
        None => {
            let is_above = |line: &&str| !is_blank(line) && indent(line) < place.column - 1;
            let number = above.iter().rposition(is_above)?;
            (number + 1, *above.get(number)?)
        }
    };
    let column = |byte: usize| text.get(..byte).unwrap_or_default().chars().count() + 1;
    match without_comment(text).trim_end_matches([' ', '{']).strip_suffix(':') {
        Some(text) => {
            let key = text.rsplit([' ', '{', ',']).next().unwrap_or(text);
            let place = Location { line: number, column: column(text.len() - key.len()), length: key.chars().count() };
            Some((format!("`{}`", key.trim_matches('"')), place))
        }
        // An item of a list.
        None => {
            let begin = text.find(|sign| !matches!(sign, ' ' | '-'))?;
            let length = text.trim_end().len().saturating_sub(begin).max(1);
            Some(("this item".to_owned(), Location { line: number, column: column(begin), length }))
        }
    }
}

/// A key without a value, although settings are expected. If the next line is not indented below it, that is the mistake,
/// and the key of that line is returned as well.
fn not_indented(source: &Source, after: Location) -> Option<(Fault, Option<String>)> {
    let mut lines = source.text().lines().enumerate().skip(after.line - 1);
    let (_, line) = lines.next()?;
    let key = without_comment(line).strip_suffix(':')?.trim_start_matches([' ', '-']);
    if !is_word(key) || after.column <= indent(line) + key.len() {
        return None;
    }
    let (number, next) = lines.find(|(_, line)| !is_blank(line)).unwrap_or((after.line, ""));
    let sibling = next.trim_start().split_once(':').map(|(sibling, _)| sibling).filter(|sibling| is_word(sibling));
    match sibling.filter(|_| indent(next) == indent(line)) {
        Some(sibling) => {
            let fault = Fault::new(format!("`{sibling}` is not indented below `{key}`"));
            let fault = fault.with_remedy(format!("indent what belongs to `{key}` further than `{key}` itself"));
            let place = Location { line: number + 1, column: indent(next) + 1, length: sibling.chars().count() };
            Some((fault.at(source, Some(place)), Some(sibling.to_owned())))
        }
        None => {
            let place = Location { line: after.line, column: line.find(key)? + 1, length: key.chars().count() };
            let fault = Fault::new(format!("`{key}`{IS_EMPTY}")).with_remedy("write its settings below it, indented");
            Some((fault.at(source, Some(place)), None))
        }
    }
}

/// A line of text where settings are expected: the colon is missing, or the space after it.
fn without_colon(source: &Source, place: Location) -> Option<Fault> {
    let line = source.text().lines().nth(place.line - 1)?;
    let text = line.trim_start();
    if indent(line) != place.column - 1 {
        return None;
    }
    let has_key = |(key, _): &(&str, &str)| is_word(key);
    let fault = match (text.split_once(':').filter(has_key), text.split_once(' ').filter(has_key)) {
        (Some((key, value)), _) if !value.is_empty() => {
            Fault::new(format!("a space is missing after `{key}:`")).with_remedy(format!("write `{key}: …`"))
        }
        (None, Some((key, _))) => {
            Fault::new(format!("a colon is missing after `{key}`")).with_remedy(format!("write `{key}: …`"))
        }
        (_, _) => return None,
    };
    Some(fault.at(source, Some(place)))
}

/// A lone word where a kind has to be chosen (`store: memory`), with what to write: the parser reports the place after it.
fn kind_without_settings(source: &Source, after: Location) -> Option<Fault> {
    let mut lines = source.text().lines();
    let above: Vec<&str> = lines.by_ref().take(after.line.saturating_sub(1)).collect();
    let is_next =
        lines.next().unwrap_or_default().chars().take(after.column.saturating_sub(1)).all(char::is_whitespace);
    let number = above.iter().rposition(|line| !line.trim().is_empty()).filter(|_| is_next)?;
    let line = above.get(number)?;
    let (before, word) = line.rsplit_once(": ")?;
    let key = before.trim_start_matches([' ', '-']);
    let word = word.trim_end();
    let column = line.chars().count() - word.chars().count() + 1;
    let remedy = format!("settings follow the kind, if only an empty mapping: `{key}: {{ {word}: {{}} }}`");
    let place = Location { line: number + 1, column, length: word.chars().count() };
    let fault = Fault::new("a kind without its settings").with_remedy(remedy).at(source, Some(place));
    (is_word(key) && is_word(word)).then_some(fault)
}

/// The columns before the first sign of a line.
fn indent(line: &str) -> usize {
    line.chars().take_while(|sign| *sign == ' ').count()
}

/// Whether the line has nothing but a comment.
fn is_blank(line: &str) -> bool {
    without_comment(line).is_empty()
}

fn without_comment(line: &str) -> &str {
    let text = if line.trim_start().starts_with('#') { "" } else { line };
    text.split(" #").next().unwrap_or(text).trim_end()
}

fn is_word(text: &str) -> bool {
    text.starts_with(|sign: char| sign.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// The form of an MCP server in the place of another key: as editors write it, or without its section. With the keys beside
/// it to which the same applies.
fn misplaced_server(error: &Error, source: &Source) -> Option<(Fault, &'static [&'static str])> {
    let Error::SerdeUnknownField { field, expected, .. } = error else { return None };
    let fault = Fault::new(format!("unknown key `{field}`"));
    let is_file = expected.contains(&"servers") && expected.contains(&"agents");
    if is_file && field == "mcpServers" {
        let remedy = "MCP servers are under `servers:`, each with `stdio: { command: …, args: […] }` or \
                      `http: { url: … }`; an editor's file is read as it is with `--mcp-config FILE`";
        // The names of its servers are not known then.
        return Some((fault.with_remedy(remedy), &["servers"]));
    }
    if is_file && is_server(field, source) {
        let remedy = format!(
            "is it an MCP server? Write it under `servers:`, as `{field}: {{ stdio: {{ command: …, args: […] }} }}` or \
             `{field}: {{ http: {{ url: … }} }}`"
        );
        return Some((fault.with_remedy(remedy), &[]));
    }
    let is_in_server = expected.contains(&"stdio") && expected.contains(&"http");
    let (section, keys) = TRANSPORTS.iter().find(|(_, keys)| is_in_server && keys.contains(&field.as_str()))?;
    let fault = fault.with_remedy(format!("write it inside the transport: `{section}`"));
    Some((fault, keys))
}

/// Whether the value of a key at the top level has the form of a server.
fn is_server(key: &str, source: &Source) -> bool {
    let Ok(written) = serde_saphyr::from_str::<Value>(source.text()) else { return false };
    let of_server = ["command", "url", "stdio", "http"];
    written.get(key).is_some_and(|value| of_server.iter().any(|member| value.get(member).is_some()))
}

fn explained(error: &Error, source: &Source, place: Option<Location>, path: &[Step]) -> Fault {
    let of_key = |message: &str| match (path.last(), last_key(path)) {
        (Some(Step::Item(_)), Some(key)) => Fault::new(format!("an item of `{key}`: {message}")),
        (_, Some(key)) => Fault::new(format!("`{key}`: {message}")),
        (_, None) => Fault::new(message),
    };
    let rest = place.and_then(|place| Some(place_onward(source.text().lines().nth(place.line - 1)?, place.column)));
    let rest = rest.unwrap_or_default();
    if let Error::SerdeUnknownField { field, expected, .. } = error {
        let remedy = suggest::remedy(field, expected.iter().copied(), "keys");
        return Fault::new(format!("unknown key `{field}`")).with_remedy(remedy);
    }
    if let Error::SerdeUnknownVariant { variant, expected, .. } = error {
        let remedy = suggest::remedy(variant, expected.iter().copied(), "words");
        if !rest.strip_prefix(variant.as_str()).is_some_and(|rest| rest.trim_start().starts_with(':')) {
            let remedy = match expected.first() {
                Some(kind @ &"openai_chat") => {
                    format!("a model is written with its API: `{kind}: {{ model: {variant}, … }}`; {remedy}")
                }
                _ => remedy,
            };
            return of_key(&format!("unknown value `{variant}`")).with_remedy(remedy);
        }
        let remedy = match expected.first() {
            Some(kind) if BESIDE_KIND.contains(&variant.as_str()) => {
                format!("the kind itself is the key, with its settings inside: `{kind}: {{ … }}`; {remedy}")
            }
            Some(kind @ &"openai_chat") if !remedy.starts_with("did you") => {
                format!("{remedy}; most other providers speak `{kind}`, with their `base_url`")
            }
            _ => remedy,
        };
        return of_key(&format!("unknown kind `{variant}`")).with_remedy(remedy);
    }
    if let Error::SerdeMissingField { field, .. } = error {
        return of_key(&format!("the key `{field}` is missing")).with_remedy(format!("add `{field}:` here"));
    }
    if let Error::DuplicateMappingKey { key, .. } = error {
        let key = key.as_deref().unwrap_or("this key");
        return remedied(Fault::new(format!("`{key}`{IS_WRITTEN_TWICE}")), IS_WRITTEN_TWICE);
    }
    if let Error::Message { msg, .. } = error
        && let Some(end) = [IS_EMPTY, IS_WRITTEN_TWICE].into_iter().find(|end| msg.ends_with(end))
    {
        return remedied(Fault::new(msg), end);
    }
    if let Error::NullIntoString { .. } = error {
        return of_key("text is missing").with_remedy("write it, in quotes if it is `null` or `~`");
    }
    if let Error::SerdeInvalidType { unexpected, expected, .. } = error {
        let expected = expected.strip_prefix("struct ").map_or(expected.as_str(), |_| "a mapping");
        return remedied(of_key(&format!("expected {expected}, found {unexpected}")), expected);
    }
    if let Error::InvalidBooleanStrict { .. } = error {
        return remedied(of_key(&format!("expected {TRUTH}")), TRUTH);
    }
    if let Error::InvalidScalar { ty, .. } = error {
        let expected = kind_of_scalar(ty);
        return remedied(of_key(&format!("expected {expected}")), expected);
    }
    if let Error::Unexpected { expected, .. } = error {
        let (expected, remedy) = match *expected {
            "mapping start" if rest.starts_with(['-', '[']) => {
                ("a mapping", "write `key: value` in each line, without `-` and `[ ]`")
            }
            "mapping start" => ("a mapping", "write `key: value`, indented"),
            "sequence start" => ("a list", "write `[a, b]`, or one `- item` per line"),
            "string scalar" => ("text", "write one value; text that begins with `[` or `{` needs quotes"),
            other => return of_key(&format!("expected {other}")),
        };
        let form = FORMS.iter().find(|(key, _)| path.last() == Some(&Step::Key((*key).to_owned())));
        return of_key(&format!("expected {expected}")).with_remedy(form.map_or(remedy, |(_, remedy)| remedy));
    }
    if let Error::ExpectedMappingEndAfterEnumVariantValue { .. } = error {
        let fault = Fault::new("a second key beside the one that chooses the kind");
        return fault.with_remedy("write it inside that kind, for example `scripted: { file: …, … }`, or remove it");
    }
    let message = UserMessageFormatter.format_message(error).into_owned();
    let remedy = syntax_remedy(&message, source, place);
    let fault = Fault::new(message);
    if let Some(remedy) = remedy { fault.with_remedy(remedy) } else { fault }
}

/// The line from this column on.
fn place_onward(line: &str, column: usize) -> &str {
    line.char_indices().nth(column - 1).and_then(|(at, _)| line.get(at..)).unwrap_or_default()
}

fn syntax_remedy(message: &str, source: &Source, place: Option<Location>) -> Option<&'static str> {
    let Location { line: number, column, .. } = place?;
    let line = source.text().lines().nth(number - 1).unwrap_or_default();
    let above = source.text().lines().take(number - 1).last().unwrap_or_default();
    if message.contains(NO_MAPPING) {
        return Some(remedy_for_colon(above, line, column));
    }
    if [above, line].into_iter().any(has_bare_variable) {
        return Some("write variables in quotes: `\"${NAME}\"`");
    }
    SYNTAX_REMEDIES.iter().find(|(part, _)| message.contains(part)).map(|(_, remedy)| *remedy)
}

/// What to write where a colon in this column begins no value: it is in text, or after a key in a wrong place.
fn remedy_for_colon(above: &str, line: &str, column: usize) -> &'static str {
    let before: String = line.chars().take(column.saturating_sub(1)).collect();
    match before.contains(": ") {
        false if indent(above) == indent(line) && !is_blank(above) && !above.contains(':') => {
            "add the colon that is missing in the line above, after its first word"
        }
        true => "put text that has a colon in quotes, for example `instructions: \"Answer: shortly\"`",
        false => "indent this key like the keys beside it; put text that has a colon in quotes",
    }
}

/// Whether a line has a variable outside quotes, where YAML reads its braces as a mapping.
fn has_bare_variable(line: &str) -> bool {
    let quotes = |text: &str| text.matches(['"', '\'']).count();
    line.match_indices("${").any(|(place, _)| quotes(line.get(..place).unwrap_or_default()) % 2 == 0)
}

/// The error, with an example of the expected value if there is one.
fn remedied(fault: Fault, expected: &str) -> Fault {
    match expected {
        IS_EMPTY => fault.with_remedy("write a value, or remove the key"),
        IS_WRITTEN_TWICE => fault.with_remedy("remove or rename one of the two"),
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
