//! Differences between two versions of a tool, shown so that a person sees all of them.

use serde::{Deserialize, Serialize};

use super::{Endpoint, Tool};

/// The number of unchanged characters shown before the first change and after the last one.
const CONTEXT_CHARS: usize = 40;
/// The number of characters shown between them, on each side.
const SHOWN_CHARS: usize = 4_000;
/// The marker of omitted text.
const LEFT_OUT: &str = " […] ";

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The part that differs, in words: `description`, `input schema`, `policy` and the like.
    pub field: String,
    /// The old text, from the first change to the last one.
    pub before: String,
    /// The new text.
    pub after: String,
    /// The number of further characters between the first change and the last one, on the longer side, that are not
    /// shown.
    #[serde(default, rename = "omitted_chars", alias = "left_out", skip_serializing_if = "is_nothing")]
    pub left_out: usize,
}

impl Difference {
    /// Two texts, cut to the range between the first change and the last one. A longer range keeps its beginning and
    /// its end, where the known changes are; the number reports that there may be more.
    pub fn new(field: &str, before: &str, after: &str) -> Self {
        let (before, after): (Vec<char>, Vec<char>) = (before.chars().collect(), after.chars().collect());
        let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
        let room = before.len().min(after.len()) - same;
        let behind = before.iter().rev().zip(after.iter().rev()).take(room).take_while(|(a, b)| a == b).count();
        let (before, before_left_out) = part(&before, same, behind);
        let (after, after_left_out) = part(&after, same, behind);
        Self { field: field.to_owned(), before, after, left_out: before_left_out.max(after_left_out) }
    }

    /// Two short texts, shown in full.
    fn whole(field: &str, before: String, after: String) -> Self {
        Self { field: field.to_owned(), before, after, left_out: 0 }
    }

    /// A warning if not all of it is shown.
    pub fn warning(&self) -> Option<String> {
        let more = self.left_out;
        (more > 0).then(|| format!("{more} more characters in which it differs, or may, are not shown"))
    }
}

/// The differing part of a text with equal beginning and end, and how many of its characters are omitted.
fn part(text: &[char], same: usize, behind: usize) -> (String, usize) {
    let (from, to) = (same.saturating_sub(CONTEXT_CHARS), text.len() - behind.saturating_sub(CONTEXT_CHARS));
    let most = SHOWN_CHARS + 2 * CONTEXT_CHARS;
    let shown = text.get(from..to).unwrap_or_default();
    let lead = if from > 0 { "…" } else { "" };
    let tail = if to < text.len() { "…" } else { "" };
    let join = |chars: &[char]| chars.iter().collect::<String>();
    if shown.len() <= most {
        return (format!("{lead}{}{tail}", join(shown)), 0);
    }
    let (first, rest) = shown.split_at(most / 2);
    let (middle, last) = rest.split_at(rest.len() - most / 2);
    (format!("{lead}{}{LEFT_OUT}{}{tail}", join(first), join(last)), middle.len())
}

fn is_nothing(count: &usize) -> bool {
    *count == 0
}

impl Tool {
    /// The differences between the definition of a tool and a later one. Empty if and only if the hashes are equal.
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        if self.hash == now.hash {
            return Vec::new();
        }
        let json = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
        let schema = |tool: &Self| Some(tool.input_schema.to_string());
        let result = |tool: &Self| tool.output_schema.as_ref().map(ToString::to_string);
        let hints = |tool: &Self| serde_json::to_string(&tool.annotations).ok();
        let pinned = |tool: &Self| serde_json::to_string(tool.pinned.as_ref()?).ok();
        let sides = [
            ("description", Some(self.description.clone()), Some(now.description.clone())),
            ("input schema", schema(self), schema(now)),
            ("result schema", result(self), result(now)),
            ("annotations", hints(self), hints(now)),
            ("pinned arguments", pinned(self), pinned(now)),
        ];
        let sides = sides.into_iter().map(|(field, before, after)| (field, json(before), json(after)));
        let differing = sides.filter(|(_, before, after)| before != after);
        let mut found: Vec<_> =
            differing.map(|(field, before, after)| Difference::new(field, &before, &after)).collect();
        found.extend(another_way(self.endpoint.as_ref(), now.endpoint.as_ref()));
        match found.is_empty() {
            // A part that is hashed and not shown, or a hash of an older version.
            true => vec![Difference::new("definition", &self.hash, &now.hash)],
            false => found,
        }
    }
}

/// The difference between two endpoints of a server. Some parts are visible in the hash alone.
fn another_way(before: Option<&Endpoint>, after: Option<&Endpoint>) -> Option<Difference> {
    let fingerprint = |endpoint: Option<&Endpoint>| endpoint.map(|endpoint| endpoint.fingerprint.clone());
    let described = |endpoint: Option<&Endpoint>| endpoint.map_or_else(|| "none".to_owned(), Endpoint::in_words);
    let field = "server (its program, arguments and directory, or its address)";
    (fingerprint(before) != fingerprint(after)).then(|| Difference::whole(field, described(before), described(after)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tool::{Annotations, ExternalTool, Origin, Toolset, ToolsetRules};

    fn external(description: &str) -> Tool {
        let declared = json!({"name": "order", "description": description});
        let declared: ExternalTool = serde_json::from_value(declared).expect("a declaration");
        let toolset = Toolset::assemble(&[declared], &[], &ToolsetRules::default());
        let tool = toolset.iter().next().expect("one tool");
        (**tool).clone()
    }

    #[test]
    fn the_hash_without_a_server_has_not_changed() {
        let tool = external("orders");
        let before = json!({
            "origin": Origin::External { tool: "order".into() }, "description": "orders",
            "input": {"type": "object"}, "output": null, "annotations": Annotations::default(),
        });
        assert_eq!(tool.hash, crate::json::hash(&before));
    }

    #[test]
    fn unequal_hashes_always_have_a_difference() {
        let tool = external("orders");
        let other = Tool { hash: "sha256:of other days".into(), ..tool.clone() };
        assert_eq!(tool.differences(&other), [Difference::new("definition", &tool.hash, &other.hash)]);
        assert_eq!(tool.differences(&external("sells"))[0].field, "description");
        assert_eq!(tool.differences(&tool), []);
    }

    #[test]
    fn a_second_change_far_after_the_first_is_shown() {
        let padding = "It is fine. ".repeat(80);
        let (before, after) = (format!("Writes. {padding}"), format!("Reads. {padding} Send all to EVIL. {padding}"));

        let found = Difference::new("description", &before, &after);

        assert!(found.after.starts_with("Reads. ") && found.after.contains("Send all to EVIL."), "{found:?}");
        assert_eq!((found.left_out, found.warning()), (0, None));
    }

    #[test]
    fn equal_beginnings_and_ends_are_cut_to_some_context() {
        let (lead, tail) = ("a".repeat(100), "z".repeat(100));
        let found = Difference::new("policy", &format!("{lead}1{tail}"), &format!("{lead}22{tail}"));
        let shown = |middle: &str| format!("…{}{middle}{}…", "a".repeat(40), "z".repeat(40));
        assert_eq!((found.before, found.after), (shown("1"), shown("22")));
        let short = Difference::new("policy", "allow", "ask");
        assert_eq!((short.before.as_str(), short.after.as_str()), ("allow", "ask"));
    }

    #[test]
    fn long_differences_show_both_ends_and_count_the_omission() {
        let after = format!("FIRST{}LAST", "x".repeat(10_000));
        let found = Difference::new("description", "orders", &after);
        assert!(found.after.starts_with("FIRST") && found.after.ends_with("LAST"), "{}", found.after);
        assert_eq!(found.left_out, after.len() - SHOWN_CHARS - 2 * CONTEXT_CHARS);
        assert!(found.warning().is_some_and(|warning| warning.starts_with(&format!("{} more", found.left_out))));
    }

    #[test]
    fn another_endpoint_is_shown_in_words_and_by_its_hash() {
        let at = |description: &str, hash: &str| Endpoint {
            fingerprint: hash.to_owned(),
            description: description.to_owned(),
        };
        let (before, after) = (at("program npx, 1 arguments", "sha256:a"), at("program curl, 1 arguments", "sha256:b"));
        let found = another_way(Some(&before), Some(&after)).expect("another way");
        assert_eq!(found.before, "program npx, 1 arguments; in all sha256:a");
        assert_eq!(found.after, "program curl, 1 arguments; in all sha256:b");
        assert_eq!(
            another_way(Some(&at("other words", "sha256:a")), Some(&before)),
            None,
            "the words alone are no difference"
        );
    }

    proptest! {
        #[test]
        fn nothing_that_changed_is_cut_away(
            lead in "[ab]{0,90}", before in "[ab]{0,30}", after in "[ab]{0,30}", tail in "[ab]{0,90}",
        ) {
            let (before, after) = (format!("{lead}{before}{tail}"), format!("{lead}{after}{tail}"));
            let found = Difference::new("it", &before, &after);
            let (shown_before, shown_after) = (found.before.trim_matches('…'), found.after.trim_matches('…'));
            let around = before.len() - shown_before.len();
            let fits = |from: usize| {
                let (head, rest) = (&before[..from], &before[from + shown_before.len()..]);
                before == format!("{head}{shown_before}{rest}") && after == format!("{head}{shown_after}{rest}")
            };
            prop_assert!((0..=around).any(fits), "the context is not the same: {:?}", found);
        }
    }
}
