//! Syntax errors of conditions, in words that help the author of the policy.

/// Syntax of other languages, and its equivalent here.
const OTHERWISE: [(&str, &str); 6] =
    [("=>", ">="), ("=<", "<="), ("=", "=="), ("and", "&&"), ("or", "||"), ("not", "!")];

/// The first syntax error, its position, and a likely correction. The library's own errors count lines and columns from
/// 1, and columns within a line from 0.
pub(super) fn fault<'a>(text: &str, errors: impl Iterator<Item = ((isize, isize), &'a str)>) -> String {
    if text.is_empty() {
        return "it is empty; write what has to hold, or remove the key".to_owned();
    }
    // The library reports that it stopped without a position, before the error that stopped it.
    let mut mistakes = errors.filter(|((line, _), _)| *line > 0);
    let Some(((line, column), message)) = mistakes.next() else {
        return "it cannot be read".to_owned();
    };
    let place = if line > 1 { format!("line {line}, column {column}") } else { format!("column {column}") };
    let hint = hint(text, line, column).map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{place}: {}{hint}", in_words(message))
}

fn in_words(message: &str) -> String {
    message.trim_start_matches("Syntax error: ").replace("<EOF>", "the end")
}

fn hint(text: &str, line: isize, column: isize) -> Option<String> {
    let line = text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
    let column = usize::try_from(column).ok()?.saturating_sub(1);
    let words = words(line);
    let at = words.iter().position(|(begin, word)| column < begin + word.chars().count()).unwrap_or(words.len());
    // The error is at the position where parsing ended, or at the word before, which was still accepted as something
    // else.
    let near = [Some(at), at.checked_sub(1), at.checked_sub(2)].into_iter().flatten().filter_map(|n| words.get(n));
    let mut meant = near.filter_map(|(_, word)| OTHERWISE.iter().find(|(wrong, _)| wrong == word));
    if let Some((wrong, right)) = meant.next() {
        return Some(format!("`{right}` is what `{wrong}` is elsewhere"));
    }
    (at >= words.len()).then(|| "something is missing at the end".to_owned())
}

/// Words and groups of signs, with the columns where they begin.
fn words(line: &str) -> Vec<(usize, String)> {
    let kind = |c: char| match c {
        c if c.is_whitespace() => 0,
        c if c.is_alphanumeric() || c == '_' => 1,
        '=' | '<' | '>' | '!' => 2,
        _ => 3,
    };
    let mut words: Vec<(usize, String)> = Vec::new();
    let mut before = 0;
    for (column, c) in line.chars().enumerate() {
        match words.last_mut() {
            Some((_, word)) if kind(c) == before && (1..3).contains(&before) => word.push(c),
            _ if kind(c) > 0 => words.push((column, c.to_string())),
            _ => {}
        }
        before = kind(c);
    }
    words
}
