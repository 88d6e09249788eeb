//! Chained commands: the plain parts of a pipeline or a list, for rules and grants that allow each part.
//!
//! A part is what stands between `&&`, `||`, `|`, `;` and line ends. A redirection to `/dev/null` or to another standard
//! stream belongs to no part. Everything else has to be [plain](super::plain): what substitutes, expands or redirects is
//! refused.

use super::options::base_name;
use super::parts::{SHELLS, WRAPPERS};
use super::plain;

/// Commands that change the shell in which later parts run.
#[rustfmt::skip]
const SETTINGS: [&str; 29] = [
    "alias", "autoload", "declare", "disable", "emulate", "enable", "export", "float", "getopts", "hash", "integer", "let",
    "local", "mapfile", "popd", "pushd", "read", "readarray", "readonly", "rehash", "set", "setopt", "shopt", "typeset",
    "ulimit", "umask", "unalias", "unset", "zmodload",
];

/// Programs, without the digits and dots of a version, that run the output of the part before them.
#[rustfmt::skip]
const INTERPRETERS: [&str; 25] = [
    "at", "batch", "bc", "bun", "crontab", "deno", "ed", "ex", "gdb", "irb", "julia", "lua", "m", "mysql", "node", "nodejs", "osascript",
    "perl", "php", "psql", "python", "R", "ruby", "sqlite", "ssh",
];

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
    split(command.trim()).iter().map(|part| plain::words(&part.text)).collect()
}

/// The same of a command no part of which may change what another part does, or run the output of one.
pub(super) fn independent_parts(command: &str) -> Result<Vec<Vec<String>>, String> {
    let words_of = |part: &ChainedPart| {
        let words = plain::words(&part.text)?;
        match may_affect_others(&words, part.is_fed) {
            true => Err(format!("the part `{}` may change what other parts do, or run their output", words.join(" "))),
            false => Ok(words),
        }
    };
    split(command.trim()).iter().map(words_of).collect()
}

fn may_affect_others(words: &[String], is_fed: bool) -> bool {
    let Some(program) = words.first().map(|program| base_name(program)) else { return true };
    let unversioned = program.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
    let sets_variable = program == "printf" && words.iter().any(|word| word.starts_with("-v"));
    let lists: [&[&str]; 3] = [&SHELLS, &WRAPPERS, &SETTINGS];
    sets_variable || (is_fed && INTERPRETERS.contains(&unversioned)) || lists.iter().any(|list| list.contains(&program))
}

/// A part, as it is written.
#[derive(Default)]
struct ChainedPart {
    text: String,
    /// Whether it reads the output of the part before it.
    is_fed: bool,
}

/// The texts of the parts. A backslash needs no attention: outside single quotes, no part with one is plain.
fn split(command: &str) -> Vec<ChainedPart> {
    let (mut parts, mut part, mut quote) = (Vec::new(), ChainedPart::default(), None);
    let mut rest = command;
    while let Some(sign) = rest.chars().next() {
        if quote.is_none() {
            let separator = SEPARATORS.iter().find_map(|separator| Some((separator, rest.strip_prefix(separator)?)));
            if let Some((separator, after)) = separator {
                let next = ChainedPart { is_fed: *separator == "|", ..ChainedPart::default() };
                parts.push(std::mem::replace(&mut part, next));
                rest = after;
                continue;
            }
            let is_word_start = part.text.is_empty() || part.text.ends_with([' ', '\t']);
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
        part.text.push(sign);
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
    fn a_part_that_affects_another_one_is_refused() {
        for command in [
            "export A=b && ls",
            "printf -v PATH x; ls",
            "ls | xargs rm",
            "ls && . ./x",
            "ls | python3.12",
            "ls | crontab -",
            "ls | /usr/bin/node",
        ] {
            assert!(parts(command).is_ok() && independent_parts(command).is_err(), "{command}");
        }
        for command in ["cd app && python3 -m pytest 2>&1 | tail -30", "ls | head", "printf x | wc", "node x || ls"] {
            assert_eq!(independent_parts(command), parts(command), "{command}");
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
