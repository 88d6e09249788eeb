//! Policies: rules with examples that verify them, in files or in the configuration. Policies contain no variables. A
//! rule that contradicts one of its examples is rejected, and the error points at the example.

use std::collections::BTreeSet;
use std::path::Path;

use sha2::{Digest, Sha256};
use toolgate_core::json::hex;
use toolgate_core::policy::{
    CommandPattern, Condition, Example, FollowingWords, Match, OnTimeout, Policy, Rule, RuleError, RulePlaces, Verdict,
};
use toolgate_core::tool::Annotations;

use super::error::{ConfigError, Fault, Source};
use super::resolver::Resolver;
use super::rule_limit;
use super::spanned::{Located, Location, Text};
use super::written::{WrittenCommand, WrittenExample, WrittenMatch, WrittenPolicy, WrittenRule, WrittenWord};
use super::yaml;

/// The files of the presets, by name.
const PRESETS: [(&str, &str); 7] = [
    ("approvals/default.yaml", include_str!("../../approvals/default.yaml")),
    ("approvals/accept-reads.yaml", include_str!("../../approvals/accept-reads.yaml")),
    ("approvals/accept-edits.yaml", include_str!("../../approvals/accept-edits.yaml")),
    ("approvals/dont-ask.yaml", include_str!("../../approvals/dont-ask.yaml")),
    ("approvals/delegate.yaml", include_str!("../../approvals/delegate.yaml")),
    ("approvals/plan.yaml", include_str!("../../approvals/plan.yaml")),
    ("approvals/bypass.yaml", include_str!("../../approvals/bypass.yaml")),
];

/// Reads a policy file and verifies its examples.
pub fn policy_file(path: &Path) -> Result<Policy, ConfigError> {
    read(yaml::read(path)?)
}

/// Reads a policy that is not in a file, and verifies its examples. Errors show `name` in place of a path.
pub fn policy_text(name: &str, text: &str) -> Result<Policy, ConfigError> {
    read(Source::new(name, text))
}

/// The presets: `default`, `accept-reads`, `accept-edits`, `dont-ask`, `delegate`, `plan`, `bypass`.
pub(super) fn presets() -> impl Iterator<Item = Result<Policy, ConfigError>> {
    PRESETS.into_iter().map(|(name, text)| policy_text(name, text))
}

fn read(source: Source) -> Result<Policy, ConfigError> {
    let written: WrittenPolicy = yaml::parse(&source).map_err(|error| {
        let empty = error.faults().find(|fault| fault.line_and_column().is_none()).cloned();
        empty.map_or(error, |fault| fault.with_remedy("a policy has `name`, `default` and `rules`").into())
    })?;
    let version = version(source.text());
    let mut scope = Resolver::new(source, Path::new(""), &|_| None);
    let name = match &written.name {
        Some(name) => {
            scope.name("a policy", name.value(), name.place());
            name.value().clone()
        }
        None => {
            let fault = Fault::new("the key `name` is missing").with_remedy("add `name:`; decisions contain it");
            scope.fault(fault, Location::FIRST);
            String::new()
        }
    };
    let policy = compile(&written, name, version, Location::FIRST, &mut scope);
    scope.finish(policy)
}

/// A policy that is written in the configuration itself. Its version is a hash of its content, independent of its
/// location.
pub(super) fn in_place(
    written: &WrittenPolicy,
    otherwise: &str,
    place: Option<Location>,
    scope: &mut Resolver<'_>,
) -> Policy {
    let name = match &written.name {
        Some(name) => {
            scope.name("a policy", name.value(), name.place());
            name.value().clone()
        }
        None => otherwise.to_owned(),
    };
    let version = version(&serde_json::to_string(written).unwrap_or_default());
    compile(written, name, version, place, scope)
}

fn version(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())).chars().take(16).collect()
}

fn compile(
    written: &WrittenPolicy,
    name: String,
    version: String,
    place: Option<Location>,
    scope: &mut Resolver<'_>,
) -> Policy {
    if written.default.is_none() {
        let fault = Fault::new("the key `default` is missing");
        scope.fault(fault.with_remedy("add `default: ask`; it applies if no rule matches"), place);
    }
    let mut ids = BTreeSet::new();
    let mut rules = Vec::with_capacity(written.rules.len());
    for placed in &written.rules {
        let id = &placed.value().id;
        if !ids.insert(id.value().clone()) {
            let fault = Fault::new(format!("two rules are called `{}`", id.value()));
            scope.fault(fault.with_remedy("decisions name the rule; give each its own id"), id.place());
        }
        let has_time = placed.value().answer_timeout_s.is_some() || written.answer_timeout_s.is_some();
        on_timeout_without_time(&placed.value().on_timeout, has_time, scope);
        rules.extend(rule(placed.value(), scope));
    }
    let mut times = written.rules.iter().map(|rule| &rule.value().answer_timeout_s).chain([&written.answer_timeout_s]);
    on_timeout_without_time(&written.on_timeout, times.any(Option::is_some), scope);
    let answer_timeout_s = written.answer_timeout_s.as_ref().map(|seconds| scope.at_least_one(Some(seconds), 1));
    let on_timeout = written.on_timeout.as_ref().map(|on| *on.value()).unwrap_or_default();
    // Without a default the policy is rejected above.
    let fallback = written.default.unwrap_or(Verdict::Ask);
    Policy { name, version, fallback, answer_timeout_s, on_timeout, rules }
}

/// Rejects an effect of the time for an answer where no such time is set: a call that is to be approved after it would wait
/// as long as its run lives.
fn on_timeout_without_time(written: &Option<Located<OnTimeout>>, has_time: bool, scope: &mut Resolver<'_>) {
    if let Some(on_timeout) = written.as_ref().filter(|_| !has_time) {
        let fault = Fault::new(format!(
            "`on_timeout: {}` has no effect without `answer_timeout_s`",
            on_timeout.value().as_str()
        ));
        scope.fault(fault.with_remedy("add `answer_timeout_s`, the seconds for an answer"), on_timeout.place());
    }
}

fn rule(written: &WrittenRule, scope: &mut Resolver<'_>) -> Option<Rule> {
    if written.reason.value().trim().is_empty() {
        let fault = Fault::new(format!("rule `{}` gives no reason", written.id.value()));
        scope.fault(fault.with_remedy("write one sentence; users and the model read it"), written.reason.place());
    }
    if written.r#match.value().is_empty() {
        let fault = Fault::new(format!("rule `{}` has no conditions and matches everything", written.id.value()));
        scope.fault(fault.with_remedy("write `match: { tool: \"*\" }` if that is meant"), written.r#match.place());
    }
    let when = condition(written, scope)?;
    let answer_timeout_s = written.answer_timeout_s.as_ref().map(|seconds| scope.at_least_one(Some(seconds), 1));
    let examples = |list: &[Located<WrittenExample>]| list.iter().map(|example| example.value().into()).collect();
    let (good, bad) = (&written.examples.r#match, &written.examples.no_match);
    match written.compile(when.as_ref(), examples(good), examples(bad)) {
        Ok(rule) => {
            good.iter().for_each(|example| prove(written, when.as_ref(), example, true, scope));
            bad.iter().for_each(|example| prove(written, when.as_ref(), example, false, scope));
            let on_timeout = written.on_timeout.as_ref().map(|on| *on.value());
            let rule = rule.with_deadline(answer_timeout_s, on_timeout).with_places(written.places());
            let limit = written.limit.as_ref().and_then(|limit| rule_limit::resolve(limit, written.verdict, scope));
            Some(rule.with_allow_unmatched(written.allow_unmatched).with_limit(limit))
        }
        Err(error) => {
            let conditions = written.r#match.value();
            let place = match &error {
                RuleError::Pattern { pattern, .. } => conditions.place_of(pattern),
                RuleError::Origin { origin, .. } => conditions.place_of(origin),
                RuleError::Command { .. } => conditions.command.as_ref().and_then(Located::place),
                RuleError::Example { .. } | RuleError::NoArguments { .. } | RuleError::Unclear { .. } => None,
            };
            scope.value_fault(Fault::new(error.to_string()), place.or_else(|| written.id.place()));
            None
        }
    }
}

/// The rule's condition: `Some(None)` if it has no condition, `None` if the condition is invalid.
fn condition(written: &WrittenRule, scope: &mut Resolver<'_>) -> Option<Option<Condition>> {
    let Some(when) = &written.when else { return Some(None) };
    match Condition::parse(when.value()) {
        Ok(condition) => Some(Some(condition)),
        Err(error) => {
            let fault = Fault::new(format!("rule `{}`: the condition cannot be used: {error}", written.id.value()));
            scope.fault(fault.with_remedy("docs/policy.md describes conditions"), when.place());
            None
        }
    }
}

/// Verifies one example, alone, so that an error points at its line.
fn prove(
    written: &WrittenRule,
    when: Option<&Condition>,
    example: &Located<WrittenExample>,
    should_match: bool,
    scope: &mut Resolver<'_>,
) {
    let alone = vec![example.value().into()];
    let (good, bad) = if should_match { (alone, Vec::new()) } else { (Vec::new(), alone) };
    let failures = written.compile(when, good, bad).map(|rule| rule.check_examples()).unwrap_or_default();
    for failure in failures {
        let remedy = match &failure {
            RuleError::NoArguments { .. } => "add `arguments: { … }` to the example",
            RuleError::Unclear { .. } => {
                "such a call requires approval; correct the rule, or test an argument with `has(…)` first"
            }
            RuleError::Example { .. }
            | RuleError::Pattern { .. }
            | RuleError::Origin { .. }
            | RuleError::Command { .. } => "correct the rule or the example",
        };
        scope.fault(Fault::new(failure.to_string()).with_remedy(remedy), example.place());
    }
}

impl WrittenRule {
    fn places(&self) -> RulePlaces {
        let at = |place: Option<Location>| place.map(|place| (place.line, place.column));
        RulePlaces {
            id: at(self.id.place()),
            matches: at(self.r#match.place()),
            when: at(self.when.as_ref().and_then(Text::place)),
        }
    }

    fn compile(&self, when: Option<&Condition>, good: Vec<Example>, bad: Vec<Example>) -> Result<Rule, RuleError> {
        let conditions = self.r#match.value().into();
        let rule = Rule::new(self.id.value(), self.verdict, self.reason.value().trim(), conditions, good, bad)?;
        Ok(match when {
            Some(when) => rule.with_condition(when.clone()),
            None => rule,
        })
    }
}

impl WrittenMatch {
    fn is_empty(&self) -> bool {
        Match::from(self) == Match::default()
    }

    fn place_of(&self, text: &str) -> Option<Location> {
        let texts = [&self.tool, &self.tool_name, &self.server, &self.origin, &self.agent, &self.principal];
        texts.into_iter().flatten().find(|candidate| candidate.value() == text).and_then(Text::place)
    }
}

impl From<&WrittenMatch> for Match {
    fn from(written: &WrittenMatch) -> Self {
        let text = |text: &Option<Text>| text.as_ref().map(|text| text.value().clone());
        Self {
            tool: text(&written.tool),
            tool_name: text(&written.tool_name),
            server: text(&written.server),
            origin: text(&written.origin),
            agent: text(&written.agent),
            principal: text(&written.principal),
            trusted: written.trusted,
            command: written.command.as_ref().map(|command| command.value().into()),
            read_only: written.read_only,
            destructive: written.destructive,
            idempotent: written.idempotent,
            open_world: written.open_world,
        }
    }
}

impl From<&WrittenCommand> for CommandPattern {
    fn from(written: &WrittenCommand) -> Self {
        let words = |words: &[WrittenWord]| words.iter().map(WrittenWord::alternatives).collect();
        match written {
            WrittenCommand::Words(written) => Self { argument: None, words: words(written), rest: FollowingWords::Any },
            WrittenCommand::Bounded(written) => Self {
                argument: written.argument.clone(),
                words: words(&written.words),
                rest: match (&written.options, written.exact) {
                    (_, true) => FollowingWords::Nothing,
                    (Some(options), false) => FollowingWords::Options(options.clone()),
                    (None, false) => FollowingWords::Any,
                },
            },
        }
    }
}

impl From<&WrittenExample> for Example {
    fn from(written: &WrittenExample) -> Self {
        Self {
            server: written.server.clone(),
            builtin: written.builtin,
            tool: written.tool.clone(),
            annotations: Annotations {
                title: None,
                read_only_hint: written.read_only,
                destructive_hint: written.destructive,
                idempotent_hint: written.idempotent,
                open_world_hint: written.open_world,
            },
            trusted: written.trusted,
            agent: written.agent.clone(),
            principal: written.principal.clone(),
            arguments: written.arguments.clone(),
        }
    }
}
