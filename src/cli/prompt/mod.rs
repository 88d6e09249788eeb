//! Terminal prompts: ask the user for the pending items of a run. They show questions and read lines through the
//! [`Console`] port and do not access a terminal directly.
//!
//! A paste of several lines is one answer to a text question, and is rejected where a single letter decides.

mod changed_before;
mod choice;
mod console;
mod decision;
mod edit;
mod editable_arguments;
mod escape_key;
mod grant_choice;
mod menu;
mod question;
#[cfg(not(unix))]
#[path = "plain.rs"]
mod terminal;
#[cfg(unix)]
mod terminal;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, IsTerminal as _};

use serde_json::Value;

pub(super) use self::changed_before::changed_before;
pub(super) use self::choice::position;
use self::console::{Accepts, Entry};
pub(super) use self::console::{Console, Recall};
pub(super) use self::escape_key::EscapeKey;
pub(super) use self::grant_choice::{CallRecord, PastCalls};
pub(super) use self::menu::Menu;
pub(super) use self::terminal::{Terminal, TerminalGuard, Withdrawal, announce, typed_ahead};
use super::answers::{json_or_text, who};
use super::argument_lines::{EarlierChange, PresentFile, argument_lines};
use super::text::{COMPACT, block, compact};
use super::view;
use crate::core::id::CallId;
use crate::core::run::{
    Answer, AnswerForm, Channel, Decision, Delivery, ElicitationAnswer, HumanAnswer, PendingCall, PendingItem,
};
use crate::core::tool::{Arguments, Ask, Choice, Question, escape_untrusted};

/// Warning before the answers cause a call to be sent a second time.
const TWICE: &str = "Warning: this call had begun when its server asked, and was cancelled. With answers it is sent a second \
                     time, and what it did before may be done twice.";

/// A prompt on a console.
pub(super) struct Prompt<C> {
    console: C,
    /// The last arguments that the person wrote and that were refused. The next edit of the call begins with them.
    unsent_edit: Option<UnsentEdit>,
}

/// Arguments that a person wrote and that were refused, or given up.
struct UnsentEdit {
    call: CallId,
    text: String,
    /// `None` if the person gave the edit up.
    error: Option<String>,
}

/// A pending item to ask about, and what the person can do about the others from there.
pub(super) struct AskedItem {
    pub(super) item: PendingItem,
    /// The approvals that are asked about after it.
    pub(super) further: Vec<PendingItem>,
    /// The calls before it that change the same file.
    pub(super) changed_before: Vec<EarlierChange>,
    /// The decision that the person took back.
    pub(super) withdrawn: Option<Decision>,
    pub(super) place: Place,
}

/// The place of an item among those that are asked about one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Counts from 1.
    pub(super) number: usize,
    /// How many items there are.
    pub(super) of: usize,
    /// Whether an item before it can be asked about again.
    pub(super) has_previous: bool,
}

impl fmt::Display for Place {
    /// Nothing for a single item, else ` (1 of 3)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.of > 1 { write!(f, " ({} of {})", self.number, self.of) } else { Ok(()) }
    }
}

/// What the person did at the question about an item.
#[derive(Debug)]
pub(super) enum Reply {
    /// Answered the item, or approved it together with further ones.
    Answered(Vec<(CallId, Answer)>),
    /// Denied the call, and stops the run.
    Stopped(CallId, Answer),
    /// Goes back to the item before.
    Back,
    LeftPending,
}

/// Opens a prompt at the terminal of this process, if there is one. If standard input is a pipe, the prompt reads from
/// the terminal device. A prompt that is still open is withdrawn.
pub(super) fn at_terminal() -> Option<Prompt<Terminal>> {
    Terminal::open().map(Prompt::new)
}

/// Claims the terminal, because a question can come at any time: from now on no typed input reaches the shell after the
/// program ends.
pub(super) fn claim_terminal() {
    terminal::claim();
}

/// Whether this process has a terminal at which a user can answer.
pub(super) fn is_person_at_terminal() -> bool {
    std::io::stdin().is_terminal() || std::fs::File::open("/dev/tty").is_ok()
}

impl Prompt<Terminal> {
    /// A guard that withdraws the prompt when dropped: it restores the terminal and stops reading from it.
    pub(super) fn withdrawal(&self) -> Withdrawal {
        self.console.withdrawal()
    }
}

impl<C: Console> Prompt<C> {
    fn new(console: C) -> Self {
        Self { console, unsent_edit: None }
    }

    /// Shows a heading for the next questions.
    pub(super) fn heading(&mut self, text: &str) -> io::Result<()> {
        self.say(&format!("\n{}", escape_untrusted(text)))
    }

    /// Reads all lines up to the end of the input, each of any length.
    pub(super) fn lines(&mut self) -> io::Result<String> {
        // The editor shows it: the terminal truncates lines typed before the editor reads.
        let mut question = "reading from the terminal; Ctrl-D on an empty line ends the text\n";
        let mut text = String::new();
        while let Some(entry) = self.console.line(question, Accepts::Lines)? {
            question = "";
            if entry.dropped {
                let message =
                    "several lines came at once, and this terminal does not mark pastes: read them from a file";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
            text.push_str(&entry.text);
            text.push('\n');
            if entry.is_last {
                break;
            }
        }
        Ok(text)
    }

    /// Reads the next message of a conversation; `None` at the end of the input.
    pub(super) fn message(&mut self, question: &str, recall: &Recall) -> io::Result<Option<String>> {
        self.entry(question, Accepts::Message(recall))
    }

    /// Asks about a pending item. Without an answer it stays pending.
    pub(super) fn ask(&mut self, asked: &AskedItem, record: CallRecord<'_>) -> io::Result<Reply> {
        let Some(call) = asked.item.call() else { return Ok(Reply::LeftPending) };
        self.console.begin_question();
        let answer = match asked.item.form() {
            AnswerForm::Decision(_) => return self.decision(asked, &call, record),
            AnswerForm::Result { schema } => self.result(&call, schema, asked.place)?,
            AnswerForm::Choice(ask) => self.answer(ask, asked)?,
            AnswerForm::Elicitation { questions, delivery } => self.input(&call, questions, delivery, asked.place)?,
            AnswerForm::Background(_) | AnswerForm::Continue { .. } => None,
        };
        Ok(answer.map_or(Reply::LeftPending, |answer| Reply::Answered(vec![(call.id.clone(), answer)])))
    }

    /// Asks a question. A number chooses an option, numbers with commas choose several; any other text is the answer.
    fn answer(&mut self, ask: &Ask, asked: &AskedItem) -> io::Result<Option<Answer>> {
        self.say(&format!("\nThe model asks{}: {}", asked.place, block(&ask.question).replace('\n', "\n  ")))?;
        if let Some(term) = view::term(&asked.item, jiff::Timestamp::now()) {
            self.say(&format!("  {term}"))?;
        }
        let menu = Menu::new(ask.options.iter().map(|option| escape_untrusted(option)).collect());
        self.console.discard_typed_ahead()?;
        loop {
            let Some(line) = self.pick("  your answer (empty: leave it pending): ", &menu)? else { return Ok(None) };
            if line.trim().is_empty() {
                return Ok(None);
            }
            let numbers = line.split(',').map(|number| number.trim().parse::<usize>().ok());
            let chosen: Option<Vec<String>> =
                numbers.map(|number| ask.options.get(number?.checked_sub(1)?).cloned()).collect();
            let choice = match chosen {
                Some(chosen) => Choice { chosen, text: None },
                None => Choice::text(line.trim()),
            };
            match ask.invalid_reason(&choice) {
                None => return Ok(Some(HumanAnswer { choice, by: who(), via: Channel::Terminal }.into())),
                Some(invalid_reason) => self.say(&format!("  that {invalid_reason}"))?,
            }
        }
    }

    fn result(&mut self, call: &PendingCall<'_>, schema: Option<&Value>, place: Place) -> io::Result<Option<Answer>> {
        self.say(&format!("\n{} waits for your application{place}:", call.name))?;
        self.say_arguments(&call.arguments, &[])?;
        if let Some(schema) = schema {
            self.say(&format!("  its result has to fit {}", compact(schema, COMPACT)))?;
        }
        self.console.discard_typed_ahead()?;
        loop {
            let text = self.text("  its result, JSON or text (`error: …` if it failed; empty leaves it pending): ")?;
            let Some(text) = text.as_deref().map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
            if let Some(message) = text.strip_prefix("error:") {
                return Ok(Some(Answer::error(message.trim())));
            }
            match json_or_text(text) {
                Ok(output) => return Ok(Some(Answer::output(output))),
                Err(why) => self.say(&format!("  {why}"))?,
            }
        }
    }

    fn input(
        &mut self,
        call: &PendingCall<'_>,
        questions: &BTreeMap<String, Question>,
        delivery: Delivery,
        place: Place,
    ) -> io::Result<Option<Answer>> {
        self.say(&format!("\nThe server of {} needs input before it continues{place}:", call.name))?;
        self.say_arguments(&call.arguments, &[])?;
        match delivery {
            Delivery::Repeated => self.say(&format!("  {TWICE}"))?,
            Delivery::Restarted => self.say("  (the call was stopped, and is sent again with the answers)")?,
            Delivery::Held | Delivery::Continued => {}
        }
        let Some(reactions) = self.reactions(questions)? else { return Ok(None) };
        let mut given = ElicitationAnswer { reactions, by: who(), via: Channel::Terminal, repeat: false };
        if delivery == Delivery::Repeated && given.accepts() {
            let line = self.key("  Send the call a second time? [y] yes, [n] no, leave it pending: ")?;
            match line.as_deref().map(str::trim) {
                Some("y" | "yes") => given.repeat = true,
                Some(_) | None => return Ok(None),
            }
        }
        Ok(Some(given.into()))
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.console.say(text)
    }

    /// Shows the arguments, never shortened, because the user approves all of them.
    fn say_arguments(&mut self, arguments: &Arguments, earlier: &[EarlierChange]) -> io::Result<Vec<String>> {
        let lines = self.argument_lines(arguments, earlier);
        lines.iter().try_for_each(|line| self.say(&format!("  {line}")))?;
        Ok(lines)
    }

    fn argument_lines(&self, arguments: &Arguments, earlier: &[EarlierChange]) -> Vec<String> {
        argument_lines(arguments, PresentFile::Compared(earlier), self.console.paint())
    }

    /// Reads a letter that decides. Text that was pasted, or arrived together with more lines, is rejected.
    fn key(&mut self, question: &str) -> io::Result<Option<String>> {
        loop {
            match self.console.line(question, Accepts::Key)? {
                Some(entry) if entry.has_paste || entry.dropped => {
                    self.say(
                        "  pasted text decides nothing here, and neither do several keys at once; type one letter",
                    )?;
                }
                entry => return Ok(entry.map(|entry| entry.text)),
            }
        }
    }

    /// Reads a line of text; a paste may contain several lines.
    fn text(&mut self, question: &str) -> io::Result<Option<String>> {
        self.entry(question, Accepts::Text)
    }

    /// Reads the number of an option, or text.
    pub(super) fn pick(&mut self, question: &str, menu: &Menu) -> io::Result<Option<String>> {
        self.entry(question, Accepts::Choice(menu))
    }

    fn entry(&mut self, question: &str, accepts: Accepts<'_>) -> io::Result<Option<String>> {
        loop {
            match self.console.line(question, accepts)? {
                Some(entry) if is_cut_off(&entry) => self.say(
                    "  several lines came at once, and this terminal does not mark pastes: nothing was taken; \
                     write the JSON on one line, or answer with `toolgate resume --file`",
                )?,
                Some(Entry { text, dropped, .. }) => {
                    if dropped {
                        self.say("  more lines came at once: only the first is taken, the others were discarded")?;
                    }
                    return Ok(Some(text));
                }
                None => return Ok(None),
            }
        }
    }
}

/// Whether the entry is only the beginning of JSON that spans several lines.
fn is_cut_off(entry: &Entry) -> bool {
    let text = entry.text.trim_start();
    let is_unfinished = || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err_and(|error| error.is_eof());
    entry.dropped && text.starts_with(['{', '[']) && is_unfinished()
}

#[cfg(test)]
pub(in crate::cli) mod tests;
