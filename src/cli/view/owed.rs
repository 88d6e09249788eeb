//! What a run is owed, and the command that answers it: to be read, copied and run.

use serde_json::{Value, json};

use super::Look;
use crate::cli::text::{compact, count, harmless, shell_word};
use crate::core::id::RunId;
use crate::core::run::Debt;
use crate::core::tool::Arguments;

/// The flags that a further command on the same run needs, as they were given to this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Again {
    config: Vec<String>,
    changes: Vec<String>,
}

impl Again {
    /// Flags and values, one word each: those that name the configuration, and those that change it.
    pub(in crate::cli) fn new(config: Vec<String>, changes: Vec<String>) -> Self {
        Self { config, changes }
    }

    /// A command line that a shell can read.
    pub(in crate::cli) fn command(&self, words: &[&str]) -> String {
        line(words, self.config.iter().chain(&self.changes))
    }

    /// The same for a command that drives no run, and only has to find the store.
    pub(in crate::cli) fn elsewhere(&self, words: &[&str]) -> String {
        line(words, self.config.iter())
    }
}

fn line<'a>(words: &[&'a str], flags: impl Iterator<Item = &'a String>) -> String {
    let words = ["toolgate"].iter().chain(words).copied().chain(flags.map(String::as_str));
    words.map(shell_word).collect::<Vec<_>>().join(" ")
}

/// The debts, and one command that settles them all.
pub(in crate::cli) fn what_is_owed(run: &RunId, debts: &[Debt], again: &Again, look: Look) -> Vec<String> {
    let paint = look.paint;
    let mut lines = vec![paint.yellow(format!("pending: the run waits for {}", count(debts.len(), "answer")))];
    lines.extend(debts.iter().flat_map(|debt| owed(debt, look)));
    let given: Vec<String> = debts.iter().flat_map(settling).collect();
    let words: Vec<&str> = ["resume", run.as_str()].into_iter().chain(given.iter().map(String::as_str)).collect();
    lines.push(format!("answer with:\n  {}", again.command(&words)));
    let first_asked = debts.iter().find(|debt| matches!(debt, Debt::Approval { .. }));
    if let Some(asked) = first_asked {
        let denial = format!("{}=REASON", asked.call_id());
        lines.push(paint.dim(format!("  (or --deny {}; --approve-session asks no more)", shell_word(&denial))));
    }
    lines
}

fn owed(debt: &Debt, look: Look) -> Vec<String> {
    let shown = |value: &Value, used: usize| look.paint.dim(compact(value, look.room(used)));
    match debt {
        Debt::ExternalResult { call_id, name, arguments, .. } => {
            let head = format!("  result of   {call_id}  {name}");
            let arguments = shown(&arguments.to_value(), head.chars().count() + 1);
            vec![format!("{head} {arguments}")]
        }
        Debt::Approval { call_id, name, arguments, rule, why, .. } => {
            let head = format!("  decision on {call_id}  {name}");
            let rule = rule.as_ref().map(|rule| format!(" (rule {rule})")).unwrap_or_default();
            vec![format!("{head} {}", whole(arguments)), format!("              because: {}{rule}", harmless(why))]
        }
        Debt::Input { call_id, name, questions, .. } => {
            let asked =
                questions.values().map(|question| format!("              asks: {}", harmless(question.message())));
            [format!("  answers for {call_id}  {name}")].into_iter().chain(asked).collect()
        }
        Debt::Task { call_id, name, task, .. } => {
            vec![format!("  task of     {call_id}  {name} {}", harmless(&task.id))]
        }
    }
}

/// Nobody decides about arguments they cannot see: nothing is cut off.
fn whole(arguments: &Arguments) -> String {
    harmless(&arguments.to_value().to_string())
}

/// The flag and the value that settle a debt.
fn settling(debt: &Debt) -> Vec<String> {
    match debt {
        Debt::Approval { call_id, .. } => vec!["--approve".into(), call_id.to_string()],
        Debt::ExternalResult { call_id, result_schema, .. } => {
            let result =
                result_schema.as_ref().map_or_else(|| "RESULT".to_owned(), |schema| example(schema).to_string());
            vec!["--result".into(), format!("{call_id}={result}")]
        }
        Debt::Input { .. } | Debt::Task { .. } => Vec::new(),
    }
}

/// A value of the shape a schema asks for, to be filled in. Only the plain keywords are read; it is a form, not a proof.
fn example(schema: &Value) -> Value {
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(value) = schema.get("enum").and_then(Value::as_array).and_then(|values| values.first()) {
        return value.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let required = schema.get("required").and_then(Value::as_array);
            let names = required.into_iter().flatten().filter_map(Value::as_str);
            let member = |name: &str| {
                let schema = properties.and_then(|properties| properties.get(name)).unwrap_or(&Value::Null);
                (name.to_owned(), example(schema))
            };
            Value::Object(names.map(member).collect())
        }
        Some("array") => json!([]),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(0)),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        _ => json!("RESULT"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_for_a_result_has_what_its_schema_requires() {
        let schema = json!({
            "type": "object",
            "required": ["status", "cents", "lines"],
            "properties": {"status": {"enum": ["refunded", "refused"]}, "cents": {"type": "integer"},
                           "lines": {"type": "array"}, "note": {"type": "string"}},
        });
        assert_eq!(example(&schema), json!({"status": "refunded", "cents": 0, "lines": []}));
        assert_eq!(example(&json!({})), json!("RESULT"));
    }

    #[test]
    fn a_command_repeats_the_flags_that_the_run_was_started_with() {
        let again = Again::new(vec!["--config".into(), "my file.yaml".into()], Vec::new());
        assert_eq!(again.command(&["runs", "show", "run_1"]), "toolgate runs show run_1 --config 'my file.yaml'");
    }
}
