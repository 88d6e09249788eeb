//! Secrets in results: known formats of keys, and values of the variables that the server was started with. Findings name
//! the kind and the place, never the value.

use secrecy::ExposeSecret;
use serde_json::Value;
use toolgate_core::json::pointer_token;

use crate::check::options::CheckTarget;

/// Shorter values of variables occur by chance.
const SHORTEST: usize = 12;

/// Prefixes of well-known keys: the kind, the prefix, and how many characters of a key follow.
const KEYS: [(&str, &str, usize); 11] = [
    ("an AWS access key", "AKIA", 16),
    ("a GitHub token", "ghp_", 36),
    ("a GitHub token", "github_pat_", 40),
    ("an OpenAI key", "sk-proj-", 40),
    ("an Anthropic key", "sk-ant-", 40),
    ("a Slack token", "xoxb-", 20),
    ("a Slack token", "xoxp-", 20),
    ("a Google key", "AIza", 35),
    ("a Stripe key", "sk_live_", 20),
    ("a GitLab token", "glpat-", 20),
    ("a private key", "-----BEGIN ", 0),
];

/// The first secret of a result: what it is, and where.
pub(super) fn find(result: &Value, target: &CheckTarget) -> Option<(String, String)> {
    let variables: Vec<(&str, &str)> = match target {
        CheckTarget::Stdio(settings) => {
            settings.env.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect()
        }
        CheckTarget::Http { headers, .. } => {
            headers.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect()
        }
    };
    search(result, "", &variables)
}

fn search(value: &Value, pointer: &str, variables: &[(&str, &str)]) -> Option<(String, String)> {
    match value {
        Value::String(text) => kind(text, variables).map(|kind| (kind, pointer.to_owned())),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| search(item, &format!("{pointer}/{index}"), variables))
        }
        Value::Object(members) => members
            .iter()
            .find_map(|(key, member)| search(member, &format!("{pointer}/{}", pointer_token(key)), variables)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn kind(text: &str, variables: &[(&str, &str)]) -> Option<String> {
    let is_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    for (kind, prefix, length) in KEYS {
        for (at, _) in text.match_indices(prefix) {
            let rest = text.get(at + prefix.len()..).unwrap_or_default();
            let starts_word = !text.get(..at).unwrap_or_default().ends_with(is_key) || prefix.starts_with('-');
            let is_private_key = prefix.starts_with('-')
                && rest.split("-----").next().is_some_and(|words| words.ends_with("PRIVATE KEY"));
            let is_long = !prefix.starts_with('-') && rest.chars().take_while(|c| is_key(*c)).count() >= length;
            if starts_word && (is_private_key || is_long) {
                return Some(kind.to_owned());
            }
        }
    }
    let known = variables.iter().find(|(name, value)| {
        value.len() >= SHORTEST && toolgate_core::redact::is_telling(name) && text.contains(*value)
    });
    known.map(|(name, _)| format!("the value of `{name}`, with which the check started it"))
}
