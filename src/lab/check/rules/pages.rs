//! Pages of the rules: the text of `docs/rules/<id>.md` and of the index `docs/rules.md`, from the rule table.

use std::fmt::Write as _;

use super::rule::{Group, Rule};
use crate::check::revision::Revision;

/// Address of the folder with the pages, for reports that are read outside of the repository.
const PUBLISHED: &str = "https://github.com/toolgate/toolgate/blob/main/docs/rules";

/// Address of the page of a rule.
pub fn address(rule: &Rule) -> String {
    format!("{PUBLISHED}/{}.md", rule.id)
}

/// Text of the page of a rule.
pub fn page(rule: &Rule) -> String {
    let Rule { id, group, severity, title, why, fix, .. } = rule;
    let mut page = format!(
        "# `{id}`\n\n{severity} · {}\n\n{title}.\n\n## Why it matters\n\n{why}\n\n## How to fix it\n\n{fix}\n",
        group.title()
    );
    let places: Vec<String> = [Revision::LAST_LEGACY, Revision::V2026July]
        .into_iter()
        .filter_map(|revision| Some(format!("- [{revision}]({})", rule.specification(revision)?)))
        .collect();
    if !places.is_empty() {
        let _ = write!(page, "\n## Specification\n\n{}\n", places.join("\n"));
    }
    let _ = write!(page, "\n[All rules](../rules.md) · `toolgate mcp check --only-rule {id}`\n");
    page
}

/// Text of the index of all rules.
pub fn index(rules: &[&Rule]) -> String {
    let mut page = String::from(
        "# Rules of mcp check\n\nMistakes of MCP servers that [`toolgate mcp check`](mcp-authors.md) names. Ids are stable. \
         `--only-rule` and `--skip` select\nrules, `--severity` sets what fails a build, and `--baseline` accepts what is \
         known.\n",
    );
    for group in Group::ALL {
        let _ = write!(page, "\n## {}\n\n| rule | severity | mistake |\n|---|---|---|\n", group.title());
        for rule in rules.iter().filter(|rule| rule.group == group) {
            let _ = writeln!(page, "| [`{0}`](rules/{0}.md) | {1} | {2} |", rule.id, rule.severity, rule.title);
        }
    }
    page
}
