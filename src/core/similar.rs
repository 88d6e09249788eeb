//! Similar names: the known names that a misspelt one may mean, for "did you mean …?".

/// The most names to propose.
pub const MOST: usize = 3;

/// The known names that are most like the word, the nearest first: those that it begins or ends, and otherwise those that
/// differ from it in a third of the letters at most. Parts that both have in common, up to a `_`, do not count.
pub fn similar<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let edits = |name: &str| {
        let is_part = word.len() > 3 && (name.starts_with(&format!("{word}_")) || name.ends_with(&format!("_{word}")));
        let edits = distance(word, name);
        let own = word.get(common_start(word, name)..).unwrap_or(word).chars().count();
        (is_part || edits <= own.max(3) / 3).then_some((!is_part, edits))
    };
    let mut near: Vec<_> = known.into_iter().filter_map(|name| Some((edits(name)?, name))).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().map(|(_, name)| name).take(MOST).collect()
}

/// The question whether one of these names was meant; `None` without a name.
pub fn did_you_mean<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    let (last, others) = names.split_last()?;
    let others = if others.is_empty() { String::new() } else { format!("{} or ", others.join(", ")) };
    Some(format!("did you mean {others}{last}?"))
}

/// Edit distance of two words: insertions, deletions, replacements and swaps of neighbours, ignoring case and the
/// difference between `-` and `_`.
pub fn distance(from: &str, to: &str) -> usize {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    strsim::osa_distance(&plain(from), &plain(to))
}

/// The length of the common beginning of two names that ends with `_`.
fn common_start(a: &str, b: &str) -> usize {
    let equal = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).map(|(byte, _)| byte);
    equal.enumerate().filter(|(_, byte)| *byte == b'_').map(|(index, _)| index + 1).last().unwrap_or(0)
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
    fn only_the_parts_in_which_names_differ_are_compared() {
        let tools = ["mcp_git_push", "mcp_git_pull", "mcp_git_log", "mcp_shop_delete_note", "mcp_shop_delete_order"];
        let near = |word: &str| similar(word, tools);
        assert_eq!(near("mcp_git_psuh"), ["mcp_git_push"], "`mcp_git_log` is four edits away");
        assert_eq!(near("mcp_gti_push"), ["mcp_git_push"]);
        assert_eq!(near("mcp_shop_delete"), ["mcp_shop_delete_note", "mcp_shop_delete_order"]);
        assert_eq!(near("delete_note"), ["mcp_shop_delete_note"]);
        assert!(near("mcp_git_checkout").is_empty() && near("").is_empty());
    }

    #[test]
    fn a_question_names_each_proposal() {
        assert_eq!(did_you_mean([]), None);
        assert_eq!(did_you_mean(["a"]).unwrap(), "did you mean `a`?");
        assert_eq!(did_you_mean(["a", "b", "c"]).unwrap(), "did you mean `a`, `b` or `c`?");
    }
}
