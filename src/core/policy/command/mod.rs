//! Command patterns: the leading words of a shell command, compared as the shell splits it (decision 0015).
//!
//! A rule that allows matches *plain* commands only: one program and its words, in which nothing chains, substitutes,
//! redirects or expands ([`plain`]). A rule that asks or denies assumes the worst: it examines each part of a chained
//! command ([`parts`]). A rule that asks matches a command that it cannot parse; a rule that denies may match it, so that
//! the call requires approval. The words are those of a POSIX shell (sh, dash, bash, ksh, zsh).

mod chain;
mod operands;
mod options;
mod parts;
mod plain;

use std::fmt;

use serde_json::{Map, Value};

pub(super) use chain::parts as chained_parts;
pub(super) use operands::{is_reader, is_test_runner, outside_folder};
pub(super) use options::base_name;
use parts::Runs;
pub use plain::words as plain_words;

use super::Verdict;

/// The command that changes the folder.
pub(super) const CHANGE_FOLDER: &str = "cd";

/// The arguments that hold a command, for rules that name no argument.
const COMMAND_ARGUMENTS: [&str; 3] = ["command", "cmd", "command_line"];

/// The arguments that hold further words beside a command.
const WORD_ARGUMENTS: [&str; 3] = ["args", "arguments", "argv"];

/// Parts of the names of arguments that change what a command does. An allowance knows nothing about them.
const CONTEXT_ARGUMENTS: [&str; 6] = ["env", "stdin", "input", "shell", "script", "exec"];

/// The longest command that is parsed, in bytes. A longer one is not plain, and is assumed to run anything.
const MAX_COMMAND_BYTES: usize = 64 * 1024;

/// Command pattern: the leading words of a command, and what may follow them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPattern {
    /// The argument with the command; `None` for `command`, `cmd` or `command_line`, whichever the call has.
    pub argument: Option<String>,
    /// The leading words; each is one of several alternatives.
    pub words: Vec<Vec<String>>,
    /// The words that may follow the leading words.
    pub rest: FollowingWords,
}

/// The words that may follow the leading words of a command in a rule that allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowingWords {
    /// Any words, except options that are known to write files or to run programs.
    Any,
    /// Any words, but only these options.
    Options(Vec<String>),
    /// No further word.
    Nothing,
}

/// The result of comparing a command with a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Matches,
    /// A rule that denies may match: the command cannot be analysed. Contains the reason.
    MayMatch(String),
    Differs(String),
    /// The arguments are not known yet.
    Unknown,
}

impl CommandPattern {
    /// The error in the pattern for a rule with this verdict.
    pub fn fault(&self, verdict: Verdict) -> Option<String> {
        self.fault_of_form(verdict).or_else(|| self.wildcard())
    }

    /// The error of a word that is written as a pattern: it would match only a command with this character.
    fn wildcard(&self) -> Option<String> {
        let word = self.words.iter().flatten().find(|word| word.contains(['*', '?']))?;
        let remedy = match self.rest {
            FollowingWords::Nothing => "leave it and `exact: true` out if any words may follow",
            FollowingWords::Any | FollowingWords::Options(_) => {
                "leave it out if any words may follow, which needs no item"
            }
        };
        Some(format!(
            "`{word}` in `command` is no pattern: its items are whole words, compared as they are; {remedy}, and otherwise list the words: `[npm, [test, start]]`"
        ))
    }

    /// The error in the pattern, if its words may contain any character.
    pub(super) fn fault_of_form(&self, verdict: Verdict) -> Option<String> {
        let Some(program) = self.words.first() else {
            return Some("`command` names no program; write its words, for example `[git, [diff, log]]`".to_owned());
        };
        if self.words.iter().any(Vec::is_empty) {
            return Some("a list of alternatives in `command` is empty".to_owned());
        }
        let unsplit = program.iter().find(|word| word.is_empty() || word.contains(char::is_whitespace));
        if let Some(word) = unsplit {
            // Any words may follow without an item for them.
            let words: Vec<&str> = word.split_whitespace().filter(|word| !word.contains(['*', '?'])).collect();
            return Some(format!("`{word}` is no word; write one item for each word: `[{}]`", words.join(", ")));
        }
        match &self.rest {
            FollowingWords::Any => None,
            FollowingWords::Options(_) | FollowingWords::Nothing if verdict != Verdict::Allow => {
                Some("`options` and `exact` only narrow what a rule allows; remove them".to_owned())
            }
            FollowingWords::Options(options) => options.iter().find(|option| !option.starts_with('-')).map(|option| {
                format!("`{option}` is no option; `options` lists words that begin with `-`, other words are always accepted")
            }),
            FollowingWords::Nothing => None,
        }
    }

    /// Compares the command of a call with the pattern.
    pub(super) fn compare(&self, arguments: Option<&Map<String, Value>>, verdict: Verdict) -> Comparison {
        let Some(arguments) = arguments else { return Comparison::Unknown };
        match verdict {
            Verdict::Allow => self.why_not_plain(arguments).map_or(Comparison::Matches, Comparison::Differs),
            Verdict::Ask | Verdict::Deny => self.compare_at_worst(arguments, verdict),
        }
    }

    /// Why a rule that allows does not match; `None` if it does.
    fn why_not_plain(&self, arguments: &Map<String, Value>) -> Option<String> {
        match self.plain_words(arguments) {
            Ok(words) => self.why_other_words(&words),
            Err(reason) => Some(reason),
        }
    }

    /// Why a rule that allows does not match a plain command with these words; `None` if it does.
    pub(super) fn why_other_words(&self, words: &[String]) -> Option<String> {
        let differs = || Some(format!("the command does not begin with the words {self}"));
        let Some((leading, rest)) = words.split_at_checked(self.words.len()) else { return differs() };
        if !leading.iter().zip(&self.words).all(|(word, alternatives)| alternatives.contains(word)) {
            return differs();
        }
        let program = leading.first().map(String::as_str).unwrap_or_default();
        match &self.rest {
            FollowingWords::Nothing => {
                rest.first().map(|word| format!("`{word}` follows the words {self}, and nothing may follow"))
            }
            FollowingWords::Options(options) => {
                let other = rest.iter().find(|word| options::is_option(word) && !options::is_listed(word, options));
                other.map(|word| format!("the option `{word}` is not listed in `options`"))
            }
            FollowingWords::Any => {
                let unsafe_option = rest.iter().find(|word| options::may_write_or_run(program, word));
                let unsafe_option = unsafe_option.map(|word| {
                    format!("the option `{word}` may write files or run programs; list it in `options` if you mean it")
                });
                let outside = || operands::outside_repository(program, leading, rest);
                unsafe_option.or_else(|| {
                    outside().map(|word| {
                        format!("`{word}` may be a file outside of the repository, which `git diff` prints")
                    })
                })
            }
        }
    }

    /// Whether a part of a chained command is covered. A change of the folder decides what relative paths mean: it has to be
    /// the first part, and the pattern has all of its words.
    pub(super) fn covers_part(&self, index: usize, words: &[String]) -> bool {
        let is_change = words.first().is_some_and(|program| base_name(program) == CHANGE_FOLDER);
        let is_in_place = !is_change || (index == 0 && words.len() == self.words.len());
        is_in_place && self.why_other_words(words).is_none()
    }

    /// The words of each part of a chained command, no part of which changes what another one does; or the reason why it is
    /// not such a command.
    pub(super) fn independent_parts(&self, arguments: &Map<String, Value>) -> Result<Vec<Vec<String>>, String> {
        chain::independent_parts(self.text_of(arguments)?)
    }

    /// The command of a call, if it is a text to which nothing is added, or the reason why it is not.
    fn text_of<'a>(&self, arguments: &'a Map<String, Value>) -> Result<&'a str, String> {
        let (name, command, with_words) = self.sole_command(arguments)?;
        let text = command.as_str().filter(|_| with_words.is_empty());
        text.ok_or_else(|| format!("the argument `{name}` is not the text of a command"))
    }

    /// The words of a plain command, or the reason why it is not plain.
    fn plain_words(&self, arguments: &Map<String, Value>) -> Result<Vec<String>, String> {
        let (name, command, with_words) = self.sole_command(arguments)?;
        let mut words = match command {
            Value::String(command) => plain::words(command)?,
            Value::Array(items) => plain::argument_words(items)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                return Err(format!("the argument `{name}` is neither text nor a list of words"));
            }
        };
        match with_words[..] {
            [] => {}
            [Value::Array(items)] => words.extend(plain::argument_words(items)?),
            [Value::String(text)] => words.extend(plain::further_words(text)?),
            _ => return Err("the arguments of the command cannot be read".to_owned()),
        }
        Ok(words)
    }

    /// The only command of a call, with the name of its argument, and the arguments with further words; or the reason why
    /// nothing is certain about it.
    fn sole_command<'a>(&self, arguments: &'a Map<String, Value>) -> Result<SoleCommand<'a>, String> {
        if self.is_too_long(arguments) {
            return Err(format!("the command is longer than {} KiB", MAX_COMMAND_BYTES / 1024));
        }
        let present = self.command_arguments(arguments);
        let [(name, command)] = present[..] else {
            return Err(match present.is_empty() {
                true => format!("there is no argument {}", self.wanted_arguments()),
                false => "the call has more than one argument with a command".to_owned(),
            });
        };
        let mut with_words = Vec::new();
        for (other, value) in arguments.iter().filter(|(other, value)| *other != name && !is_blank(value)) {
            let lowercase = other.to_ascii_lowercase();
            if WORD_ARGUMENTS.contains(&other.as_str()) {
                with_words.push(value);
            } else if COMMAND_ARGUMENTS.contains(&lowercase.as_str()) || is_context(&lowercase) {
                return Err(format!("the argument `{other}` may change what the command does"));
            }
        }
        Ok((name, command, with_words))
    }

    /// Compares the command for a rule that asks or denies.
    fn compare_at_worst(&self, arguments: &Map<String, Value>, verdict: Verdict) -> Comparison {
        let present = self.command_arguments(arguments);
        if present.is_empty() {
            return Comparison::Differs(format!("there is no argument {}", self.wanted_arguments()));
        }
        let further = arguments.iter().filter(|(name, value)| {
            WORD_ARGUMENTS.contains(&name.as_str()) && !is_blank(value) && !present.iter().any(|(own, _)| own == name)
        });
        let further: Vec<&Value> = further.map(|(_, value)| value).collect();
        let runs = match self.is_too_long(arguments) {
            true => Runs::Possibly,
            false => {
                let each = present.iter().map(|(_, command)| parts::runs(command, &further, &self.words));
                each.max().unwrap_or(Runs::Never)
            }
        };
        match (runs, verdict) {
            (Runs::Certainly, _) | (Runs::Possibly, Verdict::Ask) => Comparison::Matches,
            (Runs::Possibly, Verdict::Deny | Verdict::Allow) => Comparison::MayMatch(format!(
                "a part of the command that cannot be analysed may begin with the words {self}"
            )),
            (Runs::Never, _) => Comparison::Differs(format!("no part of the command begins with the words {self}")),
        }
    }

    /// Whether it looks for a command in an argument with this name.
    pub(super) fn reads(&self, argument: &str) -> bool {
        match &self.argument {
            Some(own) => own == argument,
            None => COMMAND_ARGUMENTS.contains(&argument),
        }
    }

    fn command_arguments<'a>(&self, arguments: &'a Map<String, Value>) -> Vec<(&'a String, &'a Value)> {
        arguments.iter().filter(|(name, value)| self.reads(name) && !value.is_null()).collect()
    }

    fn is_too_long(&self, arguments: &Map<String, Value>) -> bool {
        let words =
            arguments.iter().filter(|(name, _)| WORD_ARGUMENTS.contains(&name.as_str())).map(|(_, value)| value);
        let texts = words.chain(self.command_arguments(arguments).into_iter().map(|(_, command)| command));
        texts.map(length).sum::<usize>() > MAX_COMMAND_BYTES
    }

    fn wanted_arguments(&self) -> String {
        match &self.argument {
            Some(argument) => format!("`{argument}`"),
            None => COMMAND_ARGUMENTS.map(|name| format!("`{name}`")).join(", "),
        }
    }
}

/// Whether an argument of this name, in lower case, changes what a command does. A `description` is no `script`.
fn is_context(name: &str) -> bool {
    let name = name.replace("description", "");
    CONTEXT_ARGUMENTS.iter().any(|part| name.contains(part))
}

/// The name of the argument with the only command of a call, the command, and the arguments with further words.
type SoleCommand<'a> = (&'a String, &'a Value, Vec<&'a Value>);

/// The pattern of any command.
const ANY: CommandPattern = CommandPattern { argument: None, words: Vec::new(), rest: FollowingWords::Any };

/// The words of the plain command of a call, or the reason why it is not plain.
pub(super) fn words_of_call(arguments: &Map<String, Value>) -> Result<Vec<String>, String> {
    ANY.plain_words(arguments)
}

/// The command of a call, if it is a text to which nothing is added, or the reason why it is not.
pub(super) fn text_of_call(arguments: &Map<String, Value>) -> Result<&str, String> {
    ANY.text_of(arguments)
}

/// Whether a call has arguments besides its command.
pub(super) fn has_further_arguments(arguments: &Map<String, Value>) -> bool {
    arguments.iter().any(|(name, value)| !is_part_of_command(name) && !is_blank(value))
}

/// Whether an argument of this name has the command of a call, or its words.
pub(super) fn is_part_of_command(name: &str) -> bool {
    COMMAND_ARGUMENTS.contains(&name) || WORD_ARGUMENTS.contains(&name)
}

/// The length in bytes of a text, or of the texts of a list.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| item.as_str().map_or(1, |text| text.len() + 1)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => 1,
    }
}

/// Whether a value is blank: null, false, or empty.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// As it is written in a policy: `[git, [diff, log]]`.
impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |alternatives: &Vec<String>| match &alternatives[..] {
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let words: Vec<String> = self.words.iter().map(word).collect();
        write!(f, "`[{}]`", words.join(", "))
    }
}

#[cfg(test)]
mod tests;
