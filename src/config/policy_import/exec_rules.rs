//! Rules of codex (execpolicy): `prefix_rule(pattern = ["git", ["diff", "log"]], decision = "allow")`, which compare the
//! words of a command as `command` in a policy does.

use serde_json::{Map, Value, json};
use toolgate_core::policy::{CommandPattern, Example, FollowingWords, Match, Rule, Verdict};

use super::command_criteria::command_pattern;
use super::imported_rule::{Criteria, ImportEffect, ImportedRule, PolicyImport};
use super::starlark::{self, Call, Literal};
use super::tool_mapping::{ToolMapping, shells};
use crate::error::{ConfigError, Fault, Source};
use crate::spanned::Location;

/// A `prefix_rule`.
struct PrefixRule {
    words: Vec<Vec<String>>,
    verdict: Verdict,
    justification: Option<String>,
    matching: Vec<Literal>,
    not_matching: Vec<Literal>,
}

/// Adds the rules of a file.
pub(super) fn import(file: &Source, tools: &[ToolMapping], import: &mut PolicyImport) -> Result<(), ConfigError> {
    let failed = |line: usize, reason: String| {
        let fault = Fault::new(reason)
            .with_remedy("a file with other statements is not translated, because one of them may deny");
        ConfigError::from(fault.at(file, Some(Location { line, column: 1, length: 1 })))
    };
    let calls = starlark::calls(file.text()).map_err(|error| failed(error.line, error.reason))?;
    for call in calls {
        match call.name.as_str() {
            "prefix_rule" => {
                let rule = PrefixRule::read(&call).map_err(|reason| failed(call.line, reason))?;
                rule.add(file, call.line, tools, import);
            }
            "host_executable" => {
                import.note(file, &call, "a rule compares the program as the command names it", ImportEffect::LeftOut);
            }
            "network_rule" => {
                import.note(file, &call, "a policy judges calls; `egress` limits addresses", ImportEffect::LeftOut);
            }
            other => return Err(failed(call.line, format!("`{other}` is not a rule that is known"))),
        }
    }
    Ok(())
}

impl PrefixRule {
    fn read(call: &Call) -> Result<Self, String> {
        let mut rule = Self {
            words: Vec::new(),
            verdict: Verdict::Allow,
            justification: None,
            matching: Vec::new(),
            not_matching: Vec::new(),
        };
        for (name, value) in &call.arguments {
            match (name.as_str(), value) {
                ("pattern", Literal::List(items)) => {
                    rule.words = items
                        .iter()
                        .map(alternatives)
                        .collect::<Option<_>>()
                        .ok_or("`pattern` is a list of words and of lists of words")?
                }
                ("decision", Literal::Text(decision)) => {
                    rule.verdict = match decision.as_str() {
                        "allow" => Verdict::Allow,
                        "prompt" => Verdict::Ask,
                        "forbidden" => Verdict::Deny,
                        other => return Err(format!("`{other}` is none of `allow`, `prompt`, `forbidden`")),
                    };
                }
                ("justification", Literal::Text(text)) => rule.justification = Some(text.clone()),
                ("match", Literal::List(calls)) => rule.matching.clone_from(calls),
                ("not_match", Literal::List(calls)) => rule.not_matching.clone_from(calls),
                (_, Literal::None) => {}
                (other, _) => return Err(format!("`{other}` of `prefix_rule` is not known, or not of this kind")),
            }
        }
        match rule.pattern(None).fault(rule.verdict) {
            Some(fault) => Err(fault),
            None => Ok(rule),
        }
    }

    fn pattern(&self, argument: Option<&str>) -> CommandPattern {
        let argument = argument.map(str::to_owned);
        CommandPattern { argument, words: self.words.clone(), rest: FollowingWords::Any }
    }

    fn add(&self, file: &Source, line: usize, tools: &[ToolMapping], import: &mut PolicyImport) {
        let text = |alternatives: &Vec<String>| alternatives.join("|");
        let source = self.words.iter().map(text).collect::<Vec<_>>().join(" ");
        let reason = self.justification.as_ref().map(|text| text.trim()).filter(|text| !text.is_empty());
        let reason = reason.map_or_else(|| format!("Imported from codex: {source}"), str::to_owned);
        for (mut matches, tool) in shells(tools, self.verdict) {
            let argument = tool.and_then(|tool| tool.argument.as_deref());
            matches.insert("command".to_owned(), command_pattern(json!(self.words), argument, false));
            let proven = |calls: &[Literal], holds: bool| -> Vec<Value> {
                let calls = calls.iter().filter_map(command_of);
                calls.filter(|command| self.proves(command, holds)).map(|command| example(command, tool)).collect()
            };
            let (matching, not_matching) = (proven(&self.matching, true), proven(&self.not_matching, false));
            let given = self.matching.len() + self.not_matching.len();
            let dropped = given - matching.len() - not_matching.len();
            if dropped > 0 {
                let reason = "of its examples hold in codex and not in a policy, which judges the whole command";
                let effect = match self.verdict {
                    Verdict::Allow => ImportEffect::MatchesLess,
                    Verdict::Ask | Verdict::Deny => ImportEffect::MatchesMore,
                };
                let place = format!("{}:{line}", file.name());
                import.report(&place, &format!("prefix_rule {source}"), format!("{dropped} {reason}"), effect);
            }
            let criteria = Criteria { matches, when: None };
            let (verdict, reason, source) = (self.verdict, reason.clone(), source.clone());
            import.add(ImportedRule { verdict, criteria, reason, source, matching, not_matching });
        }
    }

    /// Whether the policy judges an example as codex does.
    fn proves(&self, command: &Value, holds: bool) -> bool {
        let matches = Match { command: Some(self.pattern(None)), trusted: Some(true), ..Match::default() };
        let arguments = [("command".to_owned(), command.clone())].into_iter().collect();
        let example = Example {
            server: Some("shell".to_owned()),
            tool: "run".to_owned(),
            trusted: true,
            arguments: Some(arguments),
            ..Example::default()
        };
        let (good, bad) = if holds { (vec![example], Vec::new()) } else { (Vec::new(), vec![example]) };
        Rule::new("example", self.verdict, "example", matches, good, bad)
            .is_ok_and(|rule| rule.check_examples().is_empty())
    }
}

/// A word of a pattern: one text, or a list of them.
fn alternatives(word: &Literal) -> Option<Vec<String>> {
    match word {
        Literal::Text(text) => Some(vec![text.clone()]),
        Literal::List(_) => texts(word),
        Literal::None => None,
    }
}

fn texts(list: &Literal) -> Option<Vec<String>> {
    let Literal::List(items) = list else { return None };
    let text = |item: &Literal| if let Literal::Text(text) = item { Some(text.clone()) } else { None };
    items.iter().map(text).collect()
}

/// The command of an example: its text, or its words.
fn command_of(example: &Literal) -> Option<Value> {
    match example {
        Literal::Text(text) => Some(json!(text)),
        Literal::List(_) => texts(example).map(|words| json!(words)),
        Literal::None => None,
    }
}

fn example(command: Value, tool: Option<&ToolMapping>) -> Value {
    let argument = tool.and_then(|tool| tool.argument.as_deref()).unwrap_or("command");
    let arguments: Map<String, Value> = [(argument.to_owned(), command)].into_iter().collect();
    match tool {
        Some(ToolMapping { server, tool, .. }) => json!({"server": server, "tool": tool, "arguments": arguments}),
        None => json!({"server": "shell", "tool": "run", "trusted": true, "arguments": arguments}),
    }
}

impl PolicyImport {
    fn note(&mut self, file: &Source, call: &Call, reason: &str, effect: ImportEffect) {
        self.report(&format!("{}:{}", file.name(), call.line), &call.name, reason.to_owned(), effect);
    }
}
