//! The parts of any shell command, for rules that ask or deny. The result is an upper bound: a part that cannot be
//! parsed may run anything.

use serde_json::Value;

use super::options::base_name;

/// Programs and keywords that run the words after them.
const WRAPPERS: [&str; 39] = [
    "sudo", "doas", "su", "env", "nice", "ionice", "nohup", "setsid", "stdbuf", "time", "timeout", "command",
    "builtin", "exec", "xargs", "parallel", "watch", "strace", "chroot", "busybox", "unshare", "nsenter", "flock",
    "script", "runuser", "if", "then", "else", "elif", "while", "until", "do", "for", "select", "coproc", "!", "{",
    "function", "case",
];

/// Programs that run a text as a script.
const SHELLS: [&str; 14] =
    ["sh", "bash", "dash", "ksh", "zsh", "fish", "ash", "eval", "source", ".", "pwsh", "powershell", "cmd", "trap"];

/// A word, as far as it can be parsed.
#[derive(Debug, Default)]
struct Word {
    text: String,
    /// Contains a variable or braces: it may expand to any words.
    is_open: bool,
    /// Contains a glob: it may expand to file names.
    is_glob: bool,
}

/// Whether a command, with further words beside it, may run a program with these leading words.
pub(super) fn may_run(command: &Value, further: &[&Value], wanted: &[Vec<String>]) -> bool {
    let Some(mut words) = listed_words(command) else { return true };
    for value in further {
        let Some(more) = listed_words(value) else { return true };
        words.extend(more);
    }
    // A list is run as it is, or joined for a shell; a text is split by a shell.
    let as_listed: Vec<Word> = words.iter().map(|text| Word { text: (*text).to_owned(), ..Word::default() }).collect();
    part_may_run(&as_listed, wanted) || text_may_run(&words.join(" "), wanted)
}

fn listed_words(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(text) => Some(vec![text]),
        Value::Array(items) => items.iter().map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn text_may_run(command: &str, wanted: &[Vec<String>]) -> bool {
    match parts(command) {
        Some(parts) => parts.iter().any(|part| part_may_run(part, wanted)),
        None => true,
    }
}

/// Whether one part may run the wanted words, in this order and with any other words between them.
fn part_may_run(words: &[Word], wanted: &[Vec<String>]) -> bool {
    let is_assignment =
        |word: &&Word| !word.is_open && word.text.split_once('=').is_some_and(|(name, _)| is_name(name));
    let assignments = words.iter().take_while(is_assignment).count();
    let Some((program, rest)) = words.get(assignments..).and_then(<[Word]>::split_first) else { return false };
    let is_one_of = |names: &[&str]| names.iter().any(|name| program.is(name, WordRole::Program));
    if is_one_of(&SHELLS) {
        return true;
    }
    words_may_be(program, rest, wanted) || (is_one_of(&WRAPPERS) && wrapped_may_run(rest, wanted))
}

/// Whether a wrapper may run the wanted words: they begin at any of its words, or in a word that is a command itself.
fn wrapped_may_run(words: &[Word], wanted: &[Vec<String>]) -> bool {
    let is_shell = |word: &Word| SHELLS.iter().any(|name| word.is(name, WordRole::Program));
    let begins =
        |word: &Word| wanted.first().is_some_and(|names| names.iter().any(|name| word.is(name, WordRole::Program)));
    // The first possible start covers all later ones.
    let from = words.iter().position(begins).and_then(|from| words.get(from..)?.split_first());
    words.iter().any(is_shell)
        || from.is_some_and(|(program, rest)| words_may_be(program, rest, wanted))
        || words.iter().any(|word| word.text.contains(char::is_whitespace) && text_may_run(&word.text, wanted))
}

fn words_may_be(program: &Word, rest: &[Word], wanted: &[Vec<String>]) -> bool {
    let Some((first, wanted)) = wanted.split_first() else { return true };
    if !first.iter().any(|name| program.is(name, WordRole::Program)) {
        return false;
    }
    let mut rest = rest.iter();
    program.is_open
        || wanted.iter().all(|alternatives| {
            rest.as_slice().iter().any(|word| word.is_open)
                || rest.any(|word| alternatives.iter().any(|name| word.is(name, WordRole::Argument)))
        })
}

/// The position of a word in a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordRole {
    Program,
    Argument,
}

impl Word {
    /// Whether it may be this word. The name of a program may have a folder, and the case of its letters may not count.
    fn is(&self, name: &str, place: WordRole) -> bool {
        if self.is_open {
            return true;
        }
        let text = match place {
            WordRole::Program => base_name(&self.text).trim_end_matches(".exe"),
            WordRole::Argument => &self.text,
        };
        let wanted = if place == WordRole::Program { base_name(name) } else { name };
        text.eq_ignore_ascii_case(wanted) || (self.is_glob && glob_may_be(text, wanted))
    }
}

/// Whether a glob may match a word, by its beginning and its end.
fn glob_may_be(glob: &str, word: &str) -> bool {
    let (glob, word) = (glob.to_ascii_lowercase(), word.to_ascii_lowercase());
    let begin = glob.split(['*', '?', '[']).next().unwrap_or_default();
    let end = glob.rsplit(['*', '?', ']']).next().unwrap_or_default();
    word.starts_with(begin) && word.ends_with(end)
}

fn is_name(name: &str) -> bool {
    let name = name.trim_end_matches('+');
    !name.is_empty() && name.chars().all(|sign| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '[' | ']'))
}

/// The parts between chaining, grouping, substitution and redirection; `None` if the text cannot be parsed.
fn parts(text: &str) -> Option<Vec<Vec<Word>>> {
    let mut reader = Reader { parts: vec![Vec::new()], word: None };
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            ' ' | '\t' => reader.end_word(),
            ';' | '&' | '|' | '<' | '>' | '(' | ')' | '\n' | '\r' | '`' => reader.end_part(),
            '\'' => loop {
                match signs.next()? {
                    '\'' => {
                        reader.word();
                        break;
                    }
                    other => reader.word().text.push(other),
                }
            },
            '"' => reader.double_quoted(&mut signs)?,
            '\\' => match signs.next()? {
                '\n' => {}
                other => reader.word().text.push(other),
            },
            // `$'…'` has escapes of its own.
            '$' if signs.peek() == Some(&'\'') => return None,
            '$' | '{' | '}' => {
                let word = reader.word();
                word.text.push(sign);
                // `{` alone is a keyword, `}` alone ends what it begins.
                word.is_open |=
                    sign == '$' || word.text.len() > 1 || signs.peek().is_some_and(|next| !next.is_whitespace());
            }
            '*' | '?' | '[' => {
                let word = reader.word();
                word.is_glob = true;
                word.text.push(sign);
            }
            other => reader.word().text.push(other),
        }
    }
    reader.end_part();
    Some(reader.parts)
}

struct Reader {
    parts: Vec<Vec<Word>>,
    word: Option<Word>,
}

impl Reader {
    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) {
        if let (Some(word), Some(part)) = (self.word.take(), self.parts.last_mut()) {
            part.push(word);
        }
    }

    fn end_part(&mut self) {
        self.end_word();
        self.parts.push(Vec::new());
    }

    /// Text up to the closing quote. A command substitution in it is not parsed.
    fn double_quoted(&mut self, signs: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<()> {
        self.word();
        loop {
            match signs.next()? {
                '"' => return Some(()),
                '`' => return None,
                '$' if matches!(signs.peek(), Some('(' | '{')) => return None,
                '$' => self.word().is_open = true,
                '\\' => match signs.next()? {
                    '\n' => {}
                    escaped @ ('$' | '`' | '"' | '\\') => self.word().text.push(escaped),
                    other => self.word().text.extend(['\\', other]),
                },
                other => self.word().text.push(other),
            }
        }
    }
}
