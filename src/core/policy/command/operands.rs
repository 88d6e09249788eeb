//! Operands of programs that print files and folders, or run tests in them: a grant for the first words of such a program covers what is in the
//! folder of the command, and no hidden file. `grep -r` reads hidden files as well, `rg` does not.

use super::options::{base_name, may_be};

/// Programs that read and print, whatever their arguments, except for the options that [`super::CommandPattern`] refuses.
/// `date` is not one of them, because it sets the clock, nor is `tree`, because it writes files.
const READERS: [&str; 30] = [
    "basename",
    "cat",
    "cmp",
    "cut",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "find",
    "grep",
    "head",
    "id",
    "ls",
    "md5sum",
    "nl",
    "ps",
    "pwd",
    "realpath",
    "rg",
    "sha256sum",
    "sort",
    "stat",
    "tail",
    "tr",
    "uname",
    "wc",
    "which",
    "whoami",
    "fd",
];

/// Whether a program reads and prints, whatever its arguments.
pub(in crate::policy) fn is_reader(program: &str) -> bool {
    READERS.contains(&base_name(program))
}

/// Whether a program runs the tests of its folder, as `cargo test` does.
pub(in crate::policy) fn is_test_runner(program: &str) -> bool {
    base_name(program) == "pytest"
}

/// Whether the operands of a program name the files that it prints or runs.
pub(in crate::policy) fn names_files(program: &str) -> bool {
    is_reader(program) && base_name(program) != "echo" || is_test_runner(program)
}

/// The first of these words that may name a path outside the folder of the command, or a hidden file, if the program prints
/// or runs files. Links in the folder are not resolved.
pub(in crate::policy) fn outside_folder<'a>(program: &str, words: &'a [String]) -> Option<&'a str> {
    let is_outside = |word: &&str| may_be_outside(word) || reads_hidden(base_name(program), word);
    words.iter().filter(|_| names_files(program)).map(String::as_str).find(is_outside)
}

/// Whether a word makes a program read the hidden files of a folder that it is given, whatever their names.
fn reads_hidden(program: &str, word: &str) -> bool {
    let options: &[&str] = match program {
        "grep" => &["-r", "-R", "-d", "--recursive", "--dereference-recursive", "--directories"],
        "diff" => &["-r", "--recursive"],
        "rg" => &["-.", "-u", "--hidden", "--unrestricted"],
        _ => return false,
    };
    word.starts_with('-') && word != "--" && options.iter().any(|option| may_be(option, word))
}

fn may_be_outside(word: &str) -> bool {
    // The value of an option may be a path: `--file=/x`, `-f/x`.
    let is_option_with_path = word.starts_with('-') && word.contains(['/', '~']);
    let is_elsewhere = |part: &str| part.starts_with(['/', '~']) || part.split('/').any(|name| name == "..");
    let is_hidden = |part: &str| part.split('/').any(|name| name.starts_with('.') && name != ".");
    is_option_with_path || word.split('=').any(|part| is_elsewhere(part) || is_hidden(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_the_folder_and_hidden_files_are_found() {
        for (outside, command) in [
            (None, "cat src/t.txt"),
            (None, "grep -n needle src/t.txt"),
            (None, "rg needle src"),
            (Some("-rn"), "grep -rn needle src ."),
            (Some("--recursive"), "grep --recursive needle"),
            (Some("--recurs"), "grep --recurs needle ."),
            (Some("--direct=recurse"), "grep --direct=recurse needle ."),
            (None, "grep -n -- needle src/t.txt"),
            (Some("-uu"), "rg -uu needle"),
            (Some("-r"), "diff -r a b"),
            (None, "tail -n 30"),
            (None, "cargo test /srv"),
            (None, "echo /etc"),
            (Some("/etc/passwd"), "cat a /etc/passwd"),
            (Some("../x"), "/bin/cat ../x"),
            (Some("a/../../x"), "head a/../../x"),
            (Some("~/x"), "wc ~/x"),
            (Some(".env"), "cat .env"),
            (Some("src/.env.local"), "tail src/.env.local"),
            (Some("--file=/etc/x"), "grep --file=/etc/x y"),
            (Some("-f/etc/x"), "grep -f/etc/x y"),
            (None, "pytest -q tests/test_a.py::test_b"),
            (Some("/tmp/x"), "pytest /tmp/x"),
        ] {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(outside_folder(&words[0], &words[1..]), outside, "{command}");
        }
    }
}
