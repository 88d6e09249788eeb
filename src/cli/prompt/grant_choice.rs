//! Choice of a grant: a condition between "these arguments" and "any arguments", proposed from the call and shown with
//! the past calls that it would also have allowed, and the scope.

use std::io;

use super::choice::numbers;
use super::console::Console;
use super::{Menu, Prompt};
use crate::cli::text::{count, list};
use crate::core::policy::Condition;
use crate::core::policy::analysis::{
    GrantProposal, HARMLESS, PastCall, command_argument, grant_proposals, likely_proposal,
};
use crate::core::run::{Coverage, Scope};
use crate::core::tool::{Arguments, escape_untrusted};

/// The past calls that a grant for the pending call would have concerned.
pub(in crate::cli) struct PastCalls {
    /// The number of runs that they come from, the newest of the agent.
    pub(in crate::cli) runs: usize,
    pub(in crate::cli) calls: Vec<PastCall>,
}

/// Reads the past calls of the tool that waits; `None` if the store cannot be read. It may take seconds, so it is called
/// when the proposals are opened.
pub(in crate::cli) type ReadPastCalls<'a> = &'a dyn Fn() -> Option<PastCalls>;

/// What the questions about a decision read from the store.
#[derive(Clone, Copy)]
pub(in crate::cli) struct CallRecord<'a> {
    pub(in crate::cli) past: ReadPastCalls<'a>,
    /// Why the call cannot be approved with a grant under this condition.
    pub(in crate::cli) refusal: &'a dyn Fn(&str) -> Option<String>,
}

/// The condition that a line chooses.
#[derive(Debug, PartialEq, Eq)]
struct ChosenCondition {
    words: String,
    condition: String,
    /// Whether it is none of the proposals, which compare the whole of a command.
    is_typed: bool,
}

/// The condition that one key takes, because a person most likely means it.
pub(super) struct LikelyGrant {
    /// What it covers, with the arguments that it leaves open.
    pub(super) words: String,
    condition: String,
}

impl LikelyGrant {
    pub(super) fn of(arguments: &Arguments) -> Option<Self> {
        let GrantProposal { words, condition, .. } = likely_proposal(arguments.as_object()?)?;
        let open = open_arguments(arguments, &condition).filter(|name| !HARMLESS.contains(name));
        let open: String = open.map(|name| format!(", `{}`", escape_untrusted(name))).collect();
        Some(Self { words: format!("{}, any description or timeout{open}", escape_untrusted(&words)), condition })
    }

    pub(super) fn coverage(&self) -> Coverage {
        Coverage::When(self.condition.clone())
    }
}

/// The conditions that a line names, all of which have to hold: numbers of proposals, and after them a typed condition.
fn chosen(line: &str, proposals: &[GrantProposal]) -> Result<ChosenCondition, String> {
    let is_number = |word: &str| !word.is_empty() && word.chars().all(|sign| sign.is_ascii_digit() || sign == ' ');
    let (mut listed, mut typed) = (0, line);
    while let (word, rest) = typed.split_once(',').unwrap_or((typed, ""))
        && is_number(word)
    {
        (listed, typed) = (line.len() - rest.len(), rest.trim_start());
    }
    let positions = numbers(line.get(..listed).unwrap_or_default(), proposals.len());
    let positions = positions.ok_or_else(|| match proposals.len() {
        0 => "there is no proposal to choose; type a condition".to_owned(),
        most => format!("type a number from 1 to {most}"),
    })?;
    let listed = positions.iter().filter_map(|at| proposals.get(*at));
    let mut all: Vec<(&str, &str)> = listed.map(|listed| (&*listed.words, &*listed.condition)).collect();
    if !typed.is_empty() {
        Condition::for_grant(typed).map_err(|error| error.to_string())?;
        all.push((typed, typed));
    }
    let words: Vec<&str> = all.iter().map(|(words, _)| *words).collect();
    let condition = match &all[..] {
        [(_, only)] => (*only).to_owned(),
        several => several.iter().map(|(_, condition)| format!("({condition})")).collect::<Vec<_>>().join(" && "),
    };
    Ok(ChosenCondition { words: words.join(" and "), condition, is_typed: !typed.is_empty() })
}

/// Whether a condition certainly compares the whole of an argument. Nothing is certain about an alternative or a negation.
fn compares_whole(condition: &str, argument: &str) -> bool {
    let is_certain = !["||", "!", "?"].iter().any(|sign| condition.contains(sign));
    let of_commands = ["args.commandStartsWith(", "args.commandPartsStartWith(", "args.commandEquals("];
    let compares = of_commands.iter().any(|function| condition.contains(function));
    is_certain && (compares || condition.contains(&format!("args.{argument} == ")))
}

/// The arguments that a condition leaves open, as the end of a sentence.
fn other_arguments(arguments: &Arguments, condition: &str) -> String {
    let open: Vec<String> =
        open_arguments(arguments, condition).map(|name| format!("any `{}`", escape_untrusted(name))).collect();
    if open.is_empty() { String::new() } else { format!(", and {}", list(open)) }
}

/// The arguments of a call that a condition leaves open.
fn open_arguments<'a>(arguments: &'a Arguments, condition: &str) -> impl Iterator<Item = &'a str> {
    let paths = || condition.split(|sign: char| !(sign.is_alphanumeric() || matches!(sign, '_' | '.')));
    let compares_command = paths().any(|path| path.starts_with("args.command"));
    let is_open = |name: &&String| {
        let of_command = ["command", "cmd", "command_line", "args", "arguments", "argv"].contains(&name.as_str());
        let is_named = paths()
            .filter_map(|path| path.strip_prefix("args."))
            .any(|path| path.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')));
        !(is_named || (compares_command && of_command))
    };
    let names = arguments.as_object().into_iter().flat_map(serde_json::Map::keys);
    names.filter(is_open).map(String::as_str).collect::<Vec<_>>().into_iter()
}

impl<C: Console> Prompt<C> {
    /// Asks for a condition that covers the call and calls like it, and for the scope of the approval.
    pub(super) fn condition(
        &mut self,
        arguments: &Arguments,
        record: CallRecord<'_>,
    ) -> io::Result<Option<(String, Scope)>> {
        let proposals = match arguments {
            Arguments::Object(object) => grant_proposals(object),
            Arguments::Malformed(_) => Vec::new(),
        };
        let runs_command = arguments.as_object().and_then(command_argument).is_some();
        let example = if runs_command { "args.commandStartsWith(['npm', 'test'])" } else { "args.amount < 100" };
        let (question, menu) = match proposals.is_empty() {
            true => {
                // A command without further arguments is that of these arguments.
                let reason =
                    if runs_command { "only the same command [o] is proposed" } else { "no condition is proposed" };
                self.say(&format!("  {reason} for these arguments; type a condition, such as {example}"))?;
                ("  calls with (a condition; empty: none): ", Menu::default())
            }
            false => (
                "  calls with (its number, several with commas, or a condition; empty: none): ",
                self.offered(&proposals, (record.past)().as_ref())?,
            ),
        };
        if runs_command && !proposals.is_empty() && !proposals.iter().any(GrantProposal::covers_similar_values) {
            self.say(&format!(
                "  no first words of this command are proposed: what follows them may say what runs; type them, such as {example}"
            ))?;
        }
        loop {
            let Some(line) = self.pick(question, &menu)? else { return Ok(None) };
            if line.trim().is_empty() {
                return Ok(None);
            }
            match chosen(line.trim(), &proposals) {
                Ok(ChosenCondition { condition, is_typed: true, .. })
                    if let Some(refusal) = (record.refusal)(&condition) =>
                {
                    self.say(&format!("  {}", escape_untrusted(&refusal)))?
                }
                Ok(ChosenCondition { words, condition, is_typed }) => {
                    let others = match other_arguments(arguments, &condition) {
                        none if none.is_empty() => ", and any further argument".to_owned(),
                        others => others + ", any further argument",
                    };
                    let scope = self.reach(&format!("calls of this tool with {}{others}", escape_untrusted(&words)))?;
                    if scope.is_some() && is_typed && !self.may_leave_open(arguments, &condition)? {
                        return Ok(None);
                    }
                    return Ok(scope.map(|scope| (condition, scope)));
                }
                Err(reason) => self.say(&format!("  {}", escape_untrusted(&reason)))?,
            }
        }
    }

    /// Whether the person wants a condition that does not compare the whole of the argument that says what runs.
    fn may_leave_open(&mut self, arguments: &Arguments, condition: &str) -> io::Result<bool> {
        let Some(argument) = arguments.as_object().and_then(command_argument) else { return Ok(true) };
        if compares_whole(condition, argument) {
            return Ok(true);
        }
        self.say(&format!(
            "  This condition does not compare the whole of `{argument}`: whatever the model writes there may run, and you are \
             not asked."
        ))?;
        self.confirmed("  allow it: [y]es, [n]o: ")
    }

    /// The proposals, each with the past calls that it would also have allowed.
    fn offered(&mut self, proposals: &[GrantProposal], past: Option<&PastCalls>) -> io::Result<Menu> {
        let mut options = Vec::new();
        for proposal in proposals {
            let mut option =
                format!("{}   {}", escape_untrusted(&proposal.words), escape_untrusted(&proposal.condition));
            let coverage = past.map(|past| proposal.coverage(&past.calls)).filter(|past| past.calls > 0);
            if let Some(coverage) = coverage {
                option.push_str(&format!("\nwould also have allowed {}", count(coverage.calls, "past call")));
                if coverage.refused > 0 {
                    option.push_str(&format!(", {} of them refused", coverage.refused));
                }
            }
            options.push(option);
        }
        if let Some(PastCalls { runs, calls }) = past {
            let (calls, runs) = (count(calls.len(), "other call"), count(*runs, "run"));
            let counted = format!("  counted: {calls} of this tool in the newest {runs} of this agent");
            let counted = self.console.paint().dim(counted);
            self.say(&counted)?;
        }
        Ok(Menu::new(options))
    }

    /// Asks for the scope of an approval of these calls.
    pub(super) fn reach(&mut self, calls: &str) -> io::Result<Option<Scope>> {
        let question = format!("  {calls} from now on: in this [s]ession, or al[w]ays (empty: neither): ");
        loop {
            match self.key(&question)?.as_deref().map(str::trim) {
                Some("s" | "session") => return Ok(Some(Scope::Session)),
                Some("w" | "always") => return Ok(Some(Scope::Always)),
                None | Some("" | "n" | "no" | "q") => return Ok(None),
                Some(_) => {
                    self.say("  s and w allow them; n, Enter and Esc go back to the choices, and nothing is decided")?
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_chooses_proposals_or_is_a_condition() {
        let proposals = grant_proposals(json!({"amount": 100, "order": 7}).as_object().unwrap());
        let condition = |line: &str| chosen(line, &proposals).map(|chosen| (chosen.condition, chosen.is_typed));
        assert_eq!(condition("1").unwrap(), ("args.amount == 100".to_owned(), false));
        let both = chosen("2,3", &proposals).unwrap();
        assert_eq!(both.words, "the same order and amount at most 100");
        assert_eq!((both.condition.as_str(), both.is_typed), ("(args.order == 7) && (args.amount <= 100)", false));
        assert_eq!(condition("args.amount < 50").unwrap(), ("args.amount < 50".to_owned(), true));
        let mixed = chosen("2, args.amount < 50", &proposals).unwrap();
        assert_eq!(mixed.words, "the same order and args.amount < 50");
        assert_eq!((mixed.condition.as_str(), mixed.is_typed), ("(args.order == 7) && (args.amount < 50)", true));
        let arguments =
            Arguments::Object(json!({"amount": 100, "amounts": 1, "order": 7}).as_object().unwrap().clone());
        assert_eq!(other_arguments(&arguments, "args.amount <= 100"), ", and any `amounts`, any `order`");
        let command = Arguments::Object(json!({"command": "ls", "timeout": 1}).as_object().unwrap().clone());
        assert_eq!(other_arguments(&command, "args.commandStartsWith(['ls'])"), ", and any `timeout`");
        for whole in ["args.command == 'ls' && args.timeout < 9", "args.commandStartsWith(['ls'])"] {
            assert!(compares_whole(whole, "command"), "{whole}");
        }
        for part in [
            "args.timeout < 9",
            "args.command.startsWith('ls')",
            "!(args.command == 'rm')",
            "args.command == 'ls' || true",
            "args.command == 'ls' ? true : true",
        ] {
            assert!(!compares_whole(part, "command"), "{part}");
        }
        assert_eq!(condition("9").unwrap_err(), "type a number from 1 to 3");
        assert!(condition("args.amount <").is_err() && condition("2, args.amount <").is_err());
    }

    #[test]
    fn one_key_takes_the_first_words_of_a_command() {
        let likely = |arguments| LikelyGrant::of(&Arguments::from_value(arguments)).map(|likely| likely.words);
        let command = likely(json!({"command": "git diff HEAD", "timeout": 9})).unwrap();
        assert_eq!(command, "a command `git diff …`, any description or timeout");
        let folder = likely(json!({"command": "cargo test", "cwd": "/srv"})).unwrap();
        assert_eq!(folder, "a command `cargo test …` in /srv, any description or timeout");
        let same = likely(json!({"command": "make test", "cwd": "/srv"})).unwrap();
        assert_eq!(same, "the same command, the same cwd, any description or timeout");
        let chained = likely(json!({"command": "make test | tee x"})).unwrap();
        assert_eq!(chained, "the same command, any description or timeout");
        let open = likely(json!({"command": "cargo test", "background": true})).unwrap();
        assert_eq!(open, "a command `cargo test …`, any description or timeout, `background`");
        let file = json!({"path": "/srv/app/a.rs", "content": "x\n"});
        let other = likely(json!({"command": "rm x", "path": "/srv/a"})).unwrap();
        assert_eq!(other, "the same command, the same path, any description or timeout");
        for arguments in
            [file, json!({"amount": 5}), json!({"command": "rm x", "files": ["/srv/a"]}), json!({"text": "late"})]
        {
            assert_eq!(likely(arguments.clone()), None, "{arguments}");
        }
    }
}
