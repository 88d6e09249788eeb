//! Chained commands: the plain parts of a pipeline or a list, for grants that name each part.
//!
//! A part is what stands between `&&`, `||`, `|`, `;` and line ends. A redirection to `/dev/null` or to another standard
//! stream belongs to no part. Everything else has to be [plain](super::plain): what substitutes, expands or redirects is
//! refused.

use super::plain;

/// The redirections that write no file.
const REDIRECTIONS: [&str; 12] = [
    "2>&1",
    "1>&2",
    ">&2",
    "2>/dev/null",
    "2> /dev/null",
    "1>/dev/null",
    "1> /dev/null",
    ">/dev/null",
    "> /dev/null",
    "&>/dev/null",
    "&> /dev/null",
    "</dev/null",
];

/// The separators of parts.
const SEPARATORS: [&str; 5] = ["&&", "||", "|", ";", "\n"];

/// The words of each part, in their order, or the reason why a part is not plain.
pub(in crate::policy) fn parts(command: &str) -> Result<Vec<Vec<String>>, String> {
    split(command.trim()).iter().map(|part| plain::words(part)).collect()
}

/// The texts of the parts. A backslash needs no attention: outside single quotes, no part with one is plain.
fn split(command: &str) -> Vec<String> {
    let (mut parts, mut part, mut quote) = (Vec::new(), String::new(), None);
    let mut rest = command;
    while let Some(sign) = rest.chars().next() {
        if quote.is_none() {
            if let Some(after) = SEPARATORS.iter().find_map(|separator| rest.strip_prefix(separator)) {
                parts.push(std::mem::take(&mut part));
                rest = after;
                continue;
            }
            let is_word_start = part.is_empty() || part.ends_with([' ', '\t']);
            if let Some(after) = without_redirection(rest).filter(|_| is_word_start) {
                rest = after;
                continue;
            }
        }
        match quote {
            Some(open) if open == sign => quote = None,
            None if matches!(sign, '\'' | '"') => quote = Some(sign),
            Some(_) | None => {}
        }
        part.push(sign);
        rest = rest.get(sign.len_utf8()..).unwrap_or_default();
    }
    parts.push(part);
    parts
}

/// The text after a redirection that writes no file; `None` if it begins with none.
fn without_redirection(text: &str) -> Option<&str> {
    let ends = |after: &&str| after.is_empty() || after.starts_with([' ', '\t', ';', '|', '&', '\n']);
    REDIRECTIONS.iter().find_map(|redirection| text.strip_prefix(redirection).filter(ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chained_command_has_its_plain_parts() {
        for (command, expected) in [
            ("git diff", "git diff"),
            ("cd sub && git diff | head -20", "cd sub, git diff, head -20"),
            ("cargo test 2>&1 | tail -5; ls >/dev/null", "cargo test, tail -5, ls"),
            ("grep 'a|b' x || echo \"a && b\"\n", "grep a|b x, echo a && b"),
            ("ls &>/dev/null && pwd 2> /dev/null", "ls, pwd"),
            ("git log '2>&1'", "git log 2>&1"),
        ] {
            let found: Vec<String> = parts(command).unwrap().iter().map(|words| words.join(" ")).collect();
            assert_eq!(found.join(", "), expected, "{command}");
        }
    }

    #[test]
    fn what_is_not_plain_in_any_part_is_refused() {
        for command in [
            "",
            "ls &",
            "ls & pwd",
            "ls |& cat",
            "ls > x",
            "ls >/dev/null2",
            "ls 2>&12",
            "ls>/dev/null",
            "ls >> /dev/null",
            "ls && $(x)",
            "ls; X=1 pwd",
            "cat <<X\nls\nX",
            r"ls \; pwd",
            r"ls '\' ; rm x '",
            "ls \"; rm x",
            "(cd x; ls)",
            "ls &&",
            "ls # x\nrm x",
            "ls\rrm x",
        ] {
            assert!(parts(command).is_err(), "{command}: {:?}", parts(command));
        }
    }
}
