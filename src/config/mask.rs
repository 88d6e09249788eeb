//! Secret masking: a configuration file as it may be displayed. Keys belong in the environment, but some are written in
//! the file. An excerpt around an error must not leak them into a terminal's history or a build log. URLs can also
//! contain secrets, as user information and in the query.

use std::ops::Range;

/// Parts of key names that mark a secret. Names that end with `token` count too.
const TELLING: [&str; 10] =
    ["api_key", "apikey", "api-key", "secret", "password", "authorization", "bearer", "hmac", "ed25519", "seal"];

/// The text with every byte of a secret value replaced by an asterisk, so that positions stay the same. References to
/// variables are not secrets, nor are numbers (`max_tokens`).
pub(super) fn masked(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(masked_line);
    lines.collect()
}

fn masked_line(line: &str) -> String {
    masked_values(&masked_addresses(line))
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

fn masked_values(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(':') {
        shown.push_str(before);
        shown.push(':');
        rest = after;
        if is_secret_name(before) {
            let begin = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            let (space, value) = rest.split_at(begin);
            let (value, tail) = value.split_at(value_length(value));
            shown.push_str(space);
            match is_shown(value) {
                true => shown.push_str(value),
                false => shown.push_str(&"*".repeat(value.len())),
            }
            rest = tail;
        }
    }
    shown + rest
}

/// Whether the text before a colon ends with the name of a secret.
fn is_secret_name(before: &str) -> bool {
    let name = before.trim_end().trim_end_matches(['"', '\'']).rsplit([' ', ',', '{', '"', '\'', '\t']).next();
    let name = name.unwrap_or_default().to_ascii_lowercase();
    name.ends_with("token") || TELLING.iter().any(|telling| name.contains(telling))
}

/// The length of a value, which ends with its quote, its line or its entry in a flow mapping.
fn value_length(value: &str) -> usize {
    let end = |from: usize, ends: &[char]| value.get(from..).and_then(|rest| rest.find(ends)).map(|at| from + at);
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => end(1, &[quote]).map_or(value.trim_end().len(), |at| at + 1),
        _ => {
            let whole = end(0, &[',', '}', '\n', '\r']).unwrap_or(value.len());
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
