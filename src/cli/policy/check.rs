//! `toolgate policy check`: loads policies and runs their examples.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::report;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::count;
use crate::config::{self, ConfigError, Fault};
use crate::core::policy::Policy;
use crate::core::policy::analysis::{RuleWarning, count_examples, examples_missing, matches_any_server, rule_warnings};

const EXAMPLES: &str = "\
Examples:
  toolgate policy check                      the policies of the configuration, and the presets
  toolgate policy check approvals/*.yaml

The examples of every rule are run. Warnings report tests that a call can evade (a prefix of a command or a
path), rules that allow by name alone, rules that never decide, and rules that are probably mistakes.
Exit codes: 0 no errors, 2 at least one error; with --strict a warning counts as an error.";

/// Load policies and run the examples of their rules
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Check {
    /// Policy files [default: every policy of the configuration]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    config: ConfigFlag,

    /// Exits with 2 if there is a warning
    #[arg(long)]
    strict: bool,

    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// The result for one policy file.
struct FileResult {
    place: String,
    policy: Result<Policy, ConfigError>,
}

impl Check {
    pub(super) fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let found = if self.files.is_empty() { self.configured()? } else { self.read() };
        if self.json {
            out.pretty(&json!({ "policies": found.iter().map(FileResult::row).collect::<Vec<Value>>() }));
        } else {
            found.iter().for_each(|found| found.print(out));
        }
        let is_right = |found: &FileResult| match &found.policy {
            Ok(policy) => !self.strict || (rule_warnings(policy).is_empty() && matches_any_server(policy).is_empty()),
            Err(_) => false,
        };
        Ok(if found.iter().all(is_right) { Exit::Done } else { Exit::Usage })
    }

    fn read(&self) -> Vec<FileResult> {
        let found =
            |file: &PathBuf| FileResult { place: file.display().to_string(), policy: config::policy_file(file) };
        self.files.iter().map(found).collect()
    }

    /// The configured policies. A configuration that loads contains only valid policies.
    fn configured(&self) -> Result<Vec<FileResult>, CliError> {
        let settings = setup::settings(&self.config)?;
        let named = settings.policies.iter().map(|(name, policy)| (name.clone(), policy));
        let in_place = settings
            .agents
            .values()
            .filter(|agent| !settings.policies.values().any(|known| Arc::ptr_eq(known, &agent.policy)));
        let in_place = in_place.map(|agent| (format!("agent {}", agent.name), &agent.policy));
        let found = |(place, policy): (String, &Arc<Policy>)| FileResult { place, policy: Ok((**policy).clone()) };
        Ok(named.chain(in_place).map(found).collect())
    }
}

impl FileResult {
    fn print(&self, out: &mut Output) {
        match &self.policy {
            Ok(policy) => {
                let paint = out.paint();
                out.line(format!("{} {}: {}", paint.green("✓"), self.place, in_words(policy)));
                for warning in rule_warnings(policy) {
                    out.warning(format!("{}: {}", self.place, warning_in_words(&warning)));
                }
            }
            Err(error) => {
                let faults = count(error.faults().count(), "error");
                out.line(format!("{} {}: {faults}", out.paint().red("✗"), self.place));
                report::error(&CliError::from(error.clone()), out);
            }
        }
    }

    fn row(&self) -> Value {
        match &self.policy {
            Ok(policy) => json!({
                "place": self.place, "ok": true, "name": policy.name, "version": policy.version,
                "default": policy.fallback, "rules": policy.rules.len(), "examples": count_examples(policy),
                "without_examples": examples_missing(policy), "across_servers": matches_any_server(policy), "warnings": rule_warnings(policy),
                "errors": [],
            }),
            Err(error) => json!({
                "place": self.place, "ok": false, "errors": error.faults().map(fault).collect::<Vec<Value>>(),
            }),
        }
    }
}

fn fault(fault: &Fault) -> Value {
    let (line, column) = fault.line_and_column().unzip();
    json!({ "message": fault.message(), "remedy": fault.remedy(), "line": line, "column": column })
}

pub(in crate::cli) fn warning_in_words(warning: &RuleWarning<'_>) -> String {
    let RuleWarning { rule, message, remedy, line, column } = warning;
    let place = line.zip(*column).map(|(line, column)| format!(" [line {line}, column {column}]"));
    format!("rule `{rule}`: {message} ({remedy}){}", place.unwrap_or_default())
}

fn in_words(policy: &Policy) -> String {
    let conditions = policy.rules.iter().filter(|rule| rule.when().is_some()).count();
    let mut words = vec![
        format!("policy {} {}", policy.name, policy.version),
        count(policy.rules.len(), "rule"),
        format!("{} passed", count(count_examples(policy), "example")),
    ];
    if conditions > 0 {
        words.insert(2, count(conditions, "condition"));
    }
    let unproven = examples_missing(policy);
    if !unproven.is_empty() {
        words.push(format!("without an example: {}", unproven.join(", ")));
    }
    let crossing = matches_any_server(policy);
    if !crossing.is_empty() {
        let crossing = crossing.join(", ");
        words.push(format!(
            "allowed for any server, because `*` in `tool` also matches server names: {crossing} (write `server` and `tool_name`)"
        ));
    }
    words.join("; ")
}
