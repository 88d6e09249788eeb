//! Policy files: rules with examples that prove them. A rule that does not do what its author wrote beside it is
//! refused, at the line of the example.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::error::{ConfigError, Fault, Source};
use super::placed::{Placed, Text};
use super::scope::Scope;
use super::yaml;
use crate::core::json::hex;
use crate::core::policy::{Example, Match, Policy, Rule, RuleError, Verdict};
use crate::core::tool::Annotations;

/// The files of the presets, by name.
const PRESETS: [(&str, &str); 4] = [
    ("approvals/default.yaml", include_str!("../../approvals/default.yaml")),
    ("approvals/accept-edits.yaml", include_str!("../../approvals/accept-edits.yaml")),
    ("approvals/plan.yaml", include_str!("../../approvals/plan.yaml")),
    ("approvals/bypass.yaml", include_str!("../../approvals/bypass.yaml")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPolicy {
    name: Text,
    default: Verdict,
    #[serde(default)]
    rules: Vec<Placed<WrittenRule>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    id: Text,
    r#match: Placed<WrittenMatch>,
    verdict: Verdict,
    justification: Text,
    #[serde(default)]
    examples: WrittenExamples,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenMatch {
    tool: Option<Text>,
    server: Option<Text>,
    origin: Option<Text>,
    agent: Option<Text>,
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenExamples {
    r#match: Vec<Placed<WrittenExample>>,
    no_match: Vec<Placed<WrittenExample>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenExample {
    tool: String,
    server: Option<String>,
    agent: Option<String>,
    #[serde(default)]
    trusted: bool,
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
}

/// Reads a policy file and runs its examples.
pub fn policy_file(path: &Path) -> Result<Policy, ConfigError> {
    read(yaml::read(path)?)
}

/// The presets: `default`, `accept-edits`, `plan`, `bypass`.
pub(super) fn presets() -> impl Iterator<Item = Result<Policy, ConfigError>> {
    PRESETS.into_iter().map(|(name, text)| read(Source::new(name, text)))
}

fn read(source: Source) -> Result<Policy, ConfigError> {
    let written: WrittenPolicy = yaml::parse(&source)?;
    let version = hex(&Sha256::digest(source.text().as_bytes())).chars().take(16).collect();
    let mut scope = Scope::new(source, Path::new(""), &|_| None);
    scope.name("a policy", written.name.value(), written.name.place());
    let mut ids = BTreeSet::new();
    let mut rules = Vec::with_capacity(written.rules.len());
    for placed in &written.rules {
        let id = &placed.value().id;
        if !ids.insert(id.value().clone()) {
            let fault = Fault::new(format!("two rules are called `{}`", id.value()));
            scope.fault(fault.with_remedy("decisions name the rule; give each its own id"), id.place());
        }
        rules.extend(rule(placed.value(), &mut scope));
    }
    let policy =
        Policy { name: written.name.value().clone(), version, fallback: written.default, within_s: None, rules };
    scope.finish(policy)
}

fn rule(written: &WrittenRule, scope: &mut Scope<'_>) -> Option<Rule> {
    if written.justification.value().trim().is_empty() {
        let fault = Fault::new(format!("rule `{}` gives no justification", written.id.value()));
        scope.fault(
            fault.with_remedy("say in a sentence why; people and the model read it"),
            written.justification.place(),
        );
    }
    if written.r#match.value().is_empty() {
        let fault = Fault::new(format!("rule `{}` has no condition and matches everything", written.id.value()));
        scope.fault(fault.with_remedy("write `match: { tool: \"*\" }` if that is meant"), written.r#match.place());
    }
    let examples = |list: &[Placed<WrittenExample>]| list.iter().map(|example| example.value().into()).collect();
    let (good, bad) = (&written.examples.r#match, &written.examples.no_match);
    match written.compile(examples(good), examples(bad)) {
        Ok(rule) => {
            good.iter().for_each(|example| prove(written, example, true, scope));
            bad.iter().for_each(|example| prove(written, example, false, scope));
            Some(rule)
        }
        Err(error) => {
            let conditions = written.r#match.value();
            let place = match &error {
                RuleError::Pattern { pattern, .. } => conditions.place_of(pattern),
                RuleError::Origin { origin, .. } => conditions.place_of(origin),
                RuleError::Example { .. } => None,
            };
            scope.fault(Fault::new(error.to_string()), place.or_else(|| written.id.place()));
            None
        }
    }
}

/// Runs one example, alone, so that a failure points at its line.
fn prove(written: &WrittenRule, example: &Placed<WrittenExample>, should_match: bool, scope: &mut Scope<'_>) {
    let alone = vec![example.value().into()];
    let (good, bad) = if should_match { (alone, Vec::new()) } else { (Vec::new(), alone) };
    let failures = written.compile(good, bad).map(|rule| rule.check_examples()).unwrap_or_default();
    for failure in failures {
        let remedy = "correct the rule or the example; an allow rule believes hints of trusted servers only";
        scope.fault(Fault::new(failure.to_string()).with_remedy(remedy), example.place());
    }
}

impl WrittenRule {
    fn compile(&self, good: Vec<Example>, bad: Vec<Example>) -> Result<Rule, RuleError> {
        let conditions = self.r#match.value().into();
        Rule::new(self.id.value(), self.verdict, self.justification.value().trim(), conditions, good, bad)
    }
}

impl WrittenMatch {
    fn is_empty(&self) -> bool {
        Match::from(self) == Match::default()
    }

    fn place_of(&self, text: &str) -> Option<super::placed::Place> {
        let texts = [&self.tool, &self.server, &self.origin, &self.agent];
        texts.into_iter().flatten().find(|candidate| candidate.value() == text).and_then(Text::place)
    }
}

impl From<&WrittenMatch> for Match {
    fn from(written: &WrittenMatch) -> Self {
        let text = |text: &Option<Text>| text.as_ref().map(|text| text.value().clone());
        Self {
            tool: text(&written.tool),
            server: text(&written.server),
            origin: text(&written.origin),
            agent: text(&written.agent),
            read_only: written.read_only,
            destructive: written.destructive,
            idempotent: written.idempotent,
            open_world: written.open_world,
        }
    }
}

impl From<&WrittenExample> for Example {
    fn from(written: &WrittenExample) -> Self {
        Self {
            server: written.server.clone(),
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
        }
    }
}
