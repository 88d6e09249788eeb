//! Operands of programs: a grant for the first words of a command covers what is in the folder of the command, and no hidden
//! file. `grep -r` reads hidden files as well, `rg` does not.

use super::options::{base_name, may_be};

/// Programs that read and print, whatever their arguments, except for the options that [`super::CommandPattern`] refuses.
/// `date` is not one of them, because it sets the clock, nor is `tree`, because it writes files.
const READERS: [&str; 29] = [
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

/// The first of these words that may name a path outside the folder of the command or a hidden file, or a file with such
/// paths. Links in the folder are not resolved.
pub(in crate::policy) fn outside_folder<'a>(program: &str, words: &'a [String]) -> Option<&'a str> {
    let program = base_name(program);
    let is_outside = |word: &&str| may_be_outside(program, word) || reads_others(program, word);
    words.iter().filter(|_| program != "echo").map(String::as_str).find(is_outside)
}

/// The first of these words with which `git diff` may compare files outside of its repository, as `--no-index` does.
pub(super) fn outside_repository<'a>(program: &str, leading: &[String], words: &'a [String]) -> Option<&'a str> {
    let is_diff = base_name(program) == "git" && leading.iter().chain(words).any(|word| word == "diff");
    words.iter().filter(|_| is_diff).map(String::as_str).find(|word| is_elsewhere(word))
}

/// Whether a word makes a program read files that are not among its words: hidden ones, or those that a file names.
fn reads_others(program: &str, word: &str) -> bool {
    let options: &[&str] = match program {
        "grep" => &["-r", "-R", "-d", "--recursive", "--dereference-recursive", "--directories"],
        "diff" => &["-r", "--recursive", "-N", "--new-file", "--unidirectional-new-file"],
        "du" => &["-X", "--exclude-from", "--files0-from"],
        "find" => &["-files0-from"],
        "git" => &["--untracked", "--no-exclude-standard"],
        "md5sum" | "sha256sum" => &["-c", "--check"],
        "pytest" if word.starts_with('@') => return true,
        "rg" => &["-.", "-u", "--hidden", "--unrestricted", "-g", "--glob", "--iglob", "--type-add"],
        "sort" | "wc" => &["--files0-from"],
        _ => return false,
    };
    word.starts_with('-') && word != "--" && options.iter().any(|option| may_be(option, word))
}

fn may_be_outside(program: &str, word: &str) -> bool {
    // The value of an option may be a path: `--file=/x`, `-f/x`, `-vf.env`.
    let has_short_options = !matches!(program, "find" | "go" | "terraform");
    let is_short = word.starts_with('-') && !word.starts_with("--") && has_short_options;
    let may_have_path = is_short && word.contains(['/', '~', '.']);
    // A range of revisions is no file: `..main`, `...main`; nor are all packages: `./...`.
    let is_range = |name: &str| program == "git" && name.starts_with("..");
    let is_hidden_name = |name: &str| name.starts_with('.') && !matches!(name, "." | "...") && !is_range(name);
    let is_hidden = |part: &str| part.split('/').any(is_hidden_name);
    may_have_path || word.split(['=', ':']).any(|part| is_elsewhere(part) || is_hidden(part))
}

/// Whether a path begins or leads elsewhere.
fn is_elsewhere(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.split('/').any(|name| name == "..")
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
            (Some("/srv"), "cargo test /srv"),
            (None, "cargo test parser::tests --features=a/b"),
            (None, "go test ./... -run Test.x"),
            (Some("../other"), "go test ../other"),
            (Some("--workspace=../other"), "npm run test --workspace=../other"),
            (None, "git diff main..HEAD HEAD~1 src/a"),
            (None, "git log ..origin/main ...x"),
            (Some("/etc/hostname"), "git diff /etc/hostname a"),
            (Some("HEAD:.env"), "git show HEAD:.env"),
            (Some("-f.env"), "git grep -f.env"),
            (Some("-vf.env"), "grep -vf.env a"),
            (Some("--files0=list"), "sort --files0=list"),
            (Some("@args"), "pytest @args"),
            (Some("-N"), "diff -N a b"),
            (Some("--untracked"), "git grep --untracked x"),
            (Some("-g"), "rg -g *env x"),
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
