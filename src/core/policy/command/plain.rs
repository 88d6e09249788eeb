//! Plain commands: one program and its words, which every POSIX shell splits alike and which run nothing else.
//!
//! Unquoted characters are accepted from a list; every other character is refused, so that one with a meaning in some
//! shell is never missed. `shlex` splits the words.

/// The quotes around a character of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Outside,
    Single,
    Double,
}

/// The words of a plain command as a POSIX shell splits them, or the reason why the command is not plain.
pub fn words(command: &str) -> Result<Vec<String>, String> {
    scan(command, FirstWord::IsProgram)?;
    match split(command)? {
        words if words.is_empty() => Err("the command is empty".to_owned()),
        words => Ok(words),
    }
}

/// The words of a text that follows a program.
pub(super) fn further_words(text: &str) -> Result<Vec<String>, String> {
    scan(text, FirstWord::IsArgument)?;
    split(text)
}

/// The words of a command that is given as a list. A server may run the list as it is or join it for a shell, so an
/// item has to mean the same for both.
pub(super) fn argument_words(items: &[serde_json::Value]) -> Result<Vec<String>, String> {
    items.iter().map(argument_word).collect()
}

fn argument_word(item: &serde_json::Value) -> Result<String, String> {
    let Some(word) = item.as_str() else { return Err("a word of the command is not text".to_owned()) };
    if let Some(quote) = word.chars().find(|sign| matches!(sign, '\'' | '"')) {
        return Err(format!("a word of the command has `{quote}`, which a shell takes for a quote"));
    }
    scan(word, FirstWord::IsArgument)?;
    if word.split([' ', '\t']).skip(1).any(|part| part.starts_with('-')) {
        return Err("a word of the command has an option in it".to_owned());
    }
    Ok(word.to_owned())
}

fn split(text: &str) -> Result<Vec<String>, String> {
    shlex::split(text).ok_or_else(|| "the command cannot be split into words".to_owned())
}

/// Whether the first word of a text is the name of a program, where `NAME=value` would be an assignment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FirstWord {
    IsProgram,
    IsArgument,
}

/// Refuses a text in which any character besides quotes and blanks has a meaning for a shell.
fn scan(text: &str, first: FirstWord) -> Result<(), String> {
    let (mut quotes, mut before, mut is_program) = (Quotes::Outside, None, first == FirstWord::IsProgram);
    for sign in text.chars() {
        let is_refused = match quotes {
            Quotes::Outside => match sign {
                ' ' | '\t' => {
                    // Leading blanks end no word.
                    is_program &= before.is_none_or(is_space);
                    false
                }
                '\'' | '"' => {
                    quotes = if sign == '"' { Quotes::Double } else { Quotes::Single };
                    false
                }
                '=' => is_program || before.is_none_or(is_space),
                // Expanded at the beginning of a word, and after `=` and `:`.
                '~' | '^' => {
                    !before.is_some_and(|before| before.is_ascii_alphanumeric() || matches!(before, '~' | '^'))
                }
                '_' | '-' | '.' | '/' | ':' | ',' | '+' | '@' | '%' => false,
                other => !other.is_alphanumeric(),
            },
            Quotes::Single if sign == '\'' => {
                quotes = Quotes::Outside;
                // Some shells take `\'` for a quote that does not end here.
                before == Some('\\')
            }
            Quotes::Double if sign == '"' => {
                quotes = Quotes::Outside;
                false
            }
            Quotes::Single => is_refused_in_quotes(sign),
            Quotes::Double => is_refused_in_quotes(sign) || matches!(sign, '$' | '`' | '\\' | '!'),
        };
        if is_refused {
            return Err(refusal(sign));
        }
        before = Some(sign);
    }
    match quotes {
        Quotes::Outside => Ok(()),
        Quotes::Single | Quotes::Double => Err("the command has a quote that is not closed".to_owned()),
    }
}

fn is_space(sign: char) -> bool {
    matches!(sign, ' ' | '\t')
}

/// Control characters, and the typographic quotes that PowerShell takes for quotes.
fn is_refused_in_quotes(sign: char) -> bool {
    sign.is_control() || matches!(sign, '\u{2018}'..='\u{201f}')
}

fn refusal(sign: char) -> String {
    let meaning = match sign {
        ';' | '&' | '|' | '\n' | '\r' => "chains commands",
        '<' | '>' => "redirects",
        '$' | '`' | '(' | ')' => "substitutes",
        '*' | '?' | '[' | ']' | '{' | '}' | '~' | '!' | '^' => "is expanded",
        '#' => "begins a comment",
        '=' => "sets a variable",
        '\\' | '\'' => "escapes",
        _ => "is no plain character",
    };
    format!("the command is not plain: `{}` {meaning}", sign.escape_debug())
}
