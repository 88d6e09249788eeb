//! Asking the person at the terminal what a run is owed. Knows no terminal itself: it reads lines and writes lines.

mod asking;
mod keyboard;

use std::io::{self, BufRead, IsTerminal, Write};

use self::keyboard::Keyboard;
use super::answers::{self, approval, denial, json_or_text, who};
use super::guard;
use super::paint::Paint;
use super::text::{COMPACT, block, compact};
use super::view;
use crate::core::id::CallId;
use crate::core::run::{Channel, Coverage, Debt, Decision, HumanAnswer, InputGiven, Resume, Scope};
use crate::core::tool::{Arguments, Ask, Choice, Outcome, visible};
use crate::runner::ResultFor;

/// What may be said to a call that waits for a decision.
const CHOICES: &str = "  [a]pprove once, [o]nly these arguments from now on, any arguments: in this [s]ession, al[w]ays; \
                       [d]eny, [e]dit, [?], [q] leave it pending: ";

/// What each key does.
const KEYS: &str = "\
    a  this call runs, once
    o  so does the same call from now on, with these very arguments
    s  so does every further call of this tool in this session, whatever the arguments
    w  so does every further call of this tool by this agent, whatever the arguments and the session
    d  it does not run; the model reads why
    e  it runs with other arguments, which you type
    q  it is left as it is, and asked about by the next `toolgate resume`; so does Ctrl-C";

/// What answers to the server of a call that had begun come to.
const TWICE: &str = "Warning: this call had begun when its server asked, and was cancelled. With answers it is sent a second \
                     time, and what it did before may be done twice.";

/// A person to be asked.
pub(super) struct Prompt<R, W> {
    answers: R,
    questions: W,
    keyboard: Keyboard,
}

/// What they said to one debt.
enum Said {
    Result(CallId, Outcome),
    Decision(CallId, Decision),
    Answer(CallId, HumanAnswer),
    Input(CallId, InputGiven),
    Later,
}

/// The person at the terminal of this process, if there is one. Standard input may be taken by a message that was piped
/// in; the terminal itself is asked then.
pub(super) fn at_terminal() -> Option<Prompt<Box<dyn BufRead + Send>, io::Stderr>> {
    let (answers, keyboard): (Box<dyn BufRead + Send>, _) = if io::stdin().is_terminal() {
        (Box::new(io::BufReader::new(io::stdin())), Keyboard::of(io::stdin()))
    } else {
        let terminal = std::fs::File::open("/dev/tty").ok()?;
        (Box::new(io::BufReader::new(terminal.try_clone().ok()?)), Keyboard::of(terminal))
    };
    Some(Prompt { answers, questions: io::stderr(), keyboard })
}

/// Whether there is a person at the terminal of this process who can be asked.
pub(super) fn is_person_at_terminal() -> bool {
    io::stdin().is_terminal() || std::fs::File::open("/dev/tty").is_ok()
}

impl<R: BufRead, W: Write> Prompt<R, W> {
    #[cfg(test)]
    fn new(answers: R, questions: W) -> Self {
        Self { answers, questions, keyboard: Keyboard::none() }
    }

    /// Says what the next questions are about.
    pub(super) fn heading(&mut self, text: &str) -> io::Result<()> {
        self.say(&format!("\n{}", visible(text)))
    }

    /// Asks about each debt in turn. What is left open stays pending; nothing at all means that everything is.
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
        self.keyboard.forget_what_was_typed();
        loop {
            let answer = self.line(CHOICES)?;
            let decision = match answer.as_deref().map(str::trim) {
                None | Some("q" | "quit") => return Ok(Said::Later),
                Some("a" | "y" | "yes" | "approve") => approval(Scope::Once, None),
                Some("s" | "session") => approval(Scope::Session, None),
                Some("w" | "always") => approval(Scope::Always, None),
                Some("o" | "only") => match self.reach()? {
                    Some(scope) => Decision { covers: Coverage::Arguments, ..approval(scope, None) },
                    None => continue,
                },
                Some("d" | "n" | "no" | "deny") => denial(self.line("  why (the model reads it): ")?),
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

    /// How far a yes to these arguments reaches.
    fn reach(&mut self) -> io::Result<Option<Scope>> {
        let answer = self.line("  the same call from now on: in this [s]ession, or al[w]ays (empty: neither): ")?;
        Ok(match answer.as_deref().map(str::trim) {
            Some("s" | "session") => Some(Scope::Session),
            Some("w" | "always") => Some(Scope::Always),
            Some(_) | None => None,
        })
    }

    /// A number chooses an option, several numbers with commas choose several; anything else is the answer in words.
    fn answer(&mut self, call: &CallId, ask: &Ask, debt: &Debt) -> io::Result<Said> {
        self.say(&format!("\nThe model asks: {}", block(&ask.question).replace('\n', "\n  ")))?;
        if let Some(term) = view::term(debt, jiff::Timestamp::now()) {
            self.say(&format!("  {term}"))?;
        }
        for (index, option) in ask.options.iter().enumerate() {
            self.say(&format!("  {}. {}", index + 1, visible(option)))?;
        }
        self.keyboard.forget_what_was_typed();
        loop {
            let Some(said) = self.line("  your answer (empty: leave it pending): ")? else { return Ok(Said::Later) };
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
        let Some(text) = self.line("  the arguments, as JSON on one line (empty: leave them): ")? else {
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
        self.say(&format!("\n{name} is yours to run:"))?;
        self.say(&format!("  {}", pretty(arguments)))?;
        if let Some(schema) = result_schema {
            self.say(&format!("  its result has to fit {}", compact(schema, COMPACT)))?;
        }
        self.keyboard.forget_what_was_typed();
        let text = self.line("  its result, JSON or text (`error: …` if it failed; empty leaves it pending): ")?;
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
        self.say(&format!("\nThe server of {name} wants to know something before it goes on:"))?;
        self.say(&format!("  {}", pretty(arguments)))?;
        match (*restarts, *repeats) {
            (_, true) => self.say(&format!("  {TWICE}"))?,
            (true, false) => self.say("  (the call was stopped, and is sent again with the answers)")?,
            (false, false) => {}
        }
        let Some(reactions) = self.reactions(questions)? else { return Ok(Said::Later) };
        let mut given = InputGiven { reactions, by: who(), via: Channel::Terminal, repeat: false };
        if *repeats && given.accepts() {
            match self.line("  Send the call a second time? [y] yes, [n] no, leave it pending: ")?.as_deref() {
                Some("y" | "yes") => given.repeat = true,
                Some(_) | None => return Ok(Said::Later),
            }
        }
        Ok(Said::Input(call_id.clone(), given))
    }

    /// Says a line, past the guard like everything that is printed.
    fn say(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.questions, "{}", guard::shown(text, Paint::Plain))
    }

    /// One line; `None` at the end of the input.
    fn line(&mut self, question: &str) -> io::Result<Option<String>> {
        write!(self.questions, "{}", guard::shown(question, Paint::Plain))?;
        self.questions.flush()?;
        let mut line = String::new();
        let read = self.answers.read_line(&mut line)?;
        Ok((read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned()))
    }
}

/// A person decides about all of it, so nothing is cut off.
fn pretty(arguments: &Arguments) -> String {
    view::pretty(arguments).replace('\n', "\n  ")
}

#[cfg(test)]
mod tests {
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
        let mut questions = Vec::new();
        let resume = Prompt::new(typed.as_bytes(), &mut questions).ask(debts).unwrap();
        (resume, String::from_utf8(questions).unwrap())
    }

    #[test]
    fn each_letter_means_its_decision() {
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
    fn a_yes_may_reach_further_or_to_these_arguments_alone() {
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
    fn a_key_that_means_nothing_is_answered_with_what_each_key_does() {
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

    #[test]
    fn arguments_that_are_no_object_are_asked_for_again() {
        let (resume, questions) = ask(&[approval_debt("1")], "e\n[1]\ne\n{\"a\":1}\n");
        assert!(questions.contains("arguments are a JSON object"), "{questions}");
        assert_eq!(resume.decisions[0].1.edited_arguments, Some(Arguments::from_value(json!({"a": 1}))));
    }

    #[test]
    fn a_result_is_json_text_or_an_error_and_nothing_leaves_it_pending() {
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
    fn what_a_server_wants_to_know_is_asked_and_a_task_is_not() {
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
        assert!(questions.contains("The server of mcp_shop_book wants to know something"), "{questions}");
        assert!(questions.contains("sent again with the answers"), "{questions}");
    }
}
