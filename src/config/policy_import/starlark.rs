//! The part of Starlark that rule files of codex are written in: calls with named arguments, whose values are texts and
//! lists. Everything else (variables, functions, loops) is an error: a rule that was not understood could be a denial.

use std::iter::Peekable;
use std::str::Chars;

/// The deepest list in lists. Patterns of codex are lists of words and of lists of words.
const MAX_DEPTH: usize = 8;

/// A call at the top level of a file.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) arguments: Vec<(String, Literal)>,
}

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Text(String),
    List(Vec<Literal>),
    None,
}

/// The reason why a file cannot be read, and its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) line: usize,
    pub(super) reason: String,
}

struct Reader<'a> {
    signs: Peekable<Chars<'a>>,
    line: usize,
}

/// Reads the calls of a file.
pub(super) fn calls(text: &str) -> Result<Vec<Call>, SyntaxError> {
    let mut reader = Reader { signs: text.chars().peekable(), line: 1 };
    let mut calls = Vec::new();
    loop {
        reader.skip_blank();
        let line = reader.line;
        if reader.signs.peek().is_none() {
            return Ok(calls);
        }
        let name = reader.name()?;
        reader.expect('(')?;
        calls.push(Call { name, line, arguments: reader.arguments()? });
    }
}

impl Reader<'_> {
    fn arguments(&mut self) -> Result<Vec<(String, Literal)>, SyntaxError> {
        let mut arguments: Vec<(String, Literal)> = Vec::new();
        while !self.ends(')') {
            let name = self.name()?;
            self.expect('=')?;
            if arguments.iter().any(|(other, _)| *other == name) {
                return self.fail(format!("`{name}` is given twice"));
            }
            let value = self.literal(0)?;
            arguments.push((name, value));
            self.separator(')')?;
        }
        Ok(arguments)
    }

    /// A value inside of so many lists.
    fn literal(&mut self, depth: usize) -> Result<Literal, SyntaxError> {
        self.skip_blank();
        match self.signs.peek() {
            Some('[') if depth == MAX_DEPTH => self.fail(format!("lists are nested deeper than {MAX_DEPTH}")),
            Some('[') => {
                self.next();
                let mut items = Vec::new();
                while !self.ends(']') {
                    items.push(self.literal(depth + 1)?);
                    self.separator(']')?;
                }
                Ok(Literal::List(items))
            }
            Some('"' | '\'') => self.text().map(Literal::Text),
            _ => match self.name()?.as_str() {
                "None" => Ok(Literal::None),
                other => self.fail(format!("`{other}` is neither a text in quotes nor a list")),
            },
        }
    }

    fn text(&mut self) -> Result<String, SyntaxError> {
        let quote = self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                end if end == quote && end.is_some() => break,
                None | Some('\n') => return self.fail("a text is not closed on its line".to_owned()),
                Some('\\') => text.push(match self.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some(same @ ('\\' | '"' | '\'')) => same,
                    _ => return self.fail("a text has an escape that is not known".to_owned()),
                }),
                Some(other) => text.push(other),
            }
        }
        match self.signs.peek() {
            Some('"' | '\'') => self.fail("texts in several quotes are not known".to_owned()),
            _ => Ok(text),
        }
    }

    fn name(&mut self) -> Result<String, SyntaxError> {
        self.skip_blank();
        let mut name = String::new();
        while let Some(sign) = self.signs.next_if(|sign| sign.is_ascii_alphanumeric() || *sign == '_') {
            name.push(sign);
        }
        match name.is_empty() {
            false => Ok(name),
            true => {
                let found = self
                    .signs
                    .peek()
                    .map_or("the end of the file".to_owned(), |sign| format!("`{}`", sign.escape_debug()));
                self.fail(format!("expected a name, a text or a list, and found {found}"))
            }
        }
    }

    /// Whether the next character closes the list; it is then read.
    fn ends(&mut self, closing: char) -> bool {
        self.skip_blank();
        self.signs.next_if_eq(&closing).is_some()
    }

    /// Reads a comma, unless the list ends.
    fn separator(&mut self, closing: char) -> Result<(), SyntaxError> {
        self.skip_blank();
        match self.signs.peek() {
            Some(sign) if *sign == closing => Ok(()),
            _ => self.expect(','),
        }
    }

    fn expect(&mut self, sign: char) -> Result<(), SyntaxError> {
        self.skip_blank();
        match self.signs.next_if_eq(&sign) {
            Some(_) => Ok(()),
            None => self.fail(format!("expected `{sign}`; only calls with named texts and lists are translated")),
        }
    }

    fn next(&mut self) -> Option<char> {
        let sign = self.signs.next();
        self.line += usize::from(sign == Some('\n'));
        sign
    }

    /// Skips blanks, line ends and comments.
    fn skip_blank(&mut self) {
        while let Some(sign) = self.signs.peek() {
            match sign {
                '#' => while self.signs.next_if(|sign| *sign != '\n').is_some() {},
                sign if sign.is_whitespace() => drop(self.next()),
                _ => return,
            }
        }
    }

    fn fail<T>(&self, reason: String) -> Result<T, SyntaxError> {
        Err(SyntaxError { line: self.line, reason })
    }
}
