//! Secret masking: a configuration file as it may be displayed. Keys belong in the environment, but some are written in
//! the file. An excerpt around an error must not leak them into a terminal's history or a build log. URLs can also
//! contain secrets, as user information and in the query.

use std::ops::Range;

/// Parts of key names that mark a secret. Names that end with `token` count too.
const TELLING: [&str; 10] =
    ["api_key", "apikey", "api-key", "secret", "password", "authorization", "bearer", "hmac", "ed25519", "seal"];

/// The keys whose entries are secrets, whatever their names.
const MAPS: [&str; 2] = ["env", "headers"];

/// The text with every byte of a secret value replaced by an asterisk, so that positions stay the same. References to
/// variables are not secrets, nor are numbers (`max_tokens`) outside of `env` and `headers`.
pub(super) fn masked(text: &str) -> String {
    let mut place = Place::default();
    let lines = text.split_inclusive('\n').map(|line| place.masked_line(&masked_addresses(line)));
    lines.collect()
}

/// The place of a line.
#[derive(Default)]
struct Place {
    /// The blocks around it, each with the indentation of its key.
    blocks: Vec<(usize, Block)>,
    /// Whether it is inside the braces of `env: { … }`.
    is_in_braces: bool,
    /// Whether the value of the last key in these braces is missing so far.
    lacks_value: bool,
}

/// The lines below a key, which are indented more than it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Names with secret values.
    Entries,
    /// The rest of a secret.
    Secret,
}

fn masked_addresses(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("://") {
        let (address, tail) = after.split_at(address_length(before, after));
        shown.extend([before, "://", &masked_address(address)]);
        rest = tail;
    }
    shown + rest
}

/// The length of a URL, which ends with its quote or with the word.
fn address_length(before: &str, after: &str) -> usize {
    let before = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let end = match before.chars().next_back() {
        Some(quote @ ('"' | '\'')) => after.find([quote, '\n', '\r']),
        _ => after.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')),
    };
    end.unwrap_or(after.len())
}

/// The part of a URL after `://`, without the user information and the values of the query.
fn masked_address(address: &str) -> String {
    let references = references(address);
    let is_reference = |at: usize| references.iter().any(|place| place.contains(&at));
    // A copy of the same length in which each reference consists of digits, so that no delimiter is found inside one.
    let shape = address.bytes().enumerate().map(|(at, byte)| match byte.is_ascii() && !is_reference(at) {
        true => char::from(byte),
        false => '0',
    });
    let shape: String = shape.collect();
    let mut secrets = values_of_query(&shape);
    secrets.push(0..length_of_user(&shape));
    let is_secret = |at: usize| secrets.iter().any(|place| place.contains(&at)) && !is_reference(at);
    let shown = address.char_indices().map(|(at, character)| match is_secret(at) && character != ':' {
        true => "*".repeat(character.len_utf8()),
        false => character.into(),
    });
    shown.collect()
}

/// A password with an unencoded delimiter ends only at the last `@`.
fn length_of_user(address: &str) -> usize {
    let authority = address.find(['/', '?', '#']).and_then(|end| address.get(..end)).unwrap_or(address);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = authority.starts_with('[') || authority.rsplit_once(':').is_none_or(|(_, port)| is_port(port));
    match authority.rfind('@') {
        Some(at) => at,
        None if is_host => 0,
        None => address.rfind('@').unwrap_or(authority.len()),
    }
}

fn values_of_query(address: &str) -> Vec<Range<usize>> {
    let Some(begin) = address.find('?') else { return Vec::new() };
    let end = address.find('#').filter(|end| *end > begin).unwrap_or(address.len());
    let query = address.get(begin..end).unwrap_or_default();
    let marks = query.match_indices('=').map(|(at, _)| begin + at + 1);
    let value = |from: usize| from..address.get(from..end).and_then(|rest| rest.find('&')).map_or(end, |at| from + at);
    marks.map(value).collect()
}

/// The positions of variable references.
fn references(text: &str) -> Vec<Range<usize>> {
    let begins = text.match_indices("${").map(|(at, _)| at);
    begins.filter_map(|at| Some(at..at + text.get(at..)?.find('}')? + 1)).collect()
}

impl Place {
    fn masked_line(&mut self, line: &str) -> String {
        let indentation = line.len() - line.trim_start_matches([' ', '\t', '-']).len();
        if !line.trim().is_empty() {
            self.blocks.retain(|(of_key, _)| *of_key < indentation);
        }
        let content = line.trim_start();
        match self.blocks.last() {
            Some((_, Block::Secret)) => masked_text(line),
            Some((_, Block::Entries)) if content.starts_with('-') || !content.contains([':', '#', '}']) => {
                masked_text(line)
            }
            Some((_, Block::Entries)) | None => self.masked_values(line, indentation),
        }
    }

    fn masked_values(&mut self, line: &str, indentation: usize) -> String {
        let mut shown = String::with_capacity(line.len());
        let mut rest = line;
        if self.lacks_value && !line.trim().is_empty() {
            self.lacks_value = false;
            let (space, value) = line.split_at(line.len() - line.trim_start().len());
            let (value, tail) = value.split_at(value_length(value));
            let is_hidden = !is_shown(value) || value.parse::<f64>().is_ok();
            shown.extend([space, &if is_hidden { "*".repeat(value.len()) } else { value.to_owned() }]);
            rest = tail;
        }
        while let Some((before, after)) = rest.split_once(':') {
            self.is_in_braces &= !before.contains('}');
            let begin = after.len() - after.trim_start_matches([' ', '\t']).len();
            let (space, value) = after.split_at(begin);
            shown.extend([before, ":", space]);
            rest = value;
            let is_entry = self.is_in_braces || matches!(self.blocks.last(), Some((_, Block::Entries)));
            let is_map = MAPS.contains(&name_before(before)) && !before.contains('#') && !before.ends_with("${env");
            if is_map && !is_entry && value.starts_with('{') {
                self.is_in_braces = true;
            } else if is_map && !is_entry && value.trim().is_empty() {
                self.blocks.push((indentation, Block::Entries));
            } else if is_map || is_entry || is_secret_name(before) {
                // An entry on a line of its own may contain commas and braces.
                let whole = if self.is_in_braces || !is_entry { value_length(value) } else { value.trim_end().len() };
                let (value, tail) = value.split_at(whole);
                let is_hidden = !is_shown(value) || (is_entry && value.parse::<f64>().is_ok());
                shown.push_str(&if is_hidden { "*".repeat(value.len()) } else { value.to_owned() });
                rest = tail;
                self.lacks_value = self.is_in_braces && value.is_empty() && tail.trim().is_empty();
                if tail.trim().is_empty() && !self.is_in_braces && (is_hidden || (is_entry && value.is_empty())) {
                    self.blocks.push((indentation, Block::Secret));
                }
            }
        }
        self.is_in_braces &= !rest.contains('}');
        shown + rest
    }
}

/// The line with asterisks in place of its text.
fn masked_text(line: &str) -> String {
    let (from, to) = (line.len() - line.trim_start().len(), line.trim_end().len());
    let (space, text, end) = (line.get(..from), line.get(from..to), line.get(to..));
    let masked = text.map(|text| "*".repeat(text.len()));
    masked.map_or_else(|| line.to_owned(), |text| [space.unwrap_or_default(), &text, end.unwrap_or_default()].concat())
}

/// The name before a colon.
fn name_before(before: &str) -> &str {
    let name = before.trim_end().trim_end_matches(['"', '\'']).rsplit([' ', ',', '{', '"', '\'', '\t']).next();
    name.unwrap_or_default()
}

/// Whether the text before a colon ends with the name of a secret.
fn is_secret_name(before: &str) -> bool {
    let name = name_before(before).to_ascii_lowercase();
    name.ends_with("token") || TELLING.iter().any(|telling| name.contains(telling))
}

/// The length of a value, which ends with its quote, its line or its entry in a flow mapping.
fn value_length(value: &str) -> usize {
    let end = |from: usize, ends: &[char]| value.get(from..).and_then(|rest| rest.find(ends)).map(|at| from + at);
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => end(1, &[quote]).map_or(value.trim_end().len(), |at| at + 1),
        _ => {
            let references = references(value);
            let is_end = |(at, sign): &(usize, char)| {
                matches!(sign, ',' | '}' | '\n' | '\r') && !references.iter().any(|place| place.contains(at))
            };
            let whole = value.char_indices().find(is_end).map_or(value.len(), |(at, _)| at);
            value.get(..whole).map_or(whole, |value| value.trim_end().len())
        }
    }
}

fn is_shown(value: &str) -> bool {
    let value = value.trim().trim_matches(['"', '\'']);
    value.is_empty() || value.starts_with("${") || value.starts_with("Bearer ${") || value.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_in_place_and_everything_else_stays() {
        for (line, expected) in [
            ("    api_key: sk-1234\n", "    api_key: *******\n"),
            ("    api_key: ${OPENAI_API_KEY}\n", "    api_key: ${OPENAI_API_KEY}\n"),
            ("  max_tokens: 100\n", "  max_tokens: 100\n"),
            ("{\"api_key\": \"sk,1\", \"model\": \"m\"}", "{\"api_key\": ******, \"model\": \"m\"}"),
            ("m: { openai_chat: { api_key: 'a: b', modle: x } }", "m: { openai_chat: { api_key: ******, modle: x } }"),
            ("  Authorization: Bearer abc\r\n", "  Authorization: **********\r\n"),
            ("  GITHUB_TOKEN: \"é-unclosed\n", "  GITHUB_TOKEN: ************\n"),
            ("{ x-api-key: abc }", "{ x-api-key: *** }"),
            ("auth: { bearer: abc }", "auth: { bearer: *** }"),
            ("max_tokens: many", "max_tokens: many"),
            ("# a comment: with colons\n", "# a comment: with colons\n"),
        ] {
            assert_eq!(masked(line), expected);
            assert_eq!(masked(line).len(), line.len());
        }
    }

    #[test]
    fn entries_of_env_and_headers_are_masked_whatever_their_names() {
        for (text, expected) in [
            ("env:\n  STRIPE: sk_live_1\n  N: 12\nargs: [y]\n", "env:\n  STRIPE: *********\n  N: **\nargs: [y]\n"),
            ("- env:\n    A: a,b}\n    B: ${B}\n  x: y", "- env:\n    A: ****\n    B: ${B}\n  x: y"),
            ("{ env: { STRIPE: x, B: ${B}, C: y }, args: [y] }", "{ env: { STRIPE: *, B: ${B}, C: * }, args: [y] }"),
            (
                "\"env\": {\n\"A\": \"x\",\n\"B\": \"y\"\n},\n\"a\": \"b\"",
                "\"env\": {\n\"A\": ***,\n\"B\": ***\n},\n\"a\": \"b\"",
            ),
            ("headers: { Accept: \"${A}\", B: \"b\" }\nurl: u", "headers: { Accept: \"${A}\", B: *** }\nurl: u"),
            (
                "env:\n  A: |\n    B: c\n\n    d\n  E: \"f\n    g: h\"\ni: j",
                "env:\n  A: *\n    ****\n\n    *\n  E: **\n    *****\ni: j",
            ),
            ("env:\n  - STRIPE=sk:1\n  A\nb: c", "env:\n  *************\n  *\nb: c"),
            ("{ env: { \"A\":\n\n  \"x:y\", B: y } }\na: b", "{ env: { \"A\":\n\n  *****, B: * } }\na: b"),
            ("env: [\"A=x\"]\nb: c", "env: *******\nb: c"),
            ("seal: |\n  AAAA\nnext: 1", "seal: *\n  ****\nnext: 1"),
            ("api_key:\n  command: [a]\nurl: ${env:U}/x", "api_key:\n  command: [a]\nurl: ${env:U}/x"),
        ] {
            assert_eq!(masked(text), expected);
            assert_eq!(masked(text).len(), text.len());
        }
    }

    #[test]
    fn what_an_address_carries_before_its_host_and_in_its_query_is_masked() {
        for (line, expected) in [
            ("url: \"http://ann:hunter2@h:80/mcp\"\n", "url: \"http://***:*******@h:80/mcp\"\n"),
            ("url: htp://ghp_abc@h/@scope/x", "url: htp://*******@h/@scope/x"),
            ("url: http://ann:p@ss@h/mcp", "url: http://***:****@h/mcp"),
            ("url: http://ann:p/ss@h/mcp", "url: http://***:****@h/mcp"),
            ("{ url: 'http://ann:p\"s s@h/', x: y }", "{ url: 'http://***:*****@h/', x: y }"),
            ("url: http://ann:é-unclosed", "url: http://***:***********"),
            ("url: http://ann:${PW:-x:/y}@h/mcp", "url: http://***:${PW:-x:/y}@h/mcp"),
            ("url: http://${HOST:-localhost:80}:8080/a@b", "url: http://${HOST:-localhost:80}:8080/a@b"),
            ("url: http://[::1]:80/a@b", "url: http://[::1]:80/a@b"),
            ("url: https://h/mcp?key=a/b&of=${OF}#x=y", "url: https://h/mcp?key=***&of=${OF}#x=y"),
            ("a: http://u@h b: http://w@h", "a: http://*@h b: http://*@h"),
            ("# see https://example.com/a@b: nothing", "# see https://example.com/a@b: nothing"),
        ] {
            assert_eq!(masked(line), expected);
            assert_eq!(masked(line).len(), line.len());
        }
    }
}
