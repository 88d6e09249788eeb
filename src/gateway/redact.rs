//! Redaction of API keys in text that callers wrote: a key that was sent as an id appears neither in the log nor in a
//! response.

use std::borrow::Cow;

const PREFIX: &str = "tg_";

/// Random characters after which a text counts as a key; a whole key has 43.
const SHORTEST: usize = 20;

/// The text with the random part of every API key replaced.
pub(super) fn without_keys(text: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(PREFIX) {
        let is_of_key = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
        let length = after.find(|character| !is_of_key(character)).unwrap_or(after.len());
        let (random, behind) = after.split_at(length);
        clean.push_str(before);
        clean.push_str(PREFIX);
        clean.push_str(if length >= SHORTEST { "…" } else { random });
        rest = behind;
    }
    if clean.is_empty() {
        return Cow::Borrowed(text);
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_masked_wherever_it_stands_and_nothing_else_is() {
        let key = format!("tg_{}", "aB3-_".repeat(9));
        assert_eq!(without_keys(&format!("there is no run `{key}`")), "there is no run `tg_…`");
        assert_eq!(without_keys(&format!("/v1/runs/{key}/events?x={key}")), "/v1/runs/tg_…/events?x=tg_…");
        for plain in ["", "show a key: `Authorization: Bearer tg_…`", "msg_tg_short", "run_0192", "/v1/tg_/x"] {
            assert_eq!(without_keys(plain), plain);
        }
    }
}
