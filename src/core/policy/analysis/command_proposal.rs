//! Grant proposals for commands: by all words of the command, and by its first words where those say what it does.
//!
//! First words are proposed from a list of programs that do what their first words say, and never for a program that runs
//! what the words after them name: a shell, an interpreter (`python`, `node`), a wrapper (`sudo`, `env`, `xargs`), `ssh`,
//! `make`, `git config`, `npm exec`. `git …` alone is not proposed either: it would cover `git config`. A person may approve
//! the same command of such a program, and types a condition for more.

use std::slice;

use serde_json::{Map, Value};

use super::grant_proposal::{Breadth, GrantProposal};
use crate::policy::{CHANGE_FOLDER, CommandPattern, FollowingWords, WantedCommand, command};

/// A program whose next word says what it does.
struct Subcommands {
    programs: &'static [&'static str],
    /// The subcommands that do what they say, whatever follows: not `git branch`, `git tag` and `git reflog`, which list and
    /// delete, nor `git checkout`, `git restore`, `git rm` and `git switch`, which discard changes, nor `git push`, which goes
    /// to any remote, nor `npm audit`, which also repairs.
    plain: &'static [&'static str],
    /// The subcommands whose next word is needed as well: `npm run test`, `gh pr view`.
    nested: &'static [&'static str],
}

const SUBCOMMANDS: [Subcommands; 10] = [
    Subcommands {
        programs: &["git"],
        plain: &[
            "add",
            "blame",
            "cherry-pick",
            "commit",
            "describe",
            "diff",
            "fetch",
            "grep",
            "log",
            "ls-files",
            "merge",
            "mv",
            "pull",
            "rev-parse",
            "shortlog",
            "show",
            "status",
        ],
        nested: &["remote", "stash", "worktree"],
    },
    Subcommands {
        programs: &["cargo"],
        plain: &["build", "check", "clippy", "doc", "fmt", "metadata", "test", "tree", "update"],
        nested: &[],
    },
    Subcommands { programs: &["npm", "pnpm"], plain: &["ls", "outdated", "test"], nested: &["run", "run-script"] },
    // `yarn x`, `yarn run x` and `bun run x` run the program `x` where there is no script of this name.
    Subcommands { programs: &["yarn"], plain: &["test"], nested: &[] },
    Subcommands { programs: &["bun"], plain: &["outdated", "test"], nested: &[] },
    Subcommands { programs: &["go"], plain: &["doc", "fmt", "list", "test", "version", "vet"], nested: &["mod"] },
    Subcommands {
        programs: &["docker", "podman"],
        plain: &["images", "inspect", "logs", "ps", "version"],
        nested: &[],
    },
    Subcommands { programs: &["kubectl"], plain: &["describe", "get", "logs", "top", "version"], nested: &[] },
    Subcommands { programs: &["gh"], plain: &[], nested: &["issue", "pr", "release", "run", "workflow"] },
    Subcommands { programs: &["terraform"], plain: &["output", "plan", "show", "validate", "version"], nested: &[] },
];

/// Words after a nested subcommand that discard or publish something.
const DISCARDING: [&str; 10] = ["clear", "close", "delete", "drop", "merge", "pop", "prune", "remove", "rm", "set-url"];

/// The longest command whose text is proposed, in bytes.
const LONGEST_TEXT: usize = 400;

/// The proposals for the command of a call: of a plain one by its words, of a chained one by the words of each part, and of
/// any other by its text.
pub(super) fn command_proposals(arguments: &Map<String, Value>) -> Vec<GrantProposal> {
    // A command without further arguments is that of a grant for the same arguments.
    let same = same_command(arguments).filter(|_| command::has_further_arguments(arguments));
    let wanted = match command::words_of_call(arguments) {
        Ok(words) => {
            let first = leading_words(&words).map(|leading| plain(leading, FollowingWords::Any));
            // In a text, the same command may also have redirections that write no file.
            let in_text = first.clone().map(|pattern| WantedCommand::Parts(vec![pattern]));
            let in_text = in_text.filter(|wanted| wanted.covers(arguments));
            in_text.or(first.map(WantedCommand::Words))
        }
        Err(_) => chained(command::text_of_call(arguments).unwrap_or_default()),
    };
    same.into_iter().chain(wanted.and_then(|wanted| proposal(&wanted, arguments))).collect()
}

/// The proposal for the very command of a call, by its words if it is a plain one, otherwise by its text.
pub(super) fn same_command(arguments: &Map<String, Value>) -> Option<GrantProposal> {
    let wanted = match command::words_of_call(arguments) {
        Ok(words) => WantedCommand::Words(plain(&words, FollowingWords::Nothing)),
        Err(_) => {
            let text = command::text_of_call(arguments).ok()?;
            let is_short = !text.is_empty() && text.len() <= LONGEST_TEXT;
            is_short.then(|| WantedCommand::Text(text.to_owned()))?
        }
    };
    proposal(&wanted, arguments)
}

fn plain(words: &[String], rest: FollowingWords) -> CommandPattern {
    CommandPattern { argument: None, words: words.iter().map(|word| vec![word.clone()]).collect(), rest }
}

/// The parts of a chained command, if the first words of each say what it does.
fn chained(text: &str) -> Option<WantedCommand> {
    let parts = command::chained_parts(text).ok()?;
    let mut patterns: Vec<CommandPattern> = Vec::new();
    for words in &parts {
        let is_change = words.first().is_some_and(|program| program == CHANGE_FOLDER);
        let pattern = plain(if is_change { words } else { leading_words(words)? }, FollowingWords::Any);
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    Some(WantedCommand::Parts(patterns))
}

/// The proposal for the commands that are wanted. `None` if the command itself is none of them: it may have an option after
/// which nothing is certain.
fn proposal(wanted: &WantedCommand, arguments: &Map<String, Value>) -> Option<GrantProposal> {
    if !wanted.covers(arguments) {
        return None;
    }
    let (words, breadth) = match wanted {
        WantedCommand::Words(CommandPattern { rest: FollowingWords::Nothing, .. }) | WantedCommand::Text(_) => {
            ("the same command".to_owned(), Breadth::SameValue)
        }
        WantedCommand::Words(_) | WantedCommand::Parts(_) => (command_words(wanted), Breadth::SomeValues),
    };
    Some(GrantProposal { words, condition: wanted.condition()?, breadth })
}

/// The commands that a condition covers, in words.
pub(super) fn command_words(wanted: &WantedCommand) -> String {
    let patterns = match wanted {
        WantedCommand::Text(text) => return format!("the command `{text}`"),
        WantedCommand::Words(pattern) => slice::from_ref(pattern),
        WantedCommand::Parts(patterns) => patterns,
    };
    let shown: Vec<String> = patterns.iter().map(part_words).collect();
    let programs = patterns.iter().filter_map(|pattern| pattern.words.first()?.first());
    let is_of_files =
        |program: &str| command::is_reader(program) && program != "echo" || command::is_test_runner(program);
    let of_files = programs.into_iter().any(|program| is_of_files(program));
    let of_files = if of_files { " (files of its folder)" } else { "" };
    match &shown[..] {
        [only] => format!("a command {only}{of_files}"),
        several => format!("only {}, in any order{of_files}", several.join(", ")),
    }
}

fn part_words(pattern: &CommandPattern) -> String {
    let words = pattern.words.iter().flatten().cloned().collect::<Vec<_>>().join(" ");
    let is_change = pattern.words.first().is_some_and(|program| program.iter().any(|word| word == CHANGE_FOLDER));
    if is_change { format!("`{words}`") } else { format!("`{words} …`") }
}

/// The first words of a command, if they say what it does. A relative path says nothing: it is a file of the project.
fn leading_words(words: &[String]) -> Option<&[String]> {
    let (program, rest) = words.split_first()?;
    if !program.starts_with('/') && program.contains(['/', '\\']) {
        return None;
    }
    let program = command::base_name(program);
    if command::is_reader(program) || command::is_test_runner(program) {
        return words.get(..1);
    }
    let known = SUBCOMMANDS.iter().find(|known| known.programs.contains(&program))?;
    // `git -C FOLDER diff`: the folder is one of the words.
    let before = if program == "git" && rest.first().is_some_and(|word| word == "-C") { 2 } else { 0 };
    let subcommand = rest.get(before)?.as_str();
    if known.plain.contains(&subcommand) {
        return words.get(..before + 2);
    }
    let is_name = |word: &String| word.starts_with(|c: char| c.is_ascii_alphanumeric());
    let is_plain = |word: &String| is_name(word) && !DISCARDING.contains(&word.as_str());
    let is_nested = known.nested.contains(&subcommand) && rest.get(before + 1).is_some_and(is_plain);
    is_nested.then(|| words.get(..before + 3)).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy::Condition;
    use crate::policy::{Example, Subject};

    fn proposed(arguments: &Value) -> Vec<(String, String)> {
        let proposals = command_proposals(arguments.as_object().unwrap());
        proposals.into_iter().map(|proposal| (proposal.words, proposal.condition)).collect()
    }

    fn covers(condition: &str, arguments: &Value) -> bool {
        let tool = Example { server: Some("work".into()), tool: "run".into(), ..Example::default() }.tool();
        let subject = Subject { tool: &tool, agent: None, principal: None, arguments: arguments.as_object() };
        Condition::for_grant(condition).unwrap().holds_for(&subject)
    }

    #[test]
    fn a_command_is_proposed_by_all_its_words_and_by_its_first_words() {
        assert_eq!(
            proposed(&json!({"command": "git diff HEAD --stat", "timeout": 10})),
            [
                ("the same command".to_owned(), r#"args.commandEquals(["git","diff","HEAD","--stat"])"#.to_owned()),
                ("a command `git diff …`".to_owned(), r#"args.commandPartsStartWith(["git","diff"])"#.to_owned()),
            ]
        );
        for (command, words) in [
            ("git -C sub log", "git -C sub log"),
            ("npm run test -- --watch", "npm run test"),
            ("cargo clippy", "cargo clippy"),
            ("/usr/bin/git log", "/usr/bin/git log"),
            ("git -C sub diff HEAD", "git -C sub diff"),
        ] {
            let [(shown, _)] = &proposed(&json!({"command": command}))[..] else { panic!("{command}") };
            assert_eq!(*shown, format!("a command `{words} …`"), "{command}");
        }
        let [(shown, condition)] = &proposed(&json!({"command": "cat src/x"}))[..] else { panic!("cat") };
        assert_eq!(shown, "a command `cat …` (files of its folder)");
        assert!(covers(condition, &json!({"command": "cat y 2>/dev/null | cat"})));
        for other in ["cat /etc/passwd", "cat ../x", "cat .env", "cat src/.env", "cat ~/x"] {
            assert!(!covers(condition, &json!({"command": other})), "{other}");
            assert_eq!(proposed(&json!({"command": other})), [], "{other}");
        }
        let [(shown, condition)] = &proposed(&json!({"command": "pytest -q tests"}))[..] else { panic!("pytest") };
        assert_eq!(shown, "a command `pytest …` (files of its folder)");
        assert!(covers(condition, &json!({"command": "pytest -x tests/test_a.py 2>&1"})));
        for other in
            ["pytest /tmp", "pytest ../x", "pytest -p plugin", "pytest --basetemp=x", "pytest -qc x", "pytest; x"]
        {
            assert!(!covers(condition, &json!({"command": other})), "{other}");
        }
        let listed = &proposed(&json!({"command": ["git", "log"]}))[..];
        assert!(matches!(listed, [(_, condition)] if condition.starts_with("args.commandStartsWith(")), "{listed:?}");
    }

    #[test]
    fn a_command_that_may_run_anything_is_not_proposed_by_its_first_words() {
        for command in [
            "bash -c ls",
            "sh x.sh",
            "python -c pass",
            "node -e 1",
            "env FOO=1 ls",
            "sudo ls",
            "xargs rm",
            "ssh host ls",
            "rm build",
            "make test",
            "git",
            "git config user.name x",
            "git -c core.pager=x diff",
            "git stash",
            "git stash drop",
            "git worktree remove x",
            "npm exec x",
            "npm run",
            "cargo run",
            "git diff HEAD; rm -rf /",
            "git diff --output=x",
            "find . -delete",
            "bun run bash",
            "yarn run bash",
            "yarn ls",
            "./ls x",
            "tmp/git log",
            r"'tmp\ls' x",
            "npm audit",
            "git branch x",
            "git tag x",
            "git reflog",
            "git checkout main",
            "git restore x",
            "git push",
            "date",
            "tree",
            "terraform plan -out=x",
        ] {
            assert_eq!(proposed(&json!({"command": command})), [], "{command}");
        }
        let other = json!({"command": "python -c pass", "cwd": "/srv"});
        assert_eq!(proposed(&other)[0].1, r#"args.commandEquals(["python","-c","pass"])"#);
    }

    #[test]
    fn a_chained_command_is_proposed_by_the_first_words_of_its_parts() {
        for (command, words, condition) in [
            (
                "cd sub && git diff HEAD | head -20",
                "only `cd sub`, `git diff …`, `head …`, in any order (files of its folder)",
                r#"args.commandPartsStartWith(["cd","sub"], ["git","diff"], ["head"])"#,
            ),
            (
                "cargo test 2>&1 | tail -5",
                "only `cargo test …`, `tail …`, in any order (files of its folder)",
                r#"args.commandPartsStartWith(["cargo","test"], ["tail"])"#,
            ),
            ("git log >/dev/null", "a command `git log …`", r#"args.commandPartsStartWith(["git","log"])"#),
        ] {
            let expected = (words.to_owned(), condition.to_owned());
            assert_eq!(proposed(&json!({"command": command})), std::slice::from_ref(&expected), "{command}");
            let [(same, text), parts] = &proposed(&json!({"command": command, "description": "x"}))[..] else {
                panic!("{command}")
            };
            assert_eq!((same.as_str(), parts), ("the same command", &expected), "{command}");
            assert_eq!(*text, format!("args.commandEquals({})", Value::from(command)));
            assert!(covers(text, &json!({"command": command, "description": "y"})));
        }
        for command in ["cd sub && rm x", "git diff && cd sub", "cat x | sh", "FOO=1 make test", "ls > x", "ls; ./x"] {
            assert_eq!(proposed(&json!({"command": command})), [], "{command}");
            let same = &proposed(&json!({"command": command, "timeout": 1}))[..];
            assert!(matches!(same, [(words, _)] if words == "the same command"), "{command}: {same:?}");
        }
    }

    #[test]
    fn a_grant_for_parts_covers_only_commands_of_these_parts() {
        let condition = "args.commandPartsStartWith(['cd', 'sub'], ['git', 'diff'], ['head'])";
        for covered in
            ["git diff", "cd sub && git diff", "cd sub; git diff --stat | head -5 | head -1", "git diff 2>&1"]
        {
            assert!(covers(condition, &json!({"command": covered})), "{covered}");
        }
        for other in [
            "cd sub && cd sub && git diff",
            "git diff && cd sub",
            "cd sub/.. && git diff",
            "cd other && git diff",
            "/bin/cd sub x && git diff",
            "git diff | tee x",
            "git diff > x",
            "git diff --output=x | head",
            "git diff && git push",
            "git diff &",
            "X=1 git diff",
            "git diff $(rm x)",
            "head x; rm y",
            "",
        ] {
            assert!(!covers(condition, &json!({"command": other})), "{other}");
        }
        assert!(!covers(condition, &json!({"command": "git diff", "env": {"GIT_PAGER": "x"}})));
        assert!(!covers(condition, &json!({"command": "git diff", "args": ["x"]})));
        assert!(!covers(condition, &json!({"command": ["git", "diff"]})));
        assert!(!covers("args.commandEquals('ls; pwd')", &json!({"command": "ls; pwd", "stdin": "x"})));
        assert!(!covers("args.commandEquals('ls; pwd')", &json!({"command": "ls; pwd "})));
        assert!(!covers("!args.commandPartsStartWith(['rm'])", &json!({"command": "ls"})));
    }

    #[test]
    fn a_grant_by_first_words_covers_only_plain_commands_with_them() {
        let condition = r#"args.commandStartsWith(["git","diff"])"#;
        for covered in [json!("git diff"), json!("git diff --stat 'a b'"), json!(["git", "diff", "HEAD"])] {
            assert!(covers(condition, &json!({"command": covered})), "{covered}");
        }
        for other in [
            "git diff; rm -rf /",
            "git diff $(rm x)",
            "git diff > x",
            "git diff --output=x",
            "git push",
            "git",
            "git diffs",
            "X=1 git diff",
            "",
        ] {
            assert!(!covers(condition, &json!({"command": other})), "{other}");
        }
        assert!(!covers(condition, &json!({"command": "git diff", "env": {"GIT_PAGER": "x"}})));
        assert!(!covers(condition, &json!({"command": 7})) && !covers(condition, &json!({})));
        assert!(covers(r#"args.commandEquals(["git","diff"])"#, &json!({"command": "git  diff", "timeout": 1})));
        assert!(!covers(r#"args.commandEquals(["git","diff"])"#, &json!({"command": "git diff --stat"})));
    }

    #[test]
    fn no_negation_covers_what_the_words_leave_out() {
        let (rm, diff) = ("args.commandStartsWith(['rm'])", "args.commandStartsWith(['git', 'diff'])");
        for command in ["/bin/rm x", "sudo rm x", "ls", "rm x"] {
            assert!(!covers(&format!("!{rm}"), &json!({"command": command})), "{command}");
            assert!(!covers(&format!("{rm} ? false : true"), &json!({"command": command})), "{command}");
        }
        assert!(covers(&format!("{rm} || {diff}"), &json!({"command": "git diff"})));
        assert!(covers(&format!("{diff} && args.timeout < 9"), &json!({"command": "git diff", "timeout": 5})));
    }

    #[test]
    fn commands_are_compared_in_grants_and_nowhere_else() {
        let error = Condition::parse("args.commandStartsWith(['git'])").unwrap_err().to_string();
        assert!(error.contains("is a function of grants") && error.contains("command: [git, diff]"), "{error}");
        for wrong in [
            "args.commandStartsWith('git diff')",
            "args.commandStartsWith([])",
            "args.commandStartsWith(['git diff'])",
            "args.commandStartsWith([args.program])",
            "args.command.commandStartsWith(['git'])",
            "commandStartsWith(['git'])",
            "args.commandEquals(['git'], ['diff'])",
            "args.commandEquals()",
        ] {
            let error = Condition::for_grant(wrong).unwrap_err().to_string();
            assert!(error.contains("compares all arguments with a list of words"), "{wrong}: {error}");
        }
        for wrong in ["args.commandPartsStartWith()", "args.commandPartsStartWith('ls')"] {
            let error = Condition::for_grant(wrong).unwrap_err().to_string();
            assert!(error.contains("each part of a command with lists of words"), "{wrong}: {error}");
        }
    }
}
