//! A configuration file as it may be shown. Keys belong into the environment, but some are written out, and an excerpt
//! around a mistake must not carry them into a terminal's history or a build's log.

/// What the name of a secret contains, unless it ends with `token`.
const TELLING: [&str; 7] = ["api_key", "apikey", "api-key", "secret", "password", "authorization", "bearer"];

/// The text with every byte of a secret value as an asterisk, so that places stay where they are. References to variables
/// are no secrets, nor are numbers (`max_tokens`).
pub(super) fn masked(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(masked_line);
    lines.collect()
}

fn masked_line(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(':') {
        shown.push_str(before);
        shown.push(':');
        rest = after;
        if is_telling(before) {
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

/// Whether what stands before a colon ends with the name of a secret.
fn is_telling(before: &str) -> bool {
    let name = before.trim_end().trim_end_matches(['"', '\'']).rsplit([' ', ',', '{', '"', '\'', '\t']).next();
    let name = name.unwrap_or_default().to_ascii_lowercase();
    name.ends_with("token") || TELLING.iter().any(|telling| name.contains(telling))
}

/// A value ends with its quote, or else where its line or its place in a list of pairs does.
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
}
