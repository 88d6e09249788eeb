//! Command-line splitter with the quoting rules of a POSIX shell. It expands no variables and runs no shell.

/// The words of the command, or `None` for an unclosed quote.
pub(super) fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_like_in_a_shell() {
        for (line, expected) in [
            ("node server.js", vec!["node", "server.js"]),
            ("  a   b\tc ", vec!["a", "b", "c"]),
            (r#"sh -c 'echo "x y"' ''"#, vec!["sh", "-c", r#"echo "x y""#, ""]),
            (r#"a"b c"d\ e "\"\n""#, vec!["ab cd e", r#""\n"#]),
            ("", vec![]),
        ] {
            assert_eq!(words(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn an_unclosed_quote_is_an_error() {
        for line in ["a 'b", "a \"b", "a\\"] {
            assert_eq!(words(line), None, "{line}");
        }
    }
}
