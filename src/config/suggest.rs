//! "Did you mean …?" suggestions.

/// A remedy for an unknown word: the nearest known word, or else all of them.
pub(super) fn remedy<'a>(word: &str, known: impl IntoIterator<Item = &'a str>, kind: &str) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let nearest = known.iter().map(|candidate| (distance(word, candidate), *candidate)).min();
    match nearest {
        Some((edits, candidate)) if edits <= word.chars().count().max(3) / 3 => format!("did you mean `{candidate}`?"),
        Some(_) => format!("expected one of: {}", quoted(&known)),
        None => format!("there are no {kind} yet"),
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Edit distance of two words: insertions, deletions, replacements and swaps of neighbours, ignoring case and the
/// difference between `-` and `_`.
fn distance(from: &str, to: &str) -> usize {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    strsim::osa_distance(&plain(from), &plain(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (from, to, edits) in [
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("on-deny", "on_deny", 0),
            ("modle", "model", 1),
            ("gti", "git", 1),
        ] {
            assert_eq!(distance(from, to), edits, "{from} {to}");
        }
    }

    #[test]
    fn a_near_word_is_proposed_and_far_ones_are_listed() {
        assert_eq!(remedy("serves", ["servers", "store"], "keys"), "did you mean `servers`?");
        assert_eq!(remedy("xyz", ["servers", "store"], "keys"), "expected one of: `servers`, `store`");
        assert_eq!(remedy("xyz", [], "agents"), "there are no agents yet");
    }
}
