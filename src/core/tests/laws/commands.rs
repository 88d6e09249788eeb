//! Laws of command patterns: an allowance by `command` matches plain commands only, and a denial of the same words
//! matches every command that the allowance matches.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolgate_core::policy::{
    CommandPattern, Example, Finding, FollowingWords, Match, Rule, Subject, Verdict, plain_words,
};

use crate::choices::strictly;

const TOKENS: [&str; 44] = [
    "git",
    "git",
    "git ",
    "git diff",
    "diff",
    "log",
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
    "|",
    "<",
    ">",
    "$",
    "`",
    "(",
    ")",
    "{",
    "}",
    "*",
    "?",
    "[",
    "]",
    "~",
    "#",
    "!",
    "=",
    "^",
    "--output=x",
    "-x",
    "HEAD",
    "rm",
    "é",
    "\n",
    "\r",
    "sudo ",
    "a=b",
];

fn rule(verdict: Verdict) -> Rule {
    let words = vec![vec!["git".to_owned()], vec!["diff".to_owned(), "log".to_owned()]];
    let command = CommandPattern { argument: None, words, rest: FollowingWords::Any };
    let matches = Match { server: Some("shell".into()), command: Some(command), ..Match::default() };
    Rule::new("r", verdict, "", matches, vec![], vec![]).unwrap()
}

fn matches(verdict: Verdict, arguments: &Map<String, Value>) -> bool {
    let tool = Example { server: Some("shell".into()), tool: "run".into(), ..Example::default() }.tool();
    let subject = Subject { tool: &tool, agent: None, principal: None, arguments: Some(arguments) };
    rule(verdict).examine(&subject) == Finding::Matches
}

fn call(command: Value) -> Map<String, Value> {
    json!({ "command": command }).as_object().unwrap().clone()
}

/// The text of a command outside of its quotes; `None` if a quote is open.
fn unquoted(command: &str) -> Option<String> {
    let (mut left, mut quote) = (String::new(), None);
    for sign in command.chars() {
        match quote {
            None if matches!(sign, '\'' | '"') => quote = Some(sign),
            None => left.push(sign),
            Some(open) if open == sign => quote = None,
            Some(_) => {}
        }
    }
    quote.is_none().then_some(left)
}

fn any_command() -> impl Strategy<Value = String> {
    let tokens = proptest::collection::vec(proptest::sample::select(TOKENS.to_vec()), 0..10);
    let likely = (Just("git diff "), tokens.clone()).prop_map(|(begin, rest)| format!("{begin}{}", rest.concat()));
    prop_oneof![likely, tokens.prop_map(|tokens| tokens.concat()), any::<String>()]
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn an_allowance_never_matches_an_unquoted_sign_of_a_shell(command in any_command()) {
        if matches(Verdict::Allow, &call(json!(command))) {
            let left = unquoted(&command);
            prop_assert!(left.is_some(), "{command:?}");
            let signs = [';', '&', '|', '<', '>', '$', '`', '(', ')', '{', '}', '*', '?', '[', ']', '#', '!', '\\', '\n', '\r'];
            prop_assert!(!left.unwrap().contains(signs), "{command:?}");
            prop_assert!(!command.contains('\n'), "{command:?}");
        }
    }

    #[test]
    fn chained_commands_are_never_allowed(
        command in any_command(),
        sign in proptest::sample::select(vec![";", "&", "&&", "|", "||", "\n", ">", "<", "$(", "`", "<("]),
    ) {
        // The command may have an open quote, in which the sign is text.
        prop_assume!(unquoted(&command).is_some());
        let chained = format!("{command} {sign} rm -rf x");
        prop_assert!(!matches(Verdict::Allow, &call(json!(chained))), "{chained:?}");
    }

    #[test]
    fn a_denial_matches_what_an_allowance_of_the_same_words_matches(
        command in any_command(),
        before in proptest::sample::select(vec!["", "ls; ", "true && ", "sudo ", "A=1 ", "(", "echo x | xargs ", "if a; then "]),
        items in proptest::collection::vec(proptest::sample::select(TOKENS.to_vec()), 0..5),
    ) {
        if matches(Verdict::Allow, &call(json!(command))) {
            let denied = format!("{before}{command}");
            prop_assert!(matches(Verdict::Deny, &call(json!(denied))), "{denied:?}");
        }
        let list = call(json!(items));
        prop_assert!(!matches(Verdict::Allow, &list) || matches(Verdict::Deny, &list), "{items:?}");
        let beside = json!({"command": command, "args": items}).as_object().unwrap().clone();
        prop_assert!(!matches(Verdict::Allow, &beside) || matches(Verdict::Deny, &beside), "{beside:?}");
    }

    #[test]
    fn words_joined_with_quotes_are_the_same_words(words in proptest::collection::vec("[a-z .;|$*~-]{0,6}", 1..5)) {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        prop_assert_eq!(plain_words(&quoted.join(" ")), Ok(words));
    }
}

/// The time that processors spent on this thread, to a hundredth of a second: other work on the machine does not add to it.
#[cfg(target_os = "linux")]
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    let ticks = after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// Elsewhere, the time that passed.
#[cfg(not(target_os = "linux"))]
fn processor_time() -> Duration {
    static BEGIN: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    BEGIN.elapsed()
}

#[test]
fn long_commands_are_parsed_quickly() {
    for command in [
        "sudo ".repeat(12_000),
        "sudo git ".repeat(7_000),
        "eval ".repeat(12_000),
        "eval sudo -u ".repeat(5_000),
        "sudo - git - ".repeat(5_000),
        "sudo sh -c 'sudo eval ' ".repeat(1_000),
        "\"".repeat(60_001),
        "* ".repeat(30_000),
    ] {
        let begin = processor_time();
        matches(Verdict::Deny, &call(json!(command)));
        matches(Verdict::Allow, &call(json!(command)));
        let taken = processor_time() - begin;
        assert!(taken < Duration::from_secs(5), "{taken:?}");
    }
}
