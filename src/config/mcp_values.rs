//! Values of editors' files: whether one may be a secret. What is not clearly harmless counts as a secret.

use std::ops::Range;
use std::path::Path;

use toolgate_core::redact::is_telling;

/// Words that are settings and never secrets.
const SETTINGS: [&str; 20] = [
    "true",
    "false",
    "trace",
    "debug",
    "info",
    "warn",
    "warning",
    "error",
    "off",
    "on",
    "production",
    "development",
    "staging",
    "test",
    "stdio",
    "http",
    "https",
    "json",
    "text",
    "utf-8",
];

/// The beginnings of tokens.
const TOKENS: [&str; 14] =
    ["sk-", "sk_", "pk_", "rk_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xox", "AKIA", "AIza", "hf_", "eyJ"];

/// The shortest word that may be a token.
const TOKEN: usize = 16;

/// Whether a variable or a header with this name may have this value in a file that others read.
pub(super) fn is_harmless(name: &str, value: &str) -> bool {
    if is_telling(name) {
        return false;
    }
    let is_number = value.len() <= 5 && !value.is_empty() && value.chars().all(|c| c.is_ascii_digit());
    let is_path = || value.starts_with(['/', '~']) && !has_secret(value) && Path::new(value).exists();
    let is_address = || value.starts_with("http") && value.contains("://") && !is_secret_url(value);
    let is_setting = SETTINGS.iter().any(|word| value.eq_ignore_ascii_case(word));
    value.is_empty() || is_number || is_setting || is_path() || is_address()
}

/// Whether a text has an address with credentials, or a word that looks like a token.
pub fn has_secret(text: &str) -> bool {
    text.split_whitespace().any(|word| (word.contains("://") && is_secret_url(word)) || has_token(word))
}

/// Whether an address has a user, the value of a parameter, or a segment that looks like a token.
pub(super) fn is_secret_url(url: &str) -> bool {
    let literal = literal_parts(url).concat();
    let rest = literal.split_once("://").map_or(literal.as_str(), |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let has_parameter = rest.split_once('?').is_some_and(|(_, query)| {
        query.split('&').any(|pair| pair.split_once('=').is_some_and(|(_, value)| !value.is_empty()))
    });
    authority.contains('@') || has_parameter || has_token(rest)
}

fn has_token(text: &str) -> bool {
    let is_part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let count = |word: &str, is_so: fn(&char) -> bool| word.chars().filter(is_so).count();
    let is_token = |word: &str| {
        let [digits, small, large] =
            [char::is_ascii_digit, char::is_ascii_lowercase, char::is_ascii_uppercase].map(|is_so| count(word, is_so));
        let is_mixed = digits >= 2 && small + large > 0 || small > 2 && large > 2 && word.len() >= 24;
        word.len() >= TOKEN && (is_mixed || digits == word.len())
    };
    let begins_so = |word: &str| TOKENS.iter().any(|token| word.starts_with(token) && word.len() > token.len() + 4);
    let is_id = |word: &str| word.len() == 36 && word.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let with_dashes = |c: char| !is_part_of_word(c) && c != '-';
    text.split(|c: char| !is_part_of_word(c)).any(is_token)
        || text.split(with_dashes).any(|word| begins_so(word) || is_id(word))
}

/// The text between its references.
pub(super) fn literal_parts(text: &str) -> Vec<String> {
    let mut from = 0;
    let mut parts = Vec::new();
    for reference in references(text) {
        parts.extend(text.get(from..reference.start).map(str::to_owned));
        from = reference.end;
    }
    parts.extend(text.get(from..).map(str::to_owned));
    parts.retain(|part| !part.is_empty());
    parts
}

/// The positions of `${NAME}`.
pub(super) fn references(text: &str) -> Vec<Range<usize>> {
    let begins = text.match_indices("${").map(|(at, _)| at);
    begins.filter_map(|at| Some(at..at + text.get(at..)?.find('}')? + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clearly_harmless_values_are_copied() {
        for (name, value) in [
            ("LOG_LEVEL", "info"),
            ("PORT", "3000"),
            ("HOST_URL", "https://git.example/api/v3"),
            ("TMP", "/tmp"),
            ("A", ""),
        ] {
            assert!(is_harmless(name, value), "{name}");
        }
        for (name, value) in [
            ("API_KEY", "info"),
            ("DB", "hunter2"),
            ("HOOK", "https://hooks.example/services/T01234567/B01234567/abcDEF0123456789"),
            ("DATABASE_URL", "postgres://ann:pw@db.example/shop"),
            ("URL", "https://x.example/mcp?key=abc"),
            ("ACCOUNT", "123456789012"),
        ] {
            assert!(!is_harmless(name, value), "{name}");
        }
    }

    #[test]
    fn tokens_are_recognized_in_arguments_and_packages_are_not() {
        for text in [
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "sk-proj-abcdefgh",
            "0b0e0c2a-1b7e-4f6e-9b0d-0d2f6a7f9a11",
            "postgresql://ann:pw@localhost/shop",
        ] {
            assert!(has_secret(text), "{text}");
        }
        for text in [
            "@modelcontextprotocol/server-filesystem",
            "mcp-remote@0.1.29",
            "https://mcp.example.com/mcp",
            "/Users/ada/Documents/notes",
            "--repository=.",
        ] {
            assert!(!has_secret(text), "{text}");
        }
    }
}
