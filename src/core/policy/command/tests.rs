//! Tests of command patterns: plain commands for rules that allow, anything that may run for rules that ask or deny.

use serde_json::{Value, json};

use super::{CommandPattern, Comparison, FollowingWords};
use crate::policy::Verdict;

fn pattern(words: &[&[&str]]) -> CommandPattern {
    let words = words.iter().map(|word| word.iter().map(|&text| text.to_owned()).collect()).collect();
    CommandPattern { argument: None, words, rest: FollowingWords::Any }
}

fn matches(pattern: &CommandPattern, arguments: &Value, verdict: Verdict) -> bool {
    pattern.compare(arguments.as_object(), verdict) == Comparison::Matches
}

fn reads(arguments: &Value) -> bool {
    matches(&pattern(&[&["git"], &["diff", "status", "log"]]), arguments, Verdict::Allow)
}

/// Whether a denial matches; `None` if it may.
fn denies(pattern: &CommandPattern, arguments: &Value) -> Option<bool> {
    let compared = |verdict: Verdict| pattern.compare(arguments.as_object(), verdict);
    let is_asked = compared(Verdict::Ask) == Comparison::Matches;
    let denied = match compared(Verdict::Deny) {
        Comparison::Matches => Some(true),
        Comparison::MayMatch(_) => None,
        Comparison::Differs(_) | Comparison::Unknown => Some(false),
    };
    assert_eq!(is_asked, denied != Some(false), "a rule that asks matches what a denial may match: {arguments}");
    denied
}

fn denies_rm(arguments: &Value) -> Option<bool> {
    denies(&pattern(&[&["rm"]]), arguments)
}

#[test]
fn an_allowance_matches_the_words_of_a_shell() {
    for command in [
        "git diff",
        "git diff HEAD",
        "  git\tlog --oneline -5 ",
        "git log HEAD~3 HEAD^^ v1.0..main -- src/core",
        "'git' di\"ff\" \"a b\" 'c;d' --grep='x|y'",
        "git log --author=ann@example.com --grep 'a\\.b'",
        "git status -uno",
        "git diff -- größe.txt",
    ] {
        assert!(reads(&json!({ "command": command })), "{command}");
    }
}

#[test]
fn an_allowance_matches_only_plain_commands() {
    for command in [
        "git diff HEAD; rm -rf /",
        "git diff && rm x",
        "git diff & rm x",
        "git diff | sh",
        "git diff\nrm x",
        "git diff\rrm x",
        "git diff > /etc/passwd",
        "git diff < x",
        "git diff <(rm x)",
        "git diff $(rm x)",
        "git diff `rm x`",
        "git diff \"$(rm x)\"",
        "git diff \"`rm x`\"",
        "git diff $IFS",
        "git diff ${x}",
        "git diff \"$x\"",
        "git diff $'a'",
        "git diff \\\nrm",
        "git diff \\; rm",
        "git diff 'a\\' ; rm",
        "git diff 'a",
        "git diff \"a",
        "git diff {a,b}",
        "git diff *.c",
        "git diff a?",
        "git diff [ab]",
        "git diff ~/x",
        "git diff a=~",
        "git diff ''~",
        "git diff # x",
        "git diff a#b",
        "git diff !x",
        "git diff \"!x\"",
        "git diff \u{0}x",
        "git diff\u{a0}x",
        "git diff\u{2028}x",
        "git diff 'a\u{2019}; rm x'",
        "git diff ^x",
        "git diff =x",
        "(git diff)",
        "{ git diff; }",
        "! git diff",
        "X=1 git diff",
        "GIT_EXTERNAL_DIFF=rm git diff",
        "time git diff",
        "sudo git diff",
        "/tmp/git diff",
        "git -c core.pager=rm diff",
        "git push",
        "git",
        "gitdiff",
        "git differ",
        "",
        "''",
        "git diff --output=/etc/passwd",
        "git diff --outp /etc/passwd",
        "git log --ext-diff",
        "git log --ex",
        "git log '--output=x'",
        "git diff /etc/hostname .env",
        "git diff -- ../x y",
        "git diff ~/x y",
        "git log -Oless",
    ] {
        assert!(!reads(&json!({ "command": command })), "{command:?}");
    }
    assert!(!reads(&json!({ "command": format!("git diff {}", "x".repeat(70_000)) })));
}

#[test]
fn options_that_write_files_or_run_programs_may_not_follow() {
    let follows = |command: &str| {
        let words: Vec<&str> = command.split(' ').collect();
        let leading: Vec<&[&str]> = words[..2].iter().map(std::slice::from_ref).collect();
        matches(&pattern(&leading), &json!({ "command": command }), Verdict::Allow)
    };
    for command in [
        "terraform plan -out=x",
        "terraform plan --out x",
        "terraform plan -generate-config-out=x.tf",
        "go test -o x",
        "go test --coverprofile=x",
        "go test -test.cpuprofile=x",
        "go test -memprofile x",
        "go test -trace=x",
        "go test -blockprofile x",
        "go test -mutexprofile x",
        "go test -outputdir /etc",
        "go test -exec sudo",
        "npm test --userconfig=x",
        "npm test --globalconfig x",
        "npm test --script-shell=x",
        "bun test --preload ./x.ts",
        "bun test -r ./x.ts",
        "tree /srv -R",
    ] {
        assert!(!follows(command), "{command}");
    }
    for command in ["go test -count=1 -v", "go list -json", "terraform plan -no-color", "npm test -r", "bun test -t x"]
    {
        assert!(follows(command), "{command}");
    }
}

#[test]
fn a_command_may_be_a_list_or_have_a_list_of_words_beside_it() {
    for arguments in [
        json!({"command": ["git", "diff", "HEAD"]}),
        json!({"command": "git", "args": ["diff", "HEAD"]}),
        json!({"command": "git", "args": "diff HEAD"}),
        json!({"command": "git diff", "args": [], "env": {}, "timeout": 5, "cwd": "/srv"}),
        json!({"cmd": "git diff"}),
        json!({"command_line": "git log", "command": null}),
        json!({"command": ["git", "log", "--grep", "two words"]}),
    ] {
        assert!(reads(&arguments), "{arguments}");
    }
    for arguments in [
        json!({}),
        json!({"query": "git diff"}),
        json!({"command": 5}),
        json!({"command": {"git": "diff"}}),
        json!({"command": ["git", "diff", 5]}),
        json!({"command": ["git diff"]}),
        json!({"command": ["git", "diff", "a; rm x"]}),
        json!({"command": ["git", "diff", "a\nrm x"]}),
        json!({"command": ["git", "diff", "it's"]}),
        json!({"command": ["git", "diff", "a --output=x"]}),
        json!({"command": ["git", "diff", "--output=x"]}),
        json!({"command": ["sh", "-c", "git diff"]}),
        json!({"command": "git", "args": ["push"]}),
        json!({"command": "git diff", "args": ["--output=x"]}),
        json!({"command": "git diff", "args": "; rm x"}),
        json!({"command": "git diff", "args": {"x": 1}}),
        json!({"command": "git diff", "args": ["a"], "argv": ["b"]}),
        json!({"command": "git diff", "cmd": "rm x"}),
        json!({"command": "git diff", "env": {"GIT_EXTERNAL_DIFF": "rm"}}),
        json!({"command": "git diff", "environment": ["X=1"]}),
        json!({"command": "git diff", "stdin": "x"}),
        json!({"command": "git diff", "shell": "/tmp/x"}),
        json!({"command": "git diff", "script": "rm x"}),
    ] {
        assert!(!reads(&arguments), "{arguments}");
    }
}

#[test]
fn words_after_the_pattern_can_be_limited() {
    let with = |rest: FollowingWords, command: &str| {
        let pattern = CommandPattern { rest, ..pattern(&[&["git"], &["log"]]) };
        matches(&pattern, &json!({ "command": command }), Verdict::Allow)
    };
    let listed = || FollowingWords::Options(vec!["--oneline".into(), "--output".into(), "-p".into()]);
    for command in ["git log", "git log HEAD --oneline", "git log --output=x -p -- a -"] {
        assert!(with(listed(), command), "{command}");
    }
    for command in ["git log --stat", "git log --one", "git log -pO", "git log -- -x"] {
        assert!(!with(listed(), command), "{command}");
    }
    assert!(with(FollowingWords::Nothing, "git log") && !with(FollowingWords::Nothing, "git log HEAD"));
    assert!(!with(FollowingWords::Options(Vec::new()), "git log -p"));
    let named = CommandPattern { argument: Some("line".into()), ..pattern(&[&["ls"]]) };
    assert!(matches(&named, &json!({"line": "ls -l"}), Verdict::Allow));
    for other in [json!({"command": "ls"}), json!({"line": "ls", "command": "rm x"})] {
        assert!(!matches(&named, &other, Verdict::Allow), "{other}");
    }
}

#[test]
fn a_denial_examines_every_part_of_a_command() {
    for command in [
        "rm -rf /",
        "ls; rm x",
        "ls&&rm x",
        "ls | xargs rm",
        "ls | xargs -0 -n 1 rm",
        "ls || /bin/rm x",
        "ls\nrm x",
        "(rm x)",
        "{ rm x; }",
        "echo $(rm x)",
        "echo `rm x`",
        "echo \"$(rm x)\"",
        "echo \"$(date)\" && rm x",
        "rm \"$(pwd)/x\" 'open",
        "rm -rf \"$DIR\"",
        "sudo -u root rm x",
        "sudo -- rm x",
        "env A=1 rm x",
        "timeout 5 rm x",
        "chroot /srv rm x",
        "A=1 B= rm x",
        "A=$X rm x",
        "if true; then rm x; fi",
        "for f in *; do rm $f; done",
        "r\\m x",
        "r''m x",
        "\"rm\" x",
        "RM x",
        "rm.exe x",
        "sh -c 'rm x'",
        "sudo bash -lc 'ls; rm x'",
        "eval 'r'm",
        "trap 'rm x' EXIT",
        "watch 'rm x'",
        "ls; 'r'm",
        "cat <(rm x)",
        "cat <<< x | rm x",
        "2>/dev/null rm x",
        ">out 2>&1 rm x",
        "A=1 >> out rm x",
        "<in sudo 2>x rm y",
        "cat <<E | rm x\nE",
        "echo a`date` && rm x",
        "! rm x",
        "sudo sudo sudo rm",
        "ls # x\nrm x",
    ] {
        assert_eq!(denies_rm(&json!({ "command": command })), Some(true), "{command}");
    }
    for command in [
        "ls",
        "ls -l rm",
        "echo rm",
        "echo 'rm x; rm y'",
        "git rm x",
        "echo \"a b\" > out",
        "echo \"$(date)\" \"${HOME}/x\"",
        "echo $HOME *.txt",
        "A=rm ls",
        "echo a > out rm",
        "echo a 2>&1 >rm",
        "echo `date`",
        "",
        "alarm",
        "rmdir x",
        "sudo ls",
    ] {
        assert_eq!(denies_rm(&json!({ "command": command })), Some(false), "{command}");
    }
    for arguments in [
        json!({"command": ["rm", "x"]}),
        json!({"command": ["sh", "-c", "rm x"]}),
        json!({"command": "sudo", "args": ["rm", "x"]}),
        json!({"command": "'sudo' ", "args": ["rm", "x"]}),
        json!({"command": "ls; rm", "args": ["x"]}),
        json!({"command": "ls", "cmd": "rm x"}),
    ] {
        assert_eq!(denies_rm(&arguments), Some(true), "{arguments}");
    }
    for arguments in [json!({}), json!({"query": "rm x"}), json!({"command": ["ls", "rm"]}), json!({"command": null})] {
        assert_eq!(denies_rm(&arguments), Some(false), "{arguments}");
    }
}

#[test]
fn a_denial_may_match_what_cannot_be_analysed() {
    for command in [
        "sh build.sh",
        "bash -c \"cargo test\"",
        ". venv/bin/activate && pytest",
        "for f in *.rs; do echo $f; done",
        "git commit -m \"$(cat <<'EOF'\nIt's done; rm x\nEOF\n)\"",
        "cat > notes.md <<EOF\nrm x\nEOF",
        "cat <<E\nit's\nE\nls; echo 'done'",
        "FOO=$(pwd) make",
        "A=$(pwd)/x rm y",
        "A=`pwd`/x rm y",
        "> $(pwd)/x rm y",
        "ls # it's",
        "ls # ; rm x",
        "$R x",
        "{rm,-rf,/}",
        "/bin/r? x",
        "echo 'unbalanced",
        "ls \\",
        "echo $'\\x72'",
        "echo \"${x:-$(rm x)}\"",
        "time grep rm x",
        "if ! command -v rm; then ls; fi",
        "sh -c 'sh -c \"$X\"'",
        "sh -c \"$X rm\"",
    ] {
        assert_eq!(denies_rm(&json!({ "command": command })), None, "{command}");
    }
    for arguments in [
        json!({"command": ["ls;", "rm x"]}),
        json!({"command": 5}),
        json!({"command": "ls", "args": {"x": 1}}),
        json!({"command": "x".repeat(70_000)}),
    ] {
        assert_eq!(denies_rm(&arguments), None, "{arguments}");
    }
}

#[test]
fn a_denial_finds_a_subcommand_behind_options() {
    let push = pattern(&[&["git"], &["push"]]);
    let force = pattern(&[&["git"], &["push"], &["--force"]]);
    for (pattern, command, expected) in [
        (&push, "git push", Some(true)),
        (&push, "git -C /x -c a=b push", Some(true)),
        (&push, "git --no-pager push origin", Some(true)),
        (&push, "git 2>out push", Some(true)),
        (&push, "git $x", None),
        (&push, "git pus?", None),
        (&push, "git commit -m done push", None),
        (&push, "git pull", Some(false)),
        (&push, "push git", Some(false)),
        (&force, "git push origin main --force", Some(true)),
        (&force, "git push origin main", Some(false)),
    ] {
        assert_eq!(denies(pattern, &json!({ "command": command })), expected, "{command}");
    }
}

#[test]
fn ambiguous_patterns_are_refused() {
    for (words, verdict, rest, expected) in [
        (&[][..], Verdict::Allow, FollowingWords::Any, "names no program"),
        (&[&["git"][..], &[]], Verdict::Allow, FollowingWords::Any, "alternatives in `command` is empty"),
        (&[&["git diff"]], Verdict::Allow, FollowingWords::Any, "`[git, diff]`"),
        (&[&["git"], &["push"], &["*"]], Verdict::Deny, FollowingWords::Any, "leave it out if any words may follow"),
        (&[&["npm"], &["run", "test*"]], Verdict::Allow, FollowingWords::Any, "`test*` in `command` is no pattern"),
        (&[&["ls"], &["?"]], Verdict::Allow, FollowingWords::Nothing, "leave it and `exact: true` out"),
        (&[&["rm"]], Verdict::Deny, FollowingWords::Nothing, "only narrow what a rule allows"),
        (&[&["ls"]], Verdict::Allow, FollowingWords::Options(vec!["l".into()]), "is no option"),
    ] {
        let fault = CommandPattern { rest, ..pattern(words) }.fault(verdict).expect("a fault");
        assert!(fault.contains(expected), "{fault}");
    }
}

#[test]
fn a_description_beside_a_command_is_no_script() {
    assert!(reads(&json!({"command": "git diff", "description": "Shows the changes", "timeout": 5})));
    assert!(!reads(&json!({"command": "git diff", "script": "x"})));
    assert!(!reads(&json!({"command": "git diff", "description_script": "x"})));
}
