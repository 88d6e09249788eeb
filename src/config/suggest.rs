//! "Did you mean …?"

/// A sentence that helps with a word nobody knows: the nearest known one, or else all of them.
pub(super) fn remedy<'a>(word: &str, known: impl IntoIterator<Item = &'a str>, kind: &str) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let nearest = known.iter().map(|candidate| (distance(word, candidate), *candidate)).min();
    match nearest {
        Some((edits, candidate)) if edits <= word.chars().count().max(3) / 3 => format!("did you mean `{candidate}`?"),
        Some(_) => format!("known {kind}: {}", quoted(&known)),
        None => format!("there are no {kind} yet"),
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Insertions, deletions and replacements from one word to the other, ignoring case and the difference of `-` and `_`.
fn distance(from: &str, to: &str) -> usize {
    let plain = |text: &str| text.to_lowercase().replace('-', "_").chars().collect::<Vec<_>>();
    let (from, to) = (plain(from), plain(to));
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, have) in from.iter().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        let mut next = vec![left];
        for (want, above) in to.iter().zip(row.iter().skip(1)) {
            let replaced = diagonal + usize::from(have != want);
            left = replaced.min(left + 1).min(above + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (from, to, edits) in
            [("", "abc", 3), ("kitten", "sitting", 3), ("on-deny", "on_deny", 0), ("modle", "model", 2)]
        {
            assert_eq!(distance(from, to), edits, "{from} {to}");
        }
    }

    #[test]
    fn a_near_word_is_proposed_and_far_ones_are_listed() {
        assert_eq!(remedy("serves", ["servers", "store"], "keys"), "did you mean `servers`?");
        assert_eq!(remedy("xyz", ["servers", "store"], "keys"), "known keys: `servers`, `store`");
        assert_eq!(remedy("xyz", [], "agents"), "there are no agents yet");
    }
}
