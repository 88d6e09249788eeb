//! References of schemas: those without a target, and those that would have to be fetched.

use std::collections::BTreeSet;

use serde_json::Value;

use super::tool_judge::ToolJudge;
use super::walk::each_schema;
use crate::check::finding::one_line;
use crate::check::rules::tools as rules;

/// Judges the references of a schema. Returns whether all of them have a target.
pub(super) fn judge(judge: &ToolJudge<'_>, schema: &Value, pointer: &str) -> bool {
    let (mut ids, mut anchors, mut references) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    each_schema(schema, pointer, &mut |place| {
        let text = |keyword: &str| place.schema.get(keyword).and_then(Value::as_str).map(str::to_owned);
        ids.extend(text("$id").or_else(|| text("id")));
        anchors.extend(text("$anchor").into_iter().chain(text("$dynamicAnchor")));
        for keyword in ["$ref", "$dynamicRef"] {
            references.extend(text(keyword).map(|reference| (reference, format!("{}/{keyword}", place.pointer))));
        }
    });
    // References are relative to the `$id` around them; this check knows none of these contexts.
    let has_ids = ids.iter().any(|id| !id.starts_with('#'));
    let mut is_whole = true;
    for (reference, place) in references {
        let (document, fragment) = reference.split_once('#').unwrap_or((&reference, ""));
        let is_known_dialect =
            document.starts_with("http://json-schema.org/") || document.starts_with("https://json-schema.org/");
        if document.is_empty() {
            let decoded = percent_decoded(fragment);
            let has_target = match decoded.strip_prefix('/') {
                Some(_) => schema.pointer(&decoded).is_some(),
                None => decoded.is_empty() || anchors.contains(&decoded) || ids.contains(&format!("#{decoded}")),
            };
            if !has_target && !has_ids {
                is_whole = false;
                judge.report(
                    &rules::SCHEMA_REF_UNRESOLVED,
                    place,
                    format!("`{}` has no target in the schema", one_line(&reference, 120)),
                );
            }
        } else if !is_known_dialect && !ids.iter().any(|id| id.ends_with(document.trim_start_matches("./"))) {
            is_whole = false;
            judge.report(
                &rules::SCHEMA_REF_REMOTE,
                place,
                format!("`{}` is in another document", one_line(&reference, 120)),
            );
        }
    }
    is_whole
}

fn percent_decoded(text: &str) -> String {
    text.replace("%24", "$").replace("%25", "%").replace("%20", " ").replace("%7E", "~").replace("%2F", "/")
}
