//! Pending items of a run, with the command that answers them, ready to copy.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::DisplaySettings;
use super::approval::{circumstances, term, whole};
use super::question::{answering, question_lines};
use crate::cli::argument_lines::{PresentFile, argument_lines};
use crate::cli::binding_digest;
use crate::cli::run_arg::beginning;
use crate::cli::terminal_escape;
use crate::cli::text::{arguments_line, block, count, duration, one_line, shell_word};
use crate::core::id::RunId;
use crate::core::run::{AnswerForm, BackgroundWork, Delivery, PendingCall, PendingItem};
use crate::core::tool::escape_untrusted;

/// The flags of this command that a further command on the same run needs too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct RepeatedFlags {
    config: Vec<String>,
    changes: Vec<String>,
    /// Whether the user is at the prompt of a conversation, where no command of the shell can be entered.
    in_conversation: bool,
}

/// The keys that continue the last turn of a conversation, which has these pending items and has not ended.
pub(in crate::cli) fn continuing_keys(items: &[PendingItem]) -> &'static str {
    match (items.iter().any(PendingItem::wants_answer), can_continue_with_message(items)) {
        (false, _) => "press Enter or send a message to continue it; /cancel gives it up",
        (true, false) => "press Enter to answer and continue the turn; /cancel gives it up",
        (true, true) => {
            "press Enter to answer and continue the turn; a message denies what waits for approval and continues it with \
             the message; /cancel gives it up"
        }
    }
}

/// Whether a message can continue a turn with these pending items: a denial settles all that wait for an answer.
pub(in crate::cli) fn can_continue_with_message(items: &[PendingItem]) -> bool {
    items.iter().filter(|item| item.wants_answer()).all(|item| matches!(item, PendingItem::Approval(_)))
}

impl RepeatedFlags {
    /// Creates it from words, one for each flag or value: `config` names the configuration, `changes` overrides it.
    pub(in crate::cli) fn new(config: Vec<String>, changes: Vec<String>) -> Self {
        Self { config, changes, in_conversation: false }
    }

    /// The same for a conversation.
    pub(in crate::cli) fn in_conversation(self) -> Self {
        Self { in_conversation: true, ..self }
    }

    /// The command that asks the person at the terminal for the pending items of a run again. A conversation has a key for it.
    pub(in crate::cli) fn asking_again(&self, run: &RunId) -> Option<String> {
        (!self.in_conversation)
            .then(|| format!("or be asked again with:\n  {}", self.command(&["resume", run.as_str()])))
    }

    /// A command line, quoted for the shell.
    pub(in crate::cli) fn command(&self, words: &[&str]) -> String {
        line(words, self.config.iter().chain(&self.changes))
    }

    /// The command that retries a failed run.
    pub(in crate::cli) fn retrying(&self, run: &RunId) -> String {
        match self.in_conversation {
            true => "/retry asks the model again, and /model chooses another one".to_owned(),
            false => format!("try again with:\n  {}", self.command(&["runs", "retry", run.as_str()])),
        }
    }

    /// The command that shows a call whole.
    pub(in crate::cli) fn showing_call(&self, run: &RunId, number: usize) -> String {
        match self.in_conversation {
            true => format!("/show {number}"),
            false => self.elsewhere(&["runs", "show", beginning(run.as_str()), &number.to_string()]),
        }
    }

    /// The command that lists the grants.
    pub(in crate::cli) fn listing_grants(&self) -> String {
        match self.in_conversation {
            true => "/approvals".to_owned(),
            false => format!("`{}`", self.elsewhere(&["approvals", "grants"])),
        }
    }

    /// Whether the user is at the prompt of a conversation.
    pub(in crate::cli) fn is_in_conversation(&self) -> bool {
        self.in_conversation
    }

    /// The command line of a command that executes no run and only needs to find the store.
    pub(in crate::cli) fn elsewhere(&self, words: &[&str]) -> String {
        line(words, self.config.iter())
    }
}

fn line<'a>(words: &[&'a str], flags: impl Iterator<Item = &'a String>) -> String {
    let words = ["toolgate"].iter().chain(words).copied().chain(flags.map(String::as_str));
    let words: Vec<&str> = words.collect();
    let is_whole = words.iter().all(|word| escape_untrusted(word) == *word);
    let remark = if is_whole { "" } else { "  # HIDDEN stands for a word with characters that cannot be seen" };
    format!("{}{remark}", words.into_iter().map(shell_word).collect::<Vec<_>>().join(" "))
}

/// The indentation of the details of a pending item.
const MARGIN: &str = "              ";

/// The pending items, and one command that settles them all. In a conversation, the keys that ask for them.
pub(in crate::cli) fn pending_lines(
    run: &RunId,
    items: &[PendingItem],
    again: &RepeatedFlags,
    look: DisplaySettings,
) -> Vec<String> {
    let (paint, now) = (look.paint, Timestamp::now());
    let mut lines = vec![paint.yellow(format!("pending: the run waits {}", what_for(items)))];
    lines.extend(items.iter().flat_map(|item| item_lines(item, again, look, now)));
    if again.in_conversation {
        lines.push(continuing_keys(items).to_owned());
        return lines;
    }
    let resume = ["resume", run.as_str()];
    let given: Vec<String> = items.iter().flat_map(|item| settling(run, item)).collect();
    if given.is_empty() {
        let words: Vec<&str> = resume.into_iter().chain(["--wait"]).collect();
        lines.push(format!("no answer is required; wait for it with:\n  {}", again.command(&words)));
        return lines;
    }
    let words: Vec<&str> = resume.into_iter().chain(given.iter().map(String::as_str)).collect();
    lines.push(format!("answer with:\n  {}", again.command(&words)));
    lines.extend(otherwise(items).map(|hint| paint.dim(format!("  ({hint})"))));
    lines.extend(items.iter().find_map(|item| for_longer(run, item, again)).map(|hint| paint.dim(hint)));
    lines
}

/// What a run waits for, with the numbers.
fn what_for(items: &[PendingItem]) -> String {
    let (mut numbers, mut is_paused) = (BTreeMap::<&str, usize>::new(), false);
    for item in items {
        let noun = match item.form() {
            AnswerForm::Background(work) => work.noun,
            AnswerForm::Decision(_)
            | AnswerForm::Result { .. }
            | AnswerForm::Choice(_)
            | AnswerForm::Elicitation { .. } => "answer",
            AnswerForm::Continue { .. } => {
                is_paused = true;
                continue;
            }
        };
        *numbers.entry(noun).or_default() += 1;
    }
    let awaited: Vec<String> = numbers.into_iter().map(|(noun, number)| count(number, noun)).collect();
    let awaited = (!awaited.is_empty()).then(|| format!("for {}", awaited.join(" and ")));
    awaited.into_iter().chain(is_paused.then(|| "to be continued".to_owned())).collect::<Vec<_>>().join(" and ")
}

/// Hints for alternative answers, one for each form of an answer.
fn otherwise(items: &[PendingItem]) -> impl Iterator<Item = String> {
    let (mut denial, mut refusal, mut wait) = (None, None, None);
    for item in items.iter().rev() {
        let call = item.call_id().map_or("", |call| call.as_str());
        match item.form() {
            AnswerForm::Decision(_) => denial = Some(format!("or --deny {}", shell_word(&format!("{call}=REASON")))),
            AnswerForm::Elicitation { .. } => refusal = Some(format!("or --decline {}", shell_word(call))),
            AnswerForm::Background(work) => {
                wait = Some(format!("{}s are polled each time; --wait waits for them", work.noun));
            }
            AnswerForm::Result { .. } | AnswerForm::Choice(_) | AnswerForm::Continue { .. } => {}
        }
    }
    denial.into_iter().chain(refusal).chain(wait)
}

/// The command for the narrowest approval that avoids the next question.
fn for_longer(run: &RunId, item: &PendingItem, again: &RepeatedFlags) -> Option<String> {
    let digest = binding_digest::short(run, item)?;
    let words =
        ["approvals", "approve", run.as_str(), item.call_id()?.as_str(), "--digest", &digest, "--scope", "session"];
    Some(format!("or approve it, and the same call for the rest of the session:\n  {}", again.command(&words)))
}

fn item_lines(item: &PendingItem, again: &RepeatedFlags, look: DisplaySettings, now: Timestamp) -> Vec<String> {
    let Some(PendingCall { id, name, arguments, .. }) = item.call() else { return paused_line(item, now) };
    let call = escape_untrusted(id.as_str());
    let term = || term(item, now).map(|term| format!("{MARGIN}{term}"));
    let shortened = |label: &str| {
        let head = format!("  {label:<11} {call}  {name}");
        let room = look.room(head.chars().count() + 1);
        format!("{head} {}", look.paint.dim(arguments_line(&arguments.to_value(), room)))
    };
    match item.form() {
        AnswerForm::Result { .. } => [shortened("result of")].into_iter().chain(term()).collect(),
        // The prompt has shown it, and shows it again.
        AnswerForm::Decision(_) if again.in_conversation => {
            let deadline = term().filter(|_| item.expires_at().is_some());
            [shortened("decision on")].into_iter().chain(deadline).collect()
        }
        AnswerForm::Decision(_) => {
            let mut lines = vec![format!("  decision on {call}  {name}")];
            lines.extend(
                argument_lines(&arguments, PresentFile::Unread, look.paint)
                    .iter()
                    .map(|line| format!("{MARGIN}{line}")),
            );
            lines.extend(circumstances(item, now).iter().map(|line| format!("{MARGIN}{line}")));
            lines
        }
        AnswerForm::Choice(ask) => {
            let mut lines = vec![format!("  answer to   {call}  {}", hung(&block(&ask.question)))];
            lines.extend(ask.options.iter().map(|option| format!("{MARGIN}- {}", escape_untrusted(option))));
            lines.extend(term());
            lines
        }
        AnswerForm::Elicitation { questions, delivery } => {
            let delivery = match delivery {
                Delivery::Held => " (the call is held open for them)",
                Delivery::Repeated => " (the call had begun; with them it is sent a second time)",
                Delivery::Restarted => " (the call is sent again with them)",
                Delivery::Continued => "",
            };
            let mut lines = vec![format!("  answers for {call}  {name} {}{delivery}", whole(&arguments))];
            let lines_of_questions = questions.iter().flat_map(|(key, question)| question_lines(key, question));
            lines.extend(lines_of_questions.map(|line| format!("{MARGIN}{}", hung(&line))));
            lines
        }
        AnswerForm::Background(work) => {
            let head = shortened(&format!("{} of", work.noun));
            [head, format!("{MARGIN}{}", describe_work(work))].into_iter().chain(term()).collect()
        }
        AnswerForm::Continue { .. } => Vec::new(),
    }
}

/// The line of a pause, the item that belongs to no call.
fn paused_line(item: &PendingItem, now: Timestamp) -> Vec<String> {
    let AnswerForm::Continue { by, reason } = item.form() else { return Vec::new() };
    let reason = reason.map(|reason| format!(": {}", one_line(&escape_untrusted(reason), 120))).unwrap_or_default();
    let head = format!("  paused by   {}{reason}", escape_untrusted(by));
    [head].into_iter().chain(term(item, now).map(|term| format!("{MARGIN}{term}"))).collect()
}

/// Indents continuation lines.
fn hung(text: &str) -> String {
    text.replace('\n', &format!("\n{MARGIN}"))
}

/// Describes work outside the run in one line.
fn describe_work(work: BackgroundWork<'_>) -> String {
    let every = work.poll_ms.map(|poll| format!(", polled every {}", duration(poll))).unwrap_or_default();
    let message = work.message.map(|message| format!(": {}", one_line(message, 120))).unwrap_or_default();
    format!("runs {} as {}{every}{message}", work.place, escape_untrusted(work.id))
}

/// The flags and values that settle a pending item.
fn settling(run: &RunId, item: &PendingItem) -> Vec<String> {
    let call = item.call_id().map_or("", |call| call.as_str());
    match item.form() {
        AnswerForm::Decision(_) => {
            // The digest binds the approval to the call shown above, so that it cannot approve a different call.
            let digest = binding_digest::short(run, item).map(|digest| ["--digest".into(), format!("{call}={digest}")]);
            ["--approve".into(), call.to_string()].into_iter().chain(digest.into_iter().flatten()).collect()
        }
        AnswerForm::Result { schema } => {
            let result = schema.map(|schema| terminal_escape::json_word(&example(schema)));
            let result = result.unwrap_or_else(|| "RESULT".to_owned());
            vec!["--result".into(), format!("{call}={result}")]
        }
        AnswerForm::Choice(_) => vec!["--answer".into(), format!("{call}=ANSWER")],
        AnswerForm::Elicitation { questions, delivery } => {
            let value = answering(questions)
                .map(|value| format!("={}", terminal_escape::json_word(&value)))
                .unwrap_or_default();
            let answer = ["--answer".into(), format!("{call}{value}")];
            // Sending the call a second time requires explicit consent; the line above warns about it.
            let repeat = (delivery == Delivery::Repeated).then(|| ["--repeat".into(), call.to_string()]);
            answer.into_iter().chain(repeat.into_iter().flatten()).collect()
        }
        AnswerForm::Background(_) => Vec::new(),
        AnswerForm::Continue { .. } => vec!["--continue".into()],
    }
}

/// A template value for a schema. It reads only the basic keywords, so the value may not be valid.
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
    use crate::core::run::{PendingInput, PendingTask};
    use crate::core::tool::{Arguments, Origin, Question, TaskHandle, ToolName, ToolRef};

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
    fn questions_show_their_answering_flag_and_tasks_how_to_wait() {
        let tool = ToolRef::from(Origin::Mcp { server: "shop".into(), tool: "book".into() });
        let (tool_name, arguments) =
            (ToolName::parse("mcp_shop_book").unwrap(), Arguments::from_value(json!({"to": "Oslo"})));
        let schema = json!({"type": "object", "required": ["seats"], "properties": {"seats": {"type": "integer"}}});
        let question = Question::Form { message: "How many?".into(), schema };
        let input = PendingItem::Input(PendingInput {
            call_id: "c1".into(),
            tool: tool.clone(),
            tool_name: tool_name.clone(),
            arguments: arguments.clone(),
            questions: [("seats".to_owned(), question)].into(),
            restarts: false,
            repeats: false,
            held: false,
            held_until: None,
        });
        let task =
            TaskHandle { id: "t7".into(), message: Some("in the oven".into()), poll_ms: Some(5_000), ttl_ms: None };
        let task = PendingItem::Task(PendingTask { call_id: "c2".into(), tool, tool_name, arguments, task });
        let look = DisplaySettings { paint: crate::cli::paint::Paint::Plain, width: 100 };
        let lines = |items: &[PendingItem]| pending_lines(&"run_1".into(), items, &RepeatedFlags::default(), look);
        let both = [
            "pending: the run waits for 1 answer and 1 task",
            "  answers for c1  mcp_shop_book {\"to\":\"Oslo\"}",
            "              seats: How many?",
            "                seats: integer, required",
            "  task of     c2  mcp_shop_book to: \"Oslo\"",
            "              runs at its server as t7, polled every 5.0 s: in the oven",
            "answer with:\n  toolgate resume run_1 --answer 'c1={\"seats\":0}'",
            "  (or --decline c1)",
            "  (tasks are polled each time; --wait waits for them)",
        ];
        assert_eq!(lines(&[input, task.clone()]), both);
        let waiting = lines(&[task]);
        assert_eq!(waiting[0], "pending: the run waits for 1 task");
        assert_eq!(waiting[3], "no answer is required; wait for it with:\n  toolgate resume run_1 --wait");
    }

    #[test]
    fn a_command_repeats_the_flags_that_the_run_was_started_with() {
        let again = RepeatedFlags::new(vec!["--config".into(), "my file.yaml".into()], Vec::new());
        assert_eq!(again.command(&["runs", "show", "run_1"]), "toolgate runs show run_1 --config 'my file.yaml'");
    }
}
