//! Translation of one permission rule of Claude Code: `Bash(git diff:*)`, `Read(./src/**)`, `WebFetch(domain:…)`,
//! `mcp__server__tool`.

use std::path::Path;

use serde_json::{Map, Value, json};
use toolgate_core::pattern::Pattern;
use toolgate_core::policy::{Condition, Verdict};

use super::command_criteria::{self, CommandCriteria, command_pattern};
use super::imported_rule::Criteria;
use super::path_criteria::{self, PathCriteria};
use super::tool_mapping::{ToolMapping, any_tool};

/// The built-in tools that the rules of `Edit` concern.
const EDITORS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];
/// The built-in tools that the rules of `Read` concern.
const READERS: [&str; 5] = ["Read", "Glob", "Grep", "LS", "NotebookRead"];
/// Those of them that read the files below their path. Claude Code leaves files that may not be read out of their results.
const SEARCHERS: [&str; 3] = ["Glob", "Grep", "LS"];

/// The translation of a rule for one tool.
#[derive(Debug, PartialEq)]
pub(super) enum Translation {
    Exact(Criteria),
    /// These criteria match more calls than the rule. A rule that allows may not have them.
    Broader {
        criteria: Criteria,
        verdict: BroaderVerdict,
        reason: String,
    },
    /// There is no tool that the rule could be about.
    Nothing(String),
}

/// The verdict of a rule that matches more than its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BroaderVerdict {
    /// The verdict of the source.
    Same,
    Ask,
}

/// What the translation of a rule depends on.
pub(super) struct RuleContext<'a> {
    pub(super) tools: &'a [ToolMapping],
    pub(super) root: &'a Path,
    pub(super) home: Option<&'a Path>,
    /// Whether `/` in a rule is the project: it is relative to the settings file.
    pub(super) is_of_project: bool,
}

impl RuleContext<'_> {
    /// The translations of a rule, one for each tool that it concerns.
    pub(super) fn translate(&self, rule: &str, verdict: Verdict) -> Vec<Translation> {
        let (tool, specifier) = match rule.split_once('(') {
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(specifier) => (tool.trim(), Some(specifier)),
                None => return vec![Translation::Nothing("it has no closing parenthesis".to_owned())],
            },
            None => (rule, None),
        };
        if verdict == Verdict::Allow && specifier.is_some_and(|specifier| specifier.trim().is_empty()) {
            return vec![Translation::Nothing("nothing is in its parentheses".to_owned())];
        }
        if let Some(name) = tool.strip_prefix("mcp__") {
            return mcp(name, specifier, verdict);
        }
        if tool == "Bash" && !self.tools.iter().any(ToolMapping::is_shell) {
            return vec![any_shell(specifier, verdict)];
        }
        let targets = self.targets(tool, verdict);
        if targets.is_empty() {
            let reason = format!("no tool stands for `{tool}`; name it with `--tool {tool}=SERVER/TOOL`");
            return vec![Translation::Nothing(reason)];
        }
        let translated = targets.into_iter().flat_map(|target| {
            let search = search(target, specifier, verdict);
            std::iter::once(self.for_tool(tool, target, specifier, verdict)).chain(search)
        });
        translated.collect()
    }

    /// The tools that a rule about a built-in tool concerns. A rule that allows concerns the reading tools by their own names
    /// only, because their arguments differ.
    fn targets(&self, tool: &str, verdict: Verdict) -> Vec<&ToolMapping> {
        let group: &[&str] = match tool {
            "Edit" => &EDITORS,
            "Read" if verdict != Verdict::Allow => &READERS,
            _ => &[],
        };
        let concerns = |mapping: &&ToolMapping| match tool {
            "Bash" => mapping.is_shell(),
            _ => mapping.builtin == tool || group.contains(&mapping.builtin.as_str()),
        };
        self.tools.iter().filter(concerns).collect()
    }

    fn for_tool(&self, tool: &str, target: &ToolMapping, specifier: Option<&str>, verdict: Verdict) -> Translation {
        let whole = || Criteria { matches: target.criteria(), when: None };
        let Some(specifier) = specifier.filter(|specifier| !matches!(specifier.trim(), "" | "*")) else {
            return Translation::Exact(whole());
        };
        let with = |when: String| Criteria { when: Some(when), ..whole() };
        let broader = |reason: String| Translation::Broader { criteria: whole(), verdict: BroaderVerdict::Ask, reason };
        match tool {
            "Bash" => command(specifier, verdict, target.criteria(), target.argument.as_deref(), &whole),
            _ if EDITORS.contains(&tool) || READERS.contains(&tool) => {
                if verdict == Verdict::Allow && !matches!(tool, "Edit" | "Read") {
                    return broader("Claude Code compares paths with rules of `Edit` and `Read` only".to_owned());
                }
                let argument = member(target.argument.as_deref().unwrap_or("path"));
                let is_relative_to_file = specifier.trim().starts_with('/') && !specifier.trim().starts_with("//");
                if is_relative_to_file && !self.is_of_project {
                    return broader(
                        "`/` is relative to the settings file, which is not the one of `--root`".to_owned(),
                    );
                }
                match path_criteria::read(specifier, self.root, self.home, verdict) {
                    Ok(PathCriteria::Any) => Translation::Exact(whole()),
                    Ok(PathCriteria::Within(folder)) => {
                        let relative = match verdict {
                            Verdict::Allow => String::new(),
                            Verdict::Ask | Verdict::Deny => self.or_relative(&argument, &folder, None),
                        };
                        Translation::Exact(with(format!("{argument}.within({}){relative}", json!(folder))))
                    }
                    Ok(PathCriteria::Equals(path)) => Translation::Exact(with(match verdict {
                        // `within` follows links, and the comparison excludes what is in the folder.
                        Verdict::Allow => {
                            format!("{argument} == {path} && {argument}.within({path})", path = json!(path))
                        }
                        Verdict::Ask | Verdict::Deny => {
                            let relative = self.or_relative(&argument, &path, None);
                            format!("{argument}.within({}){relative}", json!(path))
                        }
                    })),
                    Ok(PathCriteria::Files { .. }) if verdict == Verdict::Allow => broader(
                        "a rule that allows is about folders or single files, and no patterns of names".to_owned(),
                    ),
                    // The file by its name, wherever it leads, and each link to it.
                    Ok(PathCriteria::Files { folder, pattern }) => {
                        let of = format!("({}, {})", json!(folder), json!(pattern));
                        let relative = self.or_relative(&argument, &folder, Some(&pattern));
                        let when = format!("{argument}.within{of} || {argument}.lexicallyWithin{of}{relative}");
                        Translation::Exact(with(when))
                    }
                    Ok(PathCriteria::Inexpressible(folder)) => Translation::Broader {
                        criteria: with(format!("{argument}.within({})", json!(folder))),
                        verdict: BroaderVerdict::Ask,
                        reason: format!(
                            "a condition has no patterns such as `[a-z]` or `!x`; all files in {folder} require approval, whatever \
                             other rules allow"
                        ),
                    },
                    Err(reason) => broader(reason),
                }
            }
            "WebFetch" => match specifier.trim().strip_prefix("domain:").filter(|host| is_host(host)) {
                Some(host) if verdict == Verdict::Allow => {
                    let argument = member(target.argument.as_deref().unwrap_or("url"));
                    let pattern = format!("^https://{}/", host.replace('.', "[.]"));
                    Translation::Exact(with(format!("{argument}.matches({})", json!(pattern))))
                }
                Some(_) => broader("an address can be written in other ways, which evade a denial".to_owned()),
                None => broader("only `domain:` with a host is translated".to_owned()),
            },
            _ => broader(format!("the parentheses of `{tool}` have no meaning that a policy could express")),
        }
    }

    /// The same condition about the text of a relative path, which is in the folder of the project. Empty for files outside
    /// of it, and for names that no relative path may have.
    fn or_relative(&self, argument: &str, path: &str, pattern: Option<&str>) -> String {
        // A name alone is one at any depth, also below a folder of the path.
        let is_anywhere = pattern.is_none_or(|pattern| !pattern.trim_start_matches("**/").contains('/'));
        let folder = match Path::new(path).strip_prefix(self.root) {
            Ok(inner) => inner.to_str().map(|inner| if inner.is_empty() { "." } else { inner }),
            Err(_) => (self.root.starts_with(path) && is_anywhere).then_some("."),
        };
        let Some(folder) = folder else { return String::new() };
        let of = [Some(folder), pattern].into_iter().flatten().map(|text| json!(text).to_string()).collect::<Vec<_>>();
        let relative = format!("(!{argument}.startsWith(\"/\") && {argument}.lexicallyWithin({}))", of.join(", "));
        if Condition::parse(&relative).is_ok() { format!(" || {relative}") } else { String::new() }
    }
}

/// A question about each call of a tool that searches folders, for a rule that asks or denies some files.
fn search(target: &ToolMapping, specifier: Option<&str>, verdict: Verdict) -> Option<Translation> {
    let is_about_files = specifier.is_some_and(|specifier| !matches!(specifier.trim(), "" | "*"));
    let is_searcher = SEARCHERS.contains(&target.builtin.as_str());
    (verdict != Verdict::Allow && is_about_files && is_searcher).then(|| Translation::Broader {
        criteria: Criteria { matches: target.criteria(), when: None },
        verdict: BroaderVerdict::Ask,
        reason: format!("`{}` also reads the files below its path, so that its calls require approval", target.tool),
    })
}

/// A rule about commands of which no tool is named: any tool of a server whose calls have a command.
fn any_shell(specifier: Option<&str>, verdict: Verdict) -> Translation {
    let every_command = || Criteria {
        matches: any_tool(Verdict::Ask),
        when: Some("has(args.command) || has(args.cmd) || has(args.command_line)".to_owned()),
    };
    match specifier.map(command_criteria::read).unwrap_or(CommandCriteria::Any) {
        CommandCriteria::Any if verdict == Verdict::Allow => {
            let reason = "no tool stands for `Bash`; name it with `--tool Bash=SERVER/TOOL`";
            Translation::Nothing(reason.to_owned())
        }
        CommandCriteria::Any => Translation::Exact(every_command()),
        CommandCriteria::StartsWith(_) | CommandCriteria::Equals(_) | CommandCriteria::Inexpressible(_) => {
            command(specifier.unwrap_or_default(), verdict, any_tool(verdict), None, &every_command)
        }
    }
}

fn command(
    specifier: &str,
    verdict: Verdict,
    matches: Map<String, Value>,
    argument: Option<&str>,
    whole: &dyn Fn() -> Criteria,
) -> Translation {
    let with = |words: &[String], exact: bool| {
        let mut matches = matches.clone();
        matches.insert("command".to_owned(), command_pattern(json!(words), argument, exact));
        Criteria { matches, when: None }
    };
    match command_criteria::read(specifier) {
        CommandCriteria::Any => Translation::Exact(whole()),
        CommandCriteria::StartsWith(words) => Translation::Exact(with(&words, false)),
        CommandCriteria::Equals(words) if verdict == Verdict::Allow => Translation::Exact(with(&words, true)),
        CommandCriteria::Equals(words) => Translation::Broader {
            criteria: with(&words, false),
            verdict: BroaderVerdict::Same,
            reason: "the rule also matches the command with further words".to_owned(),
        },
        CommandCriteria::Inexpressible(words) => Translation::Broader {
            criteria: if words.is_empty() { whole() } else { with(&words, false) },
            verdict: BroaderVerdict::Ask,
            reason: "the first words of a command are compared, and no patterns of its text".to_owned(),
        },
    }
}

/// A rule about MCP tools: `server`, `server__tool` or `server__get_*`. The separator may be part of either name, so a rule
/// that asks or denies is about every split.
fn mcp(name: &str, specifier: Option<&str>, verdict: Verdict) -> Vec<Translation> {
    let of = |server: &str, tool: Option<&str>| {
        let tool = tool.filter(|tool| !matches!(*tool, "" | "*"));
        let names = [("server", Some(server)), ("tool_name", tool)];
        let matches = names.into_iter().filter_map(|(key, name)| Some((key.to_owned(), json!(with_wildcards(name?)))));
        Criteria { matches: matches.collect(), when: None }
    };
    let split = |at: usize| Some((name.get(..at)?, name.get(at..)?.strip_prefix("__")?));
    // Separators may overlap: `a___b` is the tool `_b` of `a`, or the tool `b` of `a_`.
    let splits: Vec<(&str, &str)> = (0..name.len()).filter_map(split).collect();
    let is_server_open = splits.first().map_or(name, |(server, _)| server).contains('*');
    if verdict == Verdict::Allow && (splits.len() > 1 || is_server_open) {
        let reason = "it is not clear which server is meant; allow its tools by `server` and `tool_name`";
        return vec![Translation::Nothing(reason.to_owned())];
    }
    let mut criteria: Vec<Criteria> = splits.into_iter().map(|(server, tool)| of(server, Some(tool))).collect();
    if criteria.is_empty() {
        criteria.push(of(name, None));
    }
    let translated = criteria.into_iter().map(|criteria| match specifier {
        None => Translation::Exact(criteria),
        Some(_) => Translation::Broader {
            criteria,
            verdict: BroaderVerdict::Ask,
            reason: "the parentheses of an MCP tool have no meaning".to_owned(),
        },
    });
    translated.collect()
}

/// A name as a pattern, in which `*` stays a wildcard.
fn with_wildcards(name: &str) -> String {
    name.split('*').map(Pattern::exactly).collect::<Vec<_>>().join("*")
}

/// An argument in a condition.
fn member(name: &str) -> String {
    let is_plain =
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_plain { format!("args.{name}") } else { format!("args[{}]", json!(name)) }
}

fn is_host(host: &str) -> bool {
    host.contains('.') && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
}
