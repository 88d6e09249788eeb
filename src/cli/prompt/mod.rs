//! Terminal prompts: ask the user for the pending items of a run. They show questions and read lines through the
//! [`Console`] port and do not access a terminal directly.
//!
//! A paste of several lines is one answer to a text question, and is rejected where a single letter decides.

mod asking;
mod console;
#[cfg(not(unix))]
#[path = "plain.rs"]
mod terminal;
#[cfg(unix)]
mod terminal;

use std::io::{self, IsTerminal as _};

use self::console::{Accepts, Console, Entry};
use self::terminal::Terminal;
pub(super) use self::terminal::{Restored, Withdrawal};
use super::answers::{self, approval, denial, json_or_text, who};
use super::text::{COMPACT, block, compact};
use super::view;
use crate::core::id::CallId;
use crate::core::run::{Channel, Coverage, Debt, Decision, HumanAnswer, InputGiven, Resume, Scope};
use crate::core::tool::{Arguments, Ask, Choice, Outcome, visible};
use crate::runner::ResultFor;

/// The choices for a call that requires approval.
const CHOICES: &str = "  [a]pprove once, [o]nly these arguments from now on, any arguments: in this [s]ession, al[w]ays; \
                       [d]eny, [e]dit, [?], [q] leave it pending: ";

/// Help text for the keys.
const KEYS: &str = "\
    a  this call runs, once
    o  so does the same call from now on, with these very arguments
    s  so does every further call of this tool in this session, with any arguments
    w  so does every further call of this tool by this agent, with any arguments, in any session
    d  it does not run; the model reads why
    e  it runs with other arguments, which you type
    q  it is left as it is, and `toolgate resume` asks again; so does Ctrl-C";

/// Warning before the answers cause a call to be sent a second time.
const TWICE: &str = "Warning: this call had begun when its server asked, and was cancelled. With answers it is sent a second \
                     time, and what it did before may be done twice.";

/// A prompt on a console.
pub(super) struct Prompt<C> {
    console: C,
}

/// The user's response to one pending item.
enum Said {
    Result(CallId, Outcome),
    Decision(CallId, Decision),
    Answer(CallId, HumanAnswer),
    Input(CallId, InputGiven),
    Later,
}

/// Opens a prompt at the terminal of this process, if there is one. If standard input is a pipe, the prompt reads from
/// the terminal device. A prompt that is still open is withdrawn.
pub(super) fn at_terminal() -> Option<Prompt<Terminal>> {
    Terminal::open().map(|console| Prompt { console })
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
    /// Shows a heading for the next questions.
    pub(super) fn heading(&mut self, text: &str) -> io::Result<()> {
        self.say(&format!("\n{}", visible(text)))
    }

    /// Reads all lines up to the end of the input, each of any length.
    pub(super) fn lines(&mut self) -> io::Result<String> {
        // The editor shows it: the terminal truncates lines typed before the editor reads.
        let mut question = "reading from the terminal; Ctrl-D on an empty line ends the text\n";
        let mut text = String::new();
        while let Some(entry) = self.console.line(question, Accepts::Text)? {
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

    /// Asks about each pending item in turn. Items without an answer stay pending.
    pub(super) fn ask(&mut self, debts: &[Debt]) -> io::Result<Resume> {
        let mut resume = Resume { partial: true, ..Resume::default() };
        for debt in debts {
            let said = match debt {
                Debt::Approval { .. } => self.decision(debt)?,
                Debt::ExternalResult { .. } => self.result(debt)?,
                Debt::Question { call_id, ask, .. } => self.answer(call_id, ask, debt)?,
                Debt::Input { .. } => self.input(debt)?,
                Debt::Task { .. } => Said::Later,
            };
            match said {
                Said::Result(call, outcome) => resume.results.push((call, outcome)),
                Said::Decision(call, decision) => resume.decisions.push((call, decision)),
                Said::Answer(call, answer) => resume.answers.push((call, answer)),
                Said::Input(call, given) => resume.inputs.push((call, given)),
                Said::Later => {}
            }
        }
        Ok(resume)
    }

    fn decision(&mut self, debt: &Debt) -> io::Result<Said> {
        let Debt::Approval { call_id, name, arguments, summary, .. } = debt else { return Ok(Said::Later) };
        self.say(&format!("\nMay {name} run?  {summary}"))?;
        self.say(&format!("  {}", pretty(arguments)))?;
        for line in view::circumstances(debt, jiff::Timestamp::now()) {
            self.say(&format!("  {line}"))?;
        }
        self.console.discard_typed_ahead()?;
        loop {
            let answer = self.key(CHOICES)?;
            let decision = match answer.as_deref().map(str::trim) {
                None | Some("q" | "quit") => return Ok(Said::Later),
                Some("a" | "y" | "yes" | "approve") => approval(Scope::Once, None),
                Some("s" | "session") => approval(Scope::Session, None),
                Some("w" | "always") => approval(Scope::Always, None),
                Some("o" | "only") => match self.reach()? {
                    Some(scope) => Decision { covers: Coverage::Arguments, ..approval(scope, None) },
                    None => continue,
                },
                Some("d" | "n" | "no" | "deny") => denial(self.text("  why (the model reads it): ")?),
                Some("e" | "edit") => match self.edited()? {
                    Some(edited) => approval(Scope::Once, Some(edited)),
                    None => continue,
                },
                Some(_) => {
                    self.say(KEYS)?;
                    continue;
                }
            };
            let decision = Decision { via: Channel::Terminal, ..decision };
            return Ok(Said::Decision(call_id.clone(), decision));
        }
    }

    /// Asks for the scope of an approval of these arguments.
    fn reach(&mut self) -> io::Result<Option<Scope>> {
        let answer = self.key("  the same call from now on: in this [s]ession, or al[w]ays (empty: neither): ")?;
        Ok(match answer.as_deref().map(str::trim) {
            Some("s" | "session") => Some(Scope::Session),
            Some("w" | "always") => Some(Scope::Always),
            Some(_) | None => None,
        })
    }

    /// Asks a question. A number chooses an option, numbers with commas choose several; any other text is the answer.
    fn answer(&mut self, call: &CallId, ask: &Ask, debt: &Debt) -> io::Result<Said> {
        self.say(&format!("\nThe model asks: {}", block(&ask.question).replace('\n', "\n  ")))?;
        if let Some(term) = view::term(debt, jiff::Timestamp::now()) {
            self.say(&format!("  {term}"))?;
        }
        for (index, option) in ask.options.iter().enumerate() {
            self.say(&format!("  {}. {}", index + 1, visible(option)))?;
        }
        self.console.discard_typed_ahead()?;
        loop {
            let Some(said) = self.text("  your answer (empty: leave it pending): ")? else { return Ok(Said::Later) };
            if said.trim().is_empty() {
                return Ok(Said::Later);
            }
            let numbers = said.split(',').map(|number| number.trim().parse::<usize>().ok());
            let chosen: Option<Vec<String>> =
                numbers.map(|number| ask.options.get(number?.checked_sub(1)?).cloned()).collect();
            let choice = match chosen {
                Some(chosen) => Choice { chosen, text: None },
                None => Choice::text(said.trim()),
            };
            match ask.objection(&choice) {
                None => {
                    return Ok(Said::Answer(call.clone(), HumanAnswer { choice, by: who(), via: Channel::Terminal }));
                }
                Some(objection) => self.say(&format!("  that {objection}"))?,
            }
        }
    }

    fn edited(&mut self) -> io::Result<Option<Arguments>> {
        let Some(text) = self.text("  the arguments, as JSON (empty: leave them): ")? else {
            return Ok(None);
        };
        if text.trim().is_empty() {
            return Ok(None);
        }
        match answers::edited_arguments(&text) {
            Ok(arguments) => Ok(Some(arguments)),
            Err(why) => {
                self.say(&format!("  {why}"))?;
                Ok(None)
            }
        }
    }

    fn result(&mut self, debt: &Debt) -> io::Result<Said> {
        let Debt::ExternalResult { call_id, name, arguments, result_schema, .. } = debt else { return Ok(Said::Later) };
        self.say(&format!("\n{name} waits for your application:"))?;
        self.say(&format!("  {}", pretty(arguments)))?;
        if let Some(schema) = result_schema {
            self.say(&format!("  its result has to fit {}", compact(schema, COMPACT)))?;
        }
        self.console.discard_typed_ahead()?;
        let text = self.text("  its result, JSON or text (`error: …` if it failed; empty leaves it pending): ")?;
        let said = match text.as_deref().map(str::trim) {
            None | Some("") => Said::Later,
            Some(text) => {
                let (call, outcome) = match text.strip_prefix("error:") {
                    Some(message) => ResultFor::error(call_id.clone(), message.trim()),
                    None => ResultFor::output(call_id.clone(), json_or_text(text)),
                };
                Said::Result(call, outcome)
            }
        };
        Ok(said)
    }

    fn input(&mut self, debt: &Debt) -> io::Result<Said> {
        let Debt::Input { call_id, name, arguments, questions, restarts, repeats, .. } = debt else {
            return Ok(Said::Later);
        };
        self.say(&format!("\nThe server of {name} needs input before it continues:"))?;
        self.say(&format!("  {}", pretty(arguments)))?;
        match (*restarts, *repeats) {
            (_, true) => self.say(&format!("  {TWICE}"))?,
            (true, false) => self.say("  (the call was stopped, and is sent again with the answers)")?,
            (false, false) => {}
        }
        let Some(reactions) = self.reactions(questions)? else { return Ok(Said::Later) };
        let mut given = InputGiven { reactions, by: who(), via: Channel::Terminal, repeat: false };
        if *repeats && given.accepts() {
            let said = self.key("  Send the call a second time? [y] yes, [n] no, leave it pending: ")?;
            match said.as_deref().map(str::trim) {
                Some("y" | "yes") => given.repeat = true,
                Some(_) | None => return Ok(Said::Later),
            }
        }
        Ok(Said::Input(call_id.clone(), given))
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.console.say(text)
    }

    /// Reads a letter that decides. Text that was pasted, or arrived together with more lines, is rejected.
    fn key(&mut self, question: &str) -> io::Result<Option<String>> {
        loop {
            match self.console.line(question, Accepts::Key)? {
                Some(entry) if entry.has_paste || entry.dropped => {
                    self.say("  pasted text decides nothing here; type one of the letters")?;
                }
                entry => return Ok(entry.map(|entry| entry.text)),
            }
        }
    }

    /// Reads a line of text; a paste may contain several lines.
    fn text(&mut self, question: &str) -> io::Result<Option<String>> {
        loop {
            match self.console.line(question, Accepts::Text)? {
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

/// The arguments over several lines, never shortened, because the user approves all of them.
fn pretty(arguments: &Arguments) -> String {
    view::pretty(arguments).replace('\n', "\n  ")
}

#[cfg(test)]
mod tests {
    use super::console::Script;
    use super::*;
    use crate::core::run::Answer;
    use crate::core::tool::{Annotations, Origin, Question, TaskHandle, ToolName};
    use serde_json::json;

    fn approval_debt(id: &str) -> Debt {
        Debt::Approval {
            call_id: id.into(),
            summary: "shop: add_note(text: \"late\")".into(),
            origin: Origin::Mcp { server: "shop".into(), tool: "add_note".into() },
            name: ToolName::parse("mcp_shop_add_note").unwrap(),
            arguments: Arguments::from_value(json!({"text": "late"})),
            annotations: Annotations::default(),
            trusted: false,
            definition: "sha256:d".into(),
            rule: None,
            why: "it writes".into(),
            policy: None,
            differences: Vec::new(),
            in_doubt: false,
            event: 7,
            since: None,
            until: None,
        }
    }

    fn external_debt(id: &str) -> Debt {
        Debt::ExternalResult {
            call_id: id.into(),
            tool: "refund".into(),
            name: ToolName::parse("ext_refund").unwrap(),
            arguments: Arguments::from_value(json!({"cents": 100})),
            result_schema: None,
            since: None,
            until: None,
        }
    }

    fn input_debt(id: &str) -> Debt {
        let schema = json!({"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]});
        let question = Question::Form { message: "Are you sure?".into(), schema };
        Debt::Input {
            call_id: id.into(),
            origin: Origin::Mcp { server: "shop".into(), tool: "book".into() },
            name: ToolName::parse("mcp_shop_book").unwrap(),
            arguments: Arguments::from_value(json!({"flight": "LX 38"})),
            questions: [("sure".to_owned(), question)].into(),
            restarts: true,
            repeats: false,
            held: false,
            held_until: None,
        }
    }

    fn ask(debts: &[Debt], typed: &str) -> (Resume, String) {
        let mut prompt = Prompt { console: Script::typing(typed) };
        let resume = prompt.ask(debts).unwrap();
        (resume, prompt.console.shown)
    }

    #[test]
    fn each_letter_gives_its_decision() {
        let debts: Vec<Debt> = ["1", "2", "3", "4", "5"].into_iter().map(approval_debt).collect();
        let (resume, _) = ask(&debts, "a\ns\nd\ntoo early\ne\n{\"text\":\"soon\"}\nq\n");
        let told: Vec<_> = resume
            .decisions
            .iter()
            .map(|(call, d)| (call.as_str(), d.answer, d.scope, d.reason.as_deref(), d.edited_arguments.is_some()))
            .collect();
        assert_eq!(
            told,
            [
                ("1", Answer::Approve, Scope::Once, None, false),
                ("2", Answer::Approve, Scope::Session, None, false),
                ("3", Answer::Deny, Scope::Once, Some("too early"), false),
                ("4", Answer::Approve, Scope::Once, None, true),
            ]
        );
        assert!(resume.partial);
    }

    #[test]
    fn an_approval_can_cover_more_calls_or_only_these_arguments() {
        let debts: Vec<Debt> = ["1", "2", "3"].into_iter().map(approval_debt).collect();
        let (resume, questions) = ask(&debts, "w\no\n\no\ns\no\nw\n");
        let told: Vec<_> = resume.decisions.iter().map(|(call, d)| (call.as_str(), d.scope, d.covers)).collect();
        let only = Coverage::Arguments;
        assert_eq!(
            told,
            [("1", Scope::Always, Coverage::Tool), ("2", Scope::Session, only), ("3", Scope::Always, only)]
        );
        assert!(questions.contains("because: it writes"), "{questions}");
    }

    #[test]
    fn an_unknown_key_shows_the_key_help() {
        for key in ["?", "yikes", ""] {
            let (resume, questions) = ask(&[approval_debt("1")], &format!("{key}\na\n"));
            assert!(
                questions.contains("w  so does every further call of this tool by this agent"),
                "{key}: {questions}"
            );
            assert_eq!(resume.decisions.len(), 1, "{key}");
        }
        let (_, questions) = ask(&[approval_debt("1")], "a\n");
        assert!(!questions.contains("w  so does"), "{questions}");
    }

    fn entry(text: &str) -> Entry {
        Entry { text: text.into(), ..Entry::default() }
    }

    fn pasted(text: &str) -> Entry {
        Entry { has_paste: true, ..entry(text) }
    }

    fn cut(text: &str) -> Entry {
        Entry { dropped: true, ..entry(text) }
    }

    fn ask_with(debts: &[Debt], entries: Vec<Entry>) -> (Resume, String) {
        let mut prompt = Prompt { console: Script::of(entries) };
        let resume = prompt.ask(debts).unwrap();
        (resume, prompt.console.shown)
    }

    #[test]
    fn a_paste_never_decides() {
        for paste in [pasted("a"), cut("a"), cut("w")] {
            let (resume, shown) = ask_with(&[approval_debt("1")], vec![paste, entry("q")]);
            assert!(resume.decisions.is_empty() && shown.contains("pasted text decides nothing"), "{shown}");
        }
        let (resume, _) = ask_with(&[approval_debt("1")], vec![entry("o"), pasted("w"), entry("s")]);
        assert_eq!(resume.decisions[0].1.scope, Scope::Session);
    }

    #[test]
    fn pasted_json_is_one_result_and_its_first_line_alone_is_rejected() {
        let debts = [external_debt("1")];
        let (resume, _) = ask_with(&debts, vec![pasted("{\n  \"ok\": true\n}\n")]);
        assert_eq!(resume.results, [ResultFor::output("1", json!({"ok": true}))]);
        let (resume, shown) = ask_with(&debts, vec![cut("{"), entry("")]);
        assert!(resume.results.is_empty() && shown.contains("nothing was taken"), "{shown}");
        let (resume, shown) = ask_with(&debts, vec![cut("all done")]);
        assert_eq!(resume.results, [ResultFor::output("1", json!("all done"))]);
        assert!(shown.contains("only the first is taken"), "{shown}");
    }

    #[test]
    fn arguments_that_are_not_an_object_are_asked_again() {
        let (resume, questions) = ask(&[approval_debt("1")], "e\n[1]\ne\n{\"a\":1}\n");
        assert!(questions.contains("arguments are a JSON object"), "{questions}");
        assert_eq!(resume.decisions[0].1.edited_arguments, Some(Arguments::from_value(json!({"a": 1}))));
    }

    #[test]
    fn a_result_is_json_text_or_an_error_and_empty_input_leaves_it_pending() {
        let debts = [external_debt("1"), external_debt("2"), external_debt("3"), external_debt("4")];
        let (resume, _) = ask(&debts, "{\"ok\":true}\nall done\nerror: no money\n\n");
        let expected = [
            ResultFor::output("1", json!({"ok": true})),
            ResultFor::output("2", json!("all done")),
            ResultFor::error("3", "no money"),
        ];
        assert_eq!(resume.results, expected);
    }

    #[test]
    fn the_end_of_the_input_leaves_everything_pending() {
        let (resume, questions) = ask(&[approval_debt("1"), external_debt("2"), input_debt("3")], "");
        assert!(resume.results.is_empty() && resume.decisions.is_empty() && resume.inputs.is_empty());
        assert!(questions.contains("\"text\": \"late\""), "{questions}");
    }

    #[test]
    fn server_questions_are_asked_and_tasks_are_not() {
        let task = Debt::Task {
            call_id: "2".into(),
            origin: Origin::Mcp { server: "shop".into(), tool: "bake".into() },
            name: ToolName::parse("mcp_shop_bake").unwrap(),
            arguments: Arguments::from_value(json!({})),
            task: TaskHandle { id: "t".into(), message: None, poll_ms: None, ttl_ms: None },
        };
        let (resume, questions) = ask(&[input_debt("1"), task], "a\nyes\n");
        let told: Vec<_> = resume.inputs.iter().map(|(call, given)| (call.as_str(), json!(given.reactions))).collect();
        assert_eq!(told, [("1", json!({"sure": {"action": "accept", "content": {"sure": true}}}))]);
        assert!(questions.contains("The server of mcp_shop_book needs input before"), "{questions}");
        assert!(questions.contains("sent again with the answers"), "{questions}");
    }
}
