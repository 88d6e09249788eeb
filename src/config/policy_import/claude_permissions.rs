//! `permissions` in the settings of Claude Code: lists of rules that allow, ask and deny, and the mode in which no rule
//! matches. As in a policy, a rule that denies is stronger than one that asks, and that than one that allows.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_core::policy::{Condition, Verdict};

use super::claude_rule::{BroaderVerdict, RuleContext, Translation};
use super::command_criteria::command_pattern;
use super::imported_rule::{Criteria, ImportEffect, ImportedRule, PolicyImport};
use super::tool_mapping::{ToolMapping, shells};
use crate::error::{ConfigError, Source};
use crate::yaml;

#[derive(Deserialize)]
struct WrittenSettings {
    #[serde(default)]
    permissions: WrittenPermissions,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WrittenPermissions {
    allow: Vec<Value>,
    ask: Vec<Value>,
    deny: Vec<Value>,
    default_mode: Option<String>,
    additional_directories: Vec<Value>,
}

/// Adds the rules of a file.
pub(super) fn import(
    file: &Source,
    tools: &[ToolMapping],
    root: &Path,
    home: Option<&Path>,
    import: &mut PolicyImport,
) -> Result<(), ConfigError> {
    let place = std::path::absolute(file.name()).unwrap_or_default();
    let is_of_project = place.parent() == Some(root.join(".claude").as_path());
    let WrittenSettings { permissions } = yaml::parse_foreign(file)?;
    let context = RuleContext { tools, root, home, is_of_project };
    let lists =
        [(Verdict::Deny, &permissions.deny), (Verdict::Ask, &permissions.ask), (Verdict::Allow, &permissions.allow)];
    for (verdict, rules) in lists {
        for rule in rules {
            match rule.as_str().map(str::trim).filter(|rule| !rule.is_empty()) {
                Some(rule) => add(file, rule, verdict, &context, import),
                None => import.leave_out(file, &rule.to_string(), "it is not the text of a rule"),
            }
        }
    }
    if let Some(mode) = permissions.default_mode.as_deref() {
        default_mode(file, mode, import);
    }
    for folder in &permissions.additional_directories {
        let reason = "a policy has no folders of its own; allow tools below it with `args.path.within(…)`";
        import.leave_out(file, &format!("additionalDirectories {folder}"), reason);
    }
    Ok(())
}

/// The verdict where no rule matches.
fn default_mode(file: &Source, mode: &str, import: &mut PolicyImport) {
    let reason = match mode {
        "default" | "manual" => return,
        "dontAsk" => {
            import.default = Verdict::Deny;
            return;
        }
        "acceptEdits" => "edits require approval; the preset `accept-edits` allows them at trusted servers",
        "plan" => "calls require approval; the preset `plan` allows only reading",
        "bypassPermissions" => "calls require approval; the preset `bypass` allows every call",
        _ => "calls require approval",
    };
    import.leave_out(file, &format!("defaultMode {mode}"), reason);
}

/// Programs that Claude Code may compare with rules about paths: the documentation names some, and says that there are more.
/// The list therefore has the common programs whose arguments are paths.
#[rustfmt::skip]
const FILE_COMMANDS: [&str; 106] = [
    "awk", "b2sum", "base64", "bat", "batcat", "bzcat", "bzip2", "cat", "cd", "chgrp", "chmod", "chown", "cksum",
    "cmp", "column", "comm", "cp", "csplit", "cut", "dd", "diff", "du", "ed", "egrep", "ex", "expand", "fd", "fgrep",
    "file", "find", "fmt", "fold", "gawk", "grep", "gunzip", "gzip", "head", "hexdump", "iconv", "install", "join",
    "jq", "less", "link", "ln", "ls", "mawk", "md5sum", "mkdir", "mkfifo", "more", "mv", "nano", "nl", "od", "paste",
    "patch", "pr", "pushd", "readlink", "realpath", "rev", "rg", "rm", "rmdir", "rsync", "scp", "sed", "sha1sum",
    "sha224sum", "sha256sum", "sha384sum", "sha512sum", "shred", "shuf", "sort", "source", "split", "stat", "strings",
    "sum", "tac", "tail", "tar", "tee", "touch", "tr", "tree", "truncate", "uniq", "unlink", "unzip", "vi", "view",
    "vim", "wc", "xxd", "xz", "xzcat", "yq", "zcat", "zgrep", "zip", "zless", "zstd", "zstdcat",
];

/// Asks about the commands that read and write files, if rules about paths deny or ask: Claude Code compares these rules with
/// the paths in such commands.
pub(super) fn guard_file_commands(tools: &[ToolMapping], import: &mut PolicyImport) {
    let targets = shells(tools, Verdict::Ask);
    let is_of_shell = |matches: &Map<String, Value>| {
        matches.contains_key("command") || targets.iter().any(|(shell, _)| shell == matches)
    };
    let allows_commands = |rule: &ImportedRule| rule.verdict == Verdict::Allow && is_of_shell(&rule.criteria.matches);
    if !import.restricts_paths || !import.rules.iter().any(allows_commands) {
        return;
    }
    let reason = "Imported from Claude Code: rules about paths also hold for commands that read or write files";
    for (mut matches, tool) in targets {
        let argument = tool.and_then(|tool| tool.argument.as_deref());
        matches.insert("command".to_owned(), command_pattern(json!([&FILE_COMMANDS[..]]), argument, false));
        import.add(ImportedRule {
            verdict: Verdict::Ask,
            criteria: Criteria { matches, when: None },
            reason: reason.to_owned(),
            source: "file commands".to_owned(),
            matching: Vec::new(),
            not_matching: Vec::new(),
        });
    }
    let rules = "Read(…) and Edit(…) in `deny` and `ask`";
    let reason = "they also hold for the paths in commands such as `cat`, so that these commands require approval";
    import.report("all files", rules, reason.to_owned(), ImportEffect::Asks);
}

fn add(file: &Source, rule: &str, verdict: Verdict, context: &RuleContext<'_>, import: &mut PolicyImport) {
    let source = format!("{} {rule}", verdict.as_str());
    import.restricts_paths |= verdict != Verdict::Allow && (rule.starts_with("Read(") || rule.starts_with("Edit("));
    let mut push = |verdict: Verdict, criteria: Criteria| {
        let reason = format!("Imported from Claude Code: {source}");
        let source = rule.to_owned();
        let (matching, not_matching) = (Vec::new(), Vec::new());
        import.add(ImportedRule { verdict, criteria, reason, source, matching, not_matching });
    };
    let mut reports = Vec::new();
    for translation in context.translate(rule, verdict).into_iter().map(usable) {
        match translation {
            Translation::Exact(criteria) => push(verdict, criteria),
            Translation::Broader { reason, .. } if verdict == Verdict::Allow => {
                reports.push((reason, ImportEffect::LeftOut));
            }
            Translation::Broader { criteria, verdict: BroaderVerdict::Same, reason } => {
                push(verdict, criteria);
                reports.push((reason, ImportEffect::MatchesMore));
            }
            Translation::Broader { criteria, verdict: BroaderVerdict::Ask, reason } => {
                push(Verdict::Ask, criteria);
                reports.push((reason, ImportEffect::Asks));
            }
            Translation::Nothing(reason) => reports.push((reason, ImportEffect::LeftOut)),
        }
    }
    for (reason, effect) in reports {
        import.report(file.name(), &source, reason, effect);
    }
}

/// The translation with a condition that a policy accepts: a path of the source may be one that no condition compares.
fn usable(translation: Translation) -> Translation {
    let (Translation::Exact(criteria) | Translation::Broader { criteria, .. }) = &translation else {
        return translation;
    };
    let error = criteria.when.as_deref().and_then(|when| Condition::parse(when).err());
    match error {
        None => translation,
        Some(error) => Translation::Broader {
            criteria: Criteria { when: None, ..criteria.clone() },
            verdict: BroaderVerdict::Ask,
            reason: error.to_string(),
        },
    }
}

impl PolicyImport {
    fn leave_out(&mut self, file: &Source, rule: &str, reason: &str) {
        self.report(file.name(), rule, reason.to_owned(), ImportEffect::LeftOut);
    }
}
