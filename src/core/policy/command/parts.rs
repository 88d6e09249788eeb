//! The parts of any shell command, for rules that ask or deny. The result is an upper bound: a part that cannot be
//! parsed may run anything, which is not certain.

use serde_json::Value;

use super::options::{base_name, is_option};

/// Programs and keywords that run the words after them.
pub(super) const WRAPPERS: [&str; 39] = [
    "sudo", "doas", "su", "env", "nice", "ionice", "nohup", "setsid", "stdbuf", "time", "timeout", "command",
    "builtin", "exec", "xargs", "parallel", "watch", "strace", "chroot", "busybox", "unshare", "nsenter", "flock",
    "script", "runuser", "if", "then", "else", "elif", "while", "until", "do", "for", "select", "coproc", "!", "{",
    "function", "case",
];

/// Wrappers whose first word is no command: a folder or a file.
const WITH_OPERAND: [&str; 2] = ["chroot", "flock"];

/// Options of wrappers that have a value in the next word.
const WITH_VALUE: [&str; 5] = ["-u", "-g", "-I", "-d", "-C"];

/// Programs that run a text as a script.
pub(super) const SHELLS: [&str; 14] =
    ["sh", "bash", "dash", "ksh", "zsh", "fish", "ash", "eval", "source", ".", "pwsh", "powershell", "cmd", "trap"];

/// The most words of a wrapper among which its program is looked for.
const MAX_STARTS: usize = 64;

/// The deepest nesting of texts that shells run. A deeper one may run anything.
const MAX_DEPTH: usize = 5;

/// Whether a command runs a program with certain words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Runs {
    Never,
    /// It cannot be known from the command: it expands a variable, runs a script, or cannot be parsed.
    Possibly,
    Certainly,
}

/// A word, as far as it can be parsed.
#[derive(Debug, Default)]
struct Word {
    text: String,
    /// Contains a variable or braces: it may expand to any words.
    is_open: bool,
    /// Contains a glob: it may expand to file names.
    is_glob: bool,
}

/// The words between two separators.
#[derive(Debug, Default)]
struct Part {
    words: Vec<Word>,
    /// Lies in a comment, or in the text of a here-document as far as is known.
    is_text: bool,
}

/// A command, as far as it can be parsed.
struct ParsedCommand {
    parts: Vec<Part>,
    is_complete: bool,
}

/// Whether a command, with further words beside it, runs a program with these leading words.
pub(super) fn runs(command: &Value, further: &[&Value], wanted: &[Vec<String>]) -> Runs {
    let values = || std::iter::once(command).chain(further.iter().copied());
    let Some(words) = values().map(listed_words).collect::<Option<Vec<_>>>().map(|words| words.concat()) else {
        return Runs::Possibly;
    };
    // A list is run as it is, or joined for a shell; a text is split by a shell.
    let as_listed = part_runs(&literal(&words), wanted, MAX_DEPTH);
    let joined = text_runs(&words.join(" "), wanted, MAX_DEPTH);
    if values().all(Value::is_string) {
        return as_listed.max(joined);
    }
    let beside_text = command.as_str().map_or(Runs::Never, |text| {
        let mut parsed = parse(text);
        let listed: Vec<&str> = further.iter().filter_map(|value| listed_words(value)).flatten().collect();
        if let Some(last) = parsed.parts.iter_mut().rfind(|part| !part.words.is_empty()) {
            last.words.extend(literal(&listed));
        }
        parsed.runs(wanted, MAX_DEPTH)
    });
    as_listed.max(beside_text).max(joined.min(Runs::Possibly))
}

fn listed_words(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(text) => Some(vec![text]),
        Value::Array(items) => items.iter().map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn literal(words: &[&str]) -> Vec<Word> {
    words.iter().map(|text| Word { text: (*text).to_owned(), ..Word::default() }).collect()
}

fn text_runs(command: &str, wanted: &[Vec<String>], depth: usize) -> Runs {
    match depth.checked_sub(1) {
        Some(depth) => parse(command).runs(wanted, depth),
        None => Runs::Possibly,
    }
}

impl ParsedCommand {
    fn runs(&self, wanted: &[Vec<String>], depth: usize) -> Runs {
        let in_part = |part: &Part| {
            let limit = if part.is_text { Runs::Possibly } else { Runs::Certainly };
            part_runs(&part.words, wanted, depth).min(limit)
        };
        let unknown = if self.is_complete { Runs::Never } else { Runs::Possibly };
        self.parts.iter().map(in_part).fold(unknown, Ord::max)
    }
}

/// Whether one part runs the wanted words, in this order and with any other words between them.
fn part_runs(words: &[Word], wanted: &[Vec<String>], depth: usize) -> Runs {
    let assignments = words.iter().take_while(|word| word.is_assignment()).count();
    let words = words.get(assignments..).unwrap_or_default();
    let Some((program, rest)) = words.split_first() else { return Runs::Never };
    let by_name = words_run(program, rest, wanted);
    let as_shell = match program.is_one_of(&SHELLS) {
        Runs::Certainly => script_runs(program, rest, wanted, depth),
        uncertain @ (Runs::Never | Runs::Possibly) => uncertain,
    };
    let as_wrapper = match program.is_one_of(&WRAPPERS) {
        Runs::Certainly => wrapped_runs(words, wanted, depth),
        uncertain @ (Runs::Never | Runs::Possibly) => uncertain,
    };
    by_name.max(as_shell).max(as_wrapper)
}

/// Whether a shell runs the wanted words: certain only if its script is in its words.
fn script_runs(shell: &Word, rest: &[Word], wanted: &[Vec<String>], depth: usize) -> Runs {
    let is_script_next = |word: &Word| {
        let text = word.text.to_ascii_lowercase();
        text == "/c" || (is_option(&text) && !text.starts_with("--") && text.contains('c'))
    };
    let script = match base_name(&shell.text) {
        "eval" => rest.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "),
        "trap" => rest.first().map(|word| word.text.clone()).unwrap_or_default(),
        _ => {
            let script = rest.iter().position(is_script_next).and_then(|option| rest.get(option + 1));
            script.map(|word| word.text.clone()).unwrap_or_default()
        }
    };
    text_runs(&script, wanted, depth).max(Runs::Possibly)
}

/// Whether a wrapper runs the wanted words. They may begin at any of its words, or in a word that is a command itself; it is
/// certain if only options and their values stand before them.
fn wrapped_runs(words: &[Word], wanted: &[Vec<String>], depth: usize) -> Runs {
    let text_in = |word: &Word| match word.text.contains(char::is_whitespace) {
        true => text_runs(&word.text, wanted, depth),
        false => Runs::Never,
    };
    let starts = possible_starts(words);
    let is_shell = |start: &&(&Word, &[Word])| start.0.is_one_of(&SHELLS) == Runs::Certainly;
    let as_shell =
        starts.iter().find(is_shell).map_or(Runs::Never, |(shell, rest)| script_runs(shell, rest, wanted, depth));
    let begins_at = |(program, rest): &(&Word, &[Word])| words_run(program, rest, wanted).max(text_in(program));
    let certain = starts.iter().map(begins_at).fold(as_shell, Ord::max);
    if certain == Runs::Certainly {
        return certain;
    }
    let begins = |word: &Word| wanted.first().is_some_and(|names| word.may_be_one_of(names));
    let after = words.get(1..).unwrap_or_default();
    // The first possible start covers all later ones.
    let from = after.iter().position(begins).and_then(|from| after.get(from..)?.split_first());
    let possible = from.map_or(Runs::Never, |(program, rest)| words_run(program, rest, wanted));
    let is_shell = after.iter().map(|word| word.is_one_of(&SHELLS)).max().unwrap_or(Runs::Never);
    let in_text = after.iter().map(text_in).max().unwrap_or(Runs::Never);
    certain.max(possible.max(is_shell).max(in_text).min(Runs::Possibly))
}

/// The program that a wrapper runs, with the words after it, for each word that may be the program: after options, their
/// values, assignments and other wrappers.
fn possible_starts(words: &[Word]) -> Vec<(&Word, &[Word])> {
    let (mut starts, mut before, mut has_operand) = (Vec::new(), "", false);
    for (index, word) in words.iter().enumerate().take(MAX_STARTS) {
        starts.extend(words.get(index + 1..).filter(|_| index > 0).map(|rest| (word, rest)));
        // `command -v` names a program and does not run it.
        let is_lookup = before == "command" && matches!(word.text.as_str(), "-v" | "-V");
        let is_value = word.text.starts_with(|sign: char| sign.is_ascii_digit()) || WITH_VALUE.contains(&before);
        let is_wrapper = word.is_one_of(&WRAPPERS) == Runs::Certainly;
        has_operand |= word.is_one_of(&WITH_OPERAND) == Runs::Certainly;
        if is_lookup {
            break;
        }
        if !(is_wrapper || is_value || word.is_option() || word.is_assignment()) {
            if !has_operand {
                break;
            }
            has_operand = false;
        }
        before = &word.text;
    }
    starts
}

fn words_run(program: &Word, rest: &[Word], wanted: &[Vec<String>]) -> Runs {
    let Some((first, wanted)) = wanted.split_first() else { return Runs::Certainly };
    let begins = first.iter().map(|name| program.is(name, WordRole::Program)).max().unwrap_or(Runs::Never);
    let mut left = rest.iter();
    let may_follow = |alternatives: &Vec<String>| {
        left.as_slice().iter().any(|word| word.is_open)
            || left.any(|word| alternatives.iter().any(|name| word.is(name, WordRole::Argument) > Runs::Never))
    };
    if begins == Runs::Never || program.is_open {
        return begins;
    }
    match wanted.iter().all(may_follow) {
        false => Runs::Never,
        true if certainly_follow(rest, wanted) => begins,
        true => Runs::Possibly,
    }
}

/// Whether the wanted words stand after a program with only options and their values between them. An option may stand after
/// any words.
fn certainly_follow(rest: &[Word], wanted: &[Vec<String>]) -> bool {
    let mut left = rest;
    wanted.iter().all(|alternatives| {
        let is_wanted =
            |word: &Word| alternatives.iter().any(|name| word.is(name, WordRole::Argument) == Runs::Certainly);
        let Some(found) = left.iter().position(is_wanted) else { return false };
        let (skipped, others) = left.split_at(found);
        left = others.get(1..).unwrap_or_default();
        let is_value = |index: usize| index.checked_sub(1).and_then(|at| skipped.get(at)).is_some_and(Word::is_option);
        let is_of_option = |(index, word): (usize, &Word)| word.is_option() || is_value(index);
        alternatives.iter().all(|name| is_option(name)) || skipped.iter().enumerate().all(is_of_option)
    })
}

/// The position of a word in a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordRole {
    Program,
    Argument,
}

impl Word {
    /// Whether it is this word. The name of a program may have a folder, and the case of its letters may not count.
    fn is(&self, name: &str, place: WordRole) -> Runs {
        if self.is_open {
            return Runs::Possibly;
        }
        let text = match place {
            WordRole::Program => base_name(&self.text).trim_end_matches(".exe"),
            WordRole::Argument => &self.text,
        };
        let wanted = if place == WordRole::Program { base_name(name) } else { name };
        match text.eq_ignore_ascii_case(wanted) {
            true => Runs::Certainly,
            false if self.is_glob && glob_may_be(text, wanted) => Runs::Possibly,
            false => Runs::Never,
        }
    }

    /// Whether it is one of these programs.
    fn is_one_of(&self, names: &[&str]) -> Runs {
        names.iter().map(|name| self.is(name, WordRole::Program)).max().unwrap_or(Runs::Never)
    }

    fn is_option(&self) -> bool {
        self.text.starts_with('-')
    }

    fn may_be_one_of(&self, names: &[String]) -> bool {
        names.iter().any(|name| self.is(name, WordRole::Program) > Runs::Never)
    }

    /// Whether it sets a variable. The value may be open, unless it goes on behind a substitution.
    fn is_assignment(&self) -> bool {
        !self.is_cut() && self.text.split_once('=').is_some_and(|(name, _)| is_name(name))
    }

    /// Whether a substitution ends what is parsed of it.
    fn is_cut(&self) -> bool {
        self.is_open && self.text.ends_with('$')
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

type Signs<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The parts between chaining, grouping and substitution, up to the place where parsing fails.
fn parse(text: &str) -> ParsedCommand {
    let mut reader = Reader::default();
    let mut signs = text.chars().peekable();
    let is_read = reader.read(&mut signs).is_some();
    reader.end_part();
    ParsedCommand { is_complete: is_read && !reader.has_quote_in_text, parts: reader.parts }
}

#[derive(Default)]
struct Reader {
    parts: Vec<Part>,
    words: Vec<Word>,
    word: Option<Word>,
    is_comment: bool,
    /// The next word is the file of a redirection.
    awaits_target: bool,
    /// A substitution in backticks began.
    is_substitution: bool,
    /// A here-document begins at the next line.
    awaits_document: bool,
    /// A here-document began. Where it ends is not known.
    is_document: bool,
    /// A quote stands in a comment or here-document: what follows may be quoted or not.
    has_quote_in_text: bool,
}

impl Reader {
    /// Reads the signs; `None` where they cannot be parsed.
    fn read(&mut self, signs: &mut Signs<'_>) -> Option<()> {
        while let Some(sign) = signs.next() {
            match sign {
                ' ' | '\t' => self.end_word(),
                '\n' => self.end_line(),
                '<' | '>' => self.redirection(sign, signs),
                ';' | '&' | '|' | '(' | ')' | '\r' => self.end_part(),
                '`' => self.backtick(),
                '#' if self.word.is_none() => {
                    self.end_part();
                    self.is_comment = true;
                }
                '\'' | '"' if self.is_text() => self.has_quote_in_text = true,
                '\'' => self.single_quoted(signs)?,
                '"' => self.double_quoted(signs)?,
                '\\' => match signs.next()? {
                    '\n' => {}
                    other => self.word().text.push(other),
                },
                // `$'…'` has escapes of its own.
                '$' if signs.peek() == Some(&'\'') => return None,
                '$' | '{' | '}' => {
                    let word = self.word();
                    word.text.push(sign);
                    // `{` alone is a keyword, `}` alone ends what it begins.
                    word.is_open |=
                        sign == '$' || word.text.len() > 1 || signs.peek().is_some_and(|next| !next.is_whitespace());
                }
                '*' | '?' | '[' => {
                    let word = self.word();
                    word.is_glob = true;
                    word.text.push(sign);
                }
                other => self.word().text.push(other),
            }
        }
        Some(())
    }

    fn is_text(&self) -> bool {
        self.is_comment || self.is_document
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let is_target = std::mem::take(&mut self.awaits_target);
        self.words.extend(Some(word).filter(|word| !is_target || word.is_cut()));
    }

    fn end_part(&mut self) {
        self.end_word();
        self.awaits_target = false;
        let part = Part { words: std::mem::take(&mut self.words), is_text: self.is_text() };
        self.parts.push(part);
    }

    fn end_line(&mut self) {
        self.end_part();
        self.is_comment = false;
        self.is_document |= self.awaits_document;
    }

    /// A redirection belongs to its part without its words. `<<` begins a here-document.
    fn redirection(&mut self, sign: char, signs: &mut Signs<'_>) {
        if self.word.as_ref().is_some_and(|word| word.text.chars().all(|sign| sign.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        let mut operator = sign.to_string();
        while let Some(sign) = signs.next_if(|sign| matches!(sign, '<' | '>' | '&' | '|')) {
            operator.push(sign);
        }
        self.awaits_document |= operator == "<<";
        self.awaits_target = true;
    }

    /// The text before the first backtick goes on behind the second one.
    fn backtick(&mut self) {
        if let Some(word) = self.word.as_mut().filter(|_| !self.is_substitution) {
            word.is_open = true;
            word.text.push('$');
        }
        self.is_substitution = !self.is_substitution;
        self.end_part();
    }

    fn single_quoted(&mut self, signs: &mut Signs<'_>) -> Option<()> {
        self.word();
        loop {
            match signs.next()? {
                '\'' => return Some(()),
                other => self.word().text.push(other),
            }
        }
    }

    /// Text up to the closing quote. Of the substitutions in it only simple ones are parsed.
    fn double_quoted(&mut self, signs: &mut Signs<'_>) -> Option<()> {
        self.word();
        loop {
            match signs.next()? {
                '"' => return Some(()),
                '`' => return None,
                '$' => {
                    let word = self.word();
                    word.is_open = true;
                    word.text.push('$');
                    match signs.peek() {
                        Some('(') => self.substitution(signs)?,
                        Some('{') => variable(signs)?,
                        Some(_) | None => {}
                    }
                }
                '\\' => match signs.next()? {
                    '\n' => {}
                    escaped @ ('$' | '`' | '"' | '\\') => self.word().text.push(escaped),
                    other => self.word().text.extend(['\\', other]),
                },
                other => self.word().text.push(other),
            }
        }
    }

    /// A substitution in quotes, `$(date)`, in which nothing quotes, groups or begins a text.
    fn substitution(&mut self, signs: &mut Signs<'_>) -> Option<()> {
        let mut command = String::new();
        signs.next();
        loop {
            match signs.next()? {
                ')' => break,
                '(' | '\'' | '"' | '`' | '\\' | '#' | '<' => return None,
                other => command.push(other),
            }
        }
        self.parts.extend(parse(&command).parts);
        Some(())
    }
}

/// A variable in braces, `${HOME}`, without an operation on it.
fn variable(signs: &mut Signs<'_>) -> Option<()> {
    signs.next();
    loop {
        match signs.next()? {
            '}' => return Some(()),
            sign if sign.is_ascii_alphanumeric() || sign == '_' => {}
            _ => return None,
        }
    }
}
