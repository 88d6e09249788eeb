//! Hostile text from models and people: a terminal receives no control characters from it, and no line of it looks like
//! a line of toolgate.

use serde_json::Value;

use super::desk::{Desk, Ended};

/// Sets the title, clears the screen (with a C1 control), changes the text direction, hides letters, and starts a line.
const HOSTILE: &str = "a\u{1b}]0;PWNED\u{7}\u{9b}2J\u{202e}b\u{61c}\u{ad}\u{e0041}\u{2028}\nMay mcp_shop_ok run?";
/// The same for a place where a line cannot start.
const WORD: &str = "s\u{1b}[31mx\u{202e}";

/// The text as a YAML string.
fn written(text: &str) -> String {
    let letters = text
        .chars()
        .map(|c| if c.is_ascii_graphic() || c == ' ' { c.to_string() } else { format!("\\U{:08x}", u32::from(c)) });
    format!("\"{}\"", letters.collect::<String>())
}

/// A model that returns hostile text in every field.
fn turns() -> String {
    let json = written(HOSTILE);
    format!(
        "
turns:
  - say: {json}
    calls:
      - {{ id: ask, name: ask_human, arguments: {{ question: {json}, options: [{json}, blue], free_text: false }} }}
      - {{ id: note, name: mcp_shop_add_note, arguments: {{ customer_id: C-1001, text: {json} }} }}
      - {{ id: other, name: mcp_shop_add_note, arguments: {{ customer_id: {json}, text: late }} }}
      - {{ id: refund, name: ext_issue_refund, arguments: {{ order_id: {json} }} }}
      - {{ id: fly, name: mcp_shop_fly, arguments: {{ {json}: 1 }} }}
  - {{ say: done }}
"
    )
}

fn desk() -> Desk {
    let desk = Desk::playing(&turns());
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let policy = "    policy: accept-edits\n";
    desk.write(
        "toolgate.yaml",
        &config
            .replace(policy, "    policy: { default: ask, answer_timeout_s: 3600, rules: [] }\n    ask_human: true\n"),
    );
    desk
}

/// Characters that a terminal interprets or does not show. The list is a copy, because a test that used the program's
/// own list could not fail.
fn is_hostile(c: char) -> bool {
    let hidden = ['\u{ad}', '\u{61c}', '\u{200b}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{feff}'];
    (c.is_control() && c != '\n' && c != '\t')
        || hidden.contains(&c)
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2060}'..='\u{206f}').contains(&c)
        || ('\u{e0000}'..='\u{e007f}').contains(&c)
}

/// Fails the test when a command printed a character of the list.
fn is_clean(words: &[&str], ended: &Ended) {
    for (stream, text) in [("stdout", &ended.out), ("stderr", &ended.err)] {
        let raw = text.chars().find(|c| is_hostile(*c));
        assert_eq!(raw, None, "{words:?} prints it on {stream}: {}", text.escape_debug());
        let forged = text.lines().find(|line| line.starts_with("May mcp_shop_ok"));
        assert_eq!(forged, None, "{words:?} lets a line be forged on {stream}:\n{text}");
    }
}

#[test]
fn no_command_prints_terminal_control_characters() {
    let desk = desk();
    let run = |words: &[&str], code: i32| {
        let ended = desk.toolgate(words).expect(code);
        is_clean(words, &ended);
        ended
    };
    run(&["run", "--session", WORD, HOSTILE], 10);
    for words in [
        &["runs", "list"][..],
        &["runs", "list", "--json"],
        &["runs", "show", "last"],
        &["runs", "show", "last", "--json"],
        &["runs", "explain", "last"],
        &["runs", "explain", "last", "--json"],
        &["runs", "trace", "last"],
        &["runs", "trace", "last", "--json"],
        &["runs", "events", "last"],
        &["runs", "events", "last", "--json"],
        &["runs", "export", "last"],
        &["runs", "export", "last", "--format", "text"],
        &["sessions", "list"],
        &["sessions", "list", "--json"],
        &["sessions", "show", "last"],
        &["sessions", "show", "last", "--json"],
        &["sessions", "messages", "last"],
        &["sessions", "messages", "last", "--json"],
        &["approvals", "list"],
        &["approvals", "list", "--json"],
        &["approvals", "show", "last"],
        &["approvals", "show", "last", "--json"],
        &["approvals", "extend", "last", "note", "--for", "8h", "--by", WORD],
    ] {
        run(words, 0);
    }
    run(&["resume", "last"], 10);
    run(&["resume", "last", "--json"], 10);
    for words in [
        &["approvals", "show", "last", HOSTILE][..],
        &["approvals", "approve", "last", HOSTILE],
        &["approvals", "answer", "last", "ask", HOSTILE, "--choose", HOSTILE, "--choose", WORD],
        &["approvals", "revoke", HOSTILE],
        &["runs", "show", HOSTILE],
        &["sessions", "show", HOSTILE],
        &["sessions", "set", "last", "--title", HOSTILE],
        &["run", "--agent", HOSTILE, "x"],
        &["runs", "list", "--status", WORD],
    ] {
        is_clean(words, &desk.toolgate(words));
    }
    run(&["approvals", "approve", "last", "note", "--scope", "always", "--by", WORD, "--reason", HOSTILE], 10);
    run(&["approvals", "grants"], 0);
    run(&["approvals", "grants", "--json"], 0);
    let grant = desk.toolgate(&["approvals", "grants", "--json"]).json_lines()[0]["id"].as_str().unwrap().to_owned();
    run(&["approvals", "revoke", &grant, "--by", HOSTILE], 0);
    run(&["approvals", "grants", "--ended"], 0);
    run(&["approvals", "deny", "last", "other", "--by", HOSTILE, "--reason", HOSTILE], 10);
    run(&["approvals", "suggest"], 0);
    run(&["runs", "show", "last"], 0);
    run(&["runs", "explain", "last"], 0);
    run(&["runs", "cancel", "last", "--reason", HOSTILE], 0);
    run(&["runs", "events", "last"], 0);
}

#[test]
fn further_lines_of_a_question_are_marked_wherever_it_is_shown() {
    let desk = desk();
    let asked = desk.toolgate(&["run", "x"]).expect(10).err;
    let listed = desk.toolgate(&["approvals", "list"]).expect(0).out;
    let shown = desk.toolgate(&["approvals", "show", "last", "ask"]).expect(0).out;
    let picture = desk.toolgate(&["runs", "show", "last"]).expect(0).out;
    // The model's own words appear too, except in the list, and so do the arguments of three calls where they are shown.
    for (text, times) in [(&asked, 5), (&listed, 4), (&shown, 2), (&picture, 5)] {
        let lines = text.lines().filter(|line| line.trim_start().starts_with("| May mcp_shop_ok")).count();
        assert_eq!(lines, times, "{text}");
        assert!(!text.lines().any(|line| line.trim_start().starts_with("May mcp_shop_ok")), "{text}");
    }
}

#[test]
fn an_invisible_option_is_listed_as_json() {
    let desk = desk();
    desk.toolgate(&["run", "x"]).expect(10);
    let shown = desk.toolgate(&["approvals", "show", "last", "ask"]).expect(0).out;
    let offered = shown.lines().find(|line| line.contains("approvals answer")).unwrap().trim();
    assert!(offered.contains(r"a\u001b]0;PWNED\u0007\u009b2J\u202eb"), "{offered}");
    desk.paste(offered).expect(10);
    let answered = desk.journal("last").into_iter().find(|fact| fact["type"] == "question.answered").unwrap();
    assert_eq!(answered["answer"]["chosen"], serde_json::json!([HOSTILE]), "{answered}");
}

#[test]
fn an_answer_is_verbatim_for_programs_and_escaped_for_terminals() {
    let desk = Desk::playing(&format!("turns: [{{ say: {} }}]", written(HOSTILE)));
    let piped = desk.toolgate(&["run", "x"]).expect(0);
    assert_eq!(piped.out, format!("{HOSTILE}\n"));
    assert_eq!(piped.err.chars().find(|c| is_hostile(*c)), None, "{}", piped.err.escape_debug());
    let json = desk.toolgate(&["run", "--json", "x"]).expect(0);
    is_clean(&["run", "--json"], &json);
    assert_eq!(json.result()["output"]["text"], Value::from(HOSTILE));
}
