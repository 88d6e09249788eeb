//! Criteria for shell commands: the commands of a Claude Code rule (`git diff:*`, `npm run *`, `npm test`), and the key
//! `command` of a rule of a policy.

use serde_json::{Map, Value, json};
use toolgate_core::policy::plain_words;

/// The commands of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CommandCriteria {
    /// Every command.
    Any,
    /// The commands that begin with these words.
    StartsWith(Vec<String>),
    /// The command with these words alone.
    Equals(Vec<String>),
    /// Commands that no words describe; those that begin with these words are more, all commands if there are no words.
    Inexpressible(Vec<String>),
}

/// Reads the text in the parentheses of a rule.
pub(super) fn read(text: &str) -> CommandCriteria {
    let text = text.trim();
    if matches!(text, "" | "*" | ":*" | "*:*") {
        return CommandCriteria::Any;
    }
    let open = text.strip_suffix(":*").or_else(|| text.strip_suffix(" *"));
    let (begin, is_open) = open.map_or((text, false), |begin| (begin, true));
    match plain_words(begin) {
        // The last word may be the beginning of one, as in `curl http://example.com/:*`.
        Ok(mut words) if text.ends_with(":*") && !begin.ends_with(|c: char| c.is_alphanumeric()) => {
            words.pop();
            CommandCriteria::Inexpressible(words)
        }
        // In the source `*` is a wildcard also in quotes. A policy has no pattern for a word.
        Ok(words) if words.iter().any(|word| word.contains(['*', '?'])) => {
            CommandCriteria::Inexpressible(leading_words(begin))
        }
        Ok(words) if is_open => CommandCriteria::StartsWith(words),
        Ok(words) => CommandCriteria::Equals(words),
        Err(_) => CommandCriteria::Inexpressible(leading_words(begin)),
    }
}

/// The whole words before the first character that a shell or a pattern expands.
fn leading_words(text: &str) -> Vec<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/' | '@' | '%' | '+');
    let end = text.find(|c| !is_plain(c)).unwrap_or(text.len());
    let plain = text.get(..end).unwrap_or_default();
    let whole = plain.rsplit_once(' ').map_or("", |(whole, _)| whole);
    whole.split_whitespace().map(str::to_owned).collect()
}

/// The criterion `command` of a rule.
pub(super) fn command_pattern(words: Value, argument: Option<&str>, exact: bool) -> Value {
    if argument.is_none() && !exact {
        return words;
    }
    let mut pattern = Map::new();
    pattern.extend(argument.map(|argument| ("argument".to_owned(), json!(argument))));
    pattern.insert("words".to_owned(), words);
    pattern.extend(exact.then(|| ("exact".to_owned(), json!(true))));
    pattern.into()
}
