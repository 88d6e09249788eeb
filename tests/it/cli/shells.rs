//! Plain commands, compared with real shells: a command that an allow rule matches is one process with exactly the
//! matched words.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;
use toolgate::core::policy::plain_words;

const TOKENS: [&str; 62] = [
    " ",
    " ",
    " ",
    "\t",
    "'",
    "'",
    "\"",
    "\"",
    "\\",
    ";",
    "&",
    "&&",
    "|",
    "||",
    "<",
    ">",
    ">>",
    "$",
    "$x",
    "$(touch p)",
    "`touch p`",
    "(",
    ")",
    "{",
    "}",
    "{a,b}",
    "*",
    "?",
    "[ab]",
    "~",
    "~/x",
    "#",
    "!",
    "=",
    "a=~",
    "^",
    "%",
    "@",
    ":",
    ",",
    "+",
    "-",
    "--stat",
    "HEAD~1",
    "a/b.c",
    "x",
    "git",
    "rm",
    "é",
    "ß",
    "\n",
    "\r",
    "\u{a0}",
    "\u{2028}",
    "\u{7}",
    "\\\n",
    "''",
    "\"\"",
    "FOO=1",
    "1>&2",
    "$'\\n'",
    "if",
];

/// A folder in which only `git` can run. It records its arguments there.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let git = folder.path().join("bin/git");
        let script = "#!/bin/sh\n{ printf 'git\\n'; printf '%s\\n' \"$@\"; printf 'end\\n'; } >> ../ran\n";
        fs::write(&git, script).unwrap();
        fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// The processes that ran, and the errors of the shell.
    fn run(&self, shell: &Path, command: &str) -> (String, String) {
        let ran = self.path("ran");
        let _ = fs::remove_file(&ran);
        let mut process = Command::new(shell);
        process.arg("-c").arg(command).current_dir(self.path("work")).stdin(Stdio::null());
        process.env_clear().env("PATH", self.path("bin")).env("HOME", "/nowhere").env("x", "; rm");
        let output = process.output().unwrap();
        let left = fs::read_dir(self.path("work")).unwrap().count();
        assert_eq!(left, 0, "{command:?} wrote a file");
        (fs::read_to_string(&ran).unwrap_or_default(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn shells() -> Vec<std::path::PathBuf> {
    let found =
        |name: &&str| ["/bin", "/usr/bin"].iter().map(|dir| Path::new(dir).join(name)).find(|path| path.exists());
    ["sh", "dash", "bash", "zsh", "ksh"].iter().filter_map(found).collect()
}

#[test]
fn a_shell_runs_a_plain_command_as_one_process_with_its_words() {
    let (folder, shells) = (Folder::new(), shells());
    assert!(!shells.is_empty(), "there is always `sh`");
    let tokens = proptest::collection::vec(proptest::sample::select(TOKENS.to_vec()), 0..7);
    let commands = (proptest::sample::select(vec!["git ", "git diff ", "'git' ", "git 'a b' ", " git"]), tokens);
    let mut runner = TestRunner::new(Config { cases: 6_000, failure_persistence: None, ..Config::default() });
    let compared = std::cell::Cell::new(0_u32);
    let law = |(begin, tokens): (&str, Vec<&str>)| {
        let command = format!("{begin}{}", tokens.concat());
        let Ok(words) = plain_words(&command) else { return Ok(()) };
        if words.first().map(String::as_str) != Some("git") {
            return Ok(());
        }
        compared.set(compared.get() + 1);
        let rest = match &words[1..] {
            // `printf` with no arguments prints its format once.
            [] => "\n".to_owned(),
            rest => rest.iter().map(|word| format!("{word}\n")).collect(),
        };
        for shell in &shells {
            let (ran, complaint) = folder.run(shell, &command);
            prop_assert_eq!(&ran, &format!("git\n{rest}end\n"), "{:?} by {}: {}", command, shell.display(), complaint);
            prop_assert_eq!(complaint, "", "{:?} by {}", command, shell.display());
        }
        Ok(())
    };
    runner.run(&commands, law).unwrap_or_else(|error| panic!("{error}"));
    assert!(compared.get() > 100, "only {} commands were plain", compared.get());
}
