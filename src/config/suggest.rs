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
    let plain = |text: &str| text.to_lowercase().replace('-', "_").chars().collect::<Vec<_>>();
    let (from, to) = (plain(from), plain(to));
    // Rows of the usual table: the two above, and the current one.
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (i, have) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, want) in to.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX - 1);
            let mut edits = (at(&above, j) + usize::from(have != want)).min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && from.get(i - 1) == Some(want) && to.get(j - 1) == Some(have);
            if swapped {
                edits = edits.min(at(&before, j - 1) + 1);
            }
            row.push(edits);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or_default()
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
