//! Prompts at a real terminal.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use super::desk::{Desk, person};
use super::shell::Shell;
use super::suspended_calls::fault_server;

const NOTE: &str = "
turns:
  - { calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }] }
  - { say: '{{last_result}}' }
";

/// The final screen, and the exit code of the program.
pub(super) struct Screen {
    pub(super) text: String,
    code: i32,
}

/// The keys to press when this text appears on the screen.
pub(super) type Typed<'a> = (&'a str, &'a str);

/// Runs the program in a terminal of its own (`script` of util-linux makes one). Types `early` before the first
/// question, and then each line when its question appears.
fn typing_early(desk: &Desk, words: &[&str], early: &str, typed: &[Typed]) -> Screen {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    let mut command = desk.program("timeout");
    command.args(["60", "script", "-qec", &format!("toolgate {}", quoted.join(" ")), "/dev/null"]);
    command.env("TERM", "xterm").env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("`timeout` and `script` (util-linux) are needed");
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    keys.write_all(early.as_bytes()).unwrap();
    let (mut shown, mut read) = (Vec::new(), 0);
    for (question, answer) in typed {
        read += until(question, &mut screen, &mut shown, read);
        keys.write_all(answer.as_bytes()).unwrap();
    }
    screen.read_to_end(&mut shown).unwrap();
    Screen { text: String::from_utf8(shown).unwrap(), code: child.wait().unwrap().code().unwrap() }
}

/// Reads until the question appears after the text that was read before. Returns the position.
fn until(question: &str, screen: &mut impl Read, shown: &mut Vec<u8>, from: usize) -> usize {
    loop {
        let news = String::from_utf8_lossy(&shown[from..]).into_owned();
        if let Some(at) = news.find(question) {
            return at + question.len();
        }
        let mut some = [0; 4096];
        let count = screen.read(&mut some).unwrap();
        assert!(count > 0, "`{question}` was never asked: {news}");
        shown.extend_from_slice(&some[..count]);
    }
}

pub(super) fn at_a_terminal(desk: &Desk, words: &[&str], typed: &[Typed]) -> Screen {
    typing_early(desk, words, "", typed)
}

const DECIDE: &str = "[q] later: ";

impl Screen {
    pub(super) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.text);
        self
    }
}

fn decision(desk: &Desk) -> Value {
    let decided = desk.journal("last").into_iter().find(|fact| fact["type"] == "approval.decided");
    decided.expect("a decision in the journal")["decision"].take()
}

fn was_sent(desk: &Desk) -> bool {
    desk.journal("last").iter().any(|fact| fact["type"] == "tool.started")
}

#[test]
fn a_call_is_approved_at_the_terminal_and_the_journal_says_so() {
    let desk = Desk::playing(NOTE);
    let screen = at_a_terminal(&desk, &["run", "Note it"], &[(DECIDE, "a")]).expect(0);
    for told in ["May mcp_shop_add_note run?", "because: no rule of policy `accept-edits`", "now has 1 note(s)"] {
        assert!(screen.text.contains(told), "{told}: {}", screen.text);
    }
    let decision = decision(&desk);
    assert_eq!(
        (&decision["via"], &decision["by"], &decision["answer"]),
        (&json!("terminal"), &json!(person()), &json!("approve"))
    );
}

#[test]
fn a_call_is_denied_at_the_terminal_and_the_model_reads_why() {
    let desk = Desk::playing(NOTE);
    let screen = at_a_terminal(&desk, &["run", "Note it"], &[(DECIDE, "d"), ("why", "not today\n")]).expect(0);
    assert!(screen.text.contains("not today") && !was_sent(&desk), "{}", screen.text);
    assert_eq!(decision(&desk)["reason"], "not today");
}

#[test]
fn arguments_are_edited_on_a_line_that_begins_with_them_and_unchanged_ones_decide_nothing() {
    let desk = Desk::playing(NOTE);
    let back = "\u{1b}[D\u{1b}[D\u{7f}\u{7f}\u{7f}\u{7f}soon\n";
    let typed = [(DECIDE, "e"), ("\"late\"}", "\n"), (DECIDE, "e"), ("\"late\"}", back), (AGAIN, "a")];
    at_a_terminal(&desk, &["run", "Note it"], &typed).expect(0);
    assert_eq!(decision(&desk)["edited_arguments"]["text"], "soon");
}

#[test]
fn invalid_arguments_edited_at_the_terminal_are_asked_again() {
    let desk = Desk::playing(NOTE);
    let edit = |json| [(DECIDE, "e"), ("as JSON", json), (AGAIN, "a")];
    let (wrong, right) = ("\u{15}{\"text\": 1}\n", "\u{15}{\"customer_id\": \"C-1002\", \"text\": \"soon\"}\n");
    let typed = [edit(wrong), edit(right)].concat();
    let screen = at_a_terminal(&desk, &["run", "Note it"], &typed).expect(0);
    assert!(screen.text.contains("the edited arguments") && screen.text.contains("Bruno Okafor"), "{}", screen.text);
    assert_eq!(decision(&desk)["edited_arguments"]["text"], "soon");
}

/// The question after an edit.
const AGAIN: &str = "[e]dit again, [n]o: ";

/// A desk whose model calls a tool that requires approval three times in one reply.
fn three_approvals() -> Desk {
    let calls = ["one", "two", "three"]
        .map(|id| format!("{{ id: {id}, name: mcp_shop_add_note, arguments: {{ customer_id: C-1001, text: {id} }} }}"));
    Desk::playing(&format!("turns: [{{ calls: [{}] }}, {{ say: done }}]", calls.join(", ")))
}

fn decided(desk: &Desk) -> Vec<String> {
    let decided = desk.journal("last").into_iter().filter(|fact| fact["type"] == "approval.decided");
    decided.map(|fact| fact["call"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_edit_that_does_not_fit_is_asked_again_before_the_next_call() {
    let desk = three_approvals();
    let typed = [
        (DECIDE, "a"),
        ("(2 of 3)", ""),
        (DECIDE, "e"),
        ("as JSON", "\u{15}{\"text\": 1}\n"),
        (AGAIN, "a"),
        ("the edited arguments", ""),
        ("(2 of 3)", ""),
        (DECIDE, "a"),
        ("(3 of 3)", ""),
        (DECIDE, "a"),
    ];
    let screen = at_a_terminal(&desk, &["run", "Note it"], &typed).expect(0);
    assert_eq!(screen.text.matches("(1 of 3)").count(), 1, "{}", screen.text);
    assert_eq!(decided(&desk), ["one", "two", "three"]);
}

#[test]
fn an_interrupt_keeps_the_decisions_before_it() {
    let desk = three_approvals();
    let interrupted = [(DECIDE, "a"), ("(2 of 3)", ""), (DECIDE, "\u{3}")];
    // The shell around the program takes the signal, too, so its exit code says nothing.
    let screen = at_a_terminal(&desk, &["run", "Note it"], &interrupted);
    assert!(screen.text.contains("pending: the run waits for 2 answers"), "{}", screen.text);
    assert_eq!(decided(&desk), ["one"]);
    let rest = [("(1 of 2)", ""), (DECIDE, "a"), ("(2 of 2)", ""), (DECIDE, "a")];
    at_a_terminal(&desk, &["resume", "last"], &rest).expect(0);
    assert_eq!(decided(&desk), ["one", "two", "three"]);
}

#[test]
fn an_approval_shows_text_as_text_and_the_call_once() {
    let note =
        r#"{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: "import os\n\tos.exit()" } }"#;
    let desk = Desk::playing(&format!("turns: [{{ calls: [{note}] }}, {{ say: done }}]"));
    let screen = at_a_terminal(&desk, &["run", "Note it"], &[(DECIDE, "a")]).expect(0);
    let asked = screen.text.split("May mcp_shop_add_note run?").nth(1).unwrap().split(DECIDE).next().unwrap();
    assert!(
        asked.contains("  customer_id: \"C-1001\"\r\n  text:\r\n    | import os\r\n    |     os.exit()\r\n"),
        "{asked}"
    );
    let before = screen.text.split("May mcp_shop_add_note run?").next().unwrap();
    assert!(!before.contains("import os"), "{before}");
}

#[test]
fn a_server_that_takes_its_time_to_start_is_shown() {
    let desk = Desk::playing("turns: [{ say: done }]");
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let slow = "command: sh, args: [-c, 'sleep 1; exec toolgate demo-server']";
    desk.write("toolgate.yaml", &config.replace("command: toolgate, args: [demo-server]", slow));
    let screen = at_a_terminal(&desk, &["run", "Hello"], &[("connecting to servers", "")]).expect(0);
    assert!(screen.text.contains("shop"), "{}", screen.text);
}

#[test]
fn esc_lets_a_run_go_on_without_a_server_that_is_not_ready() {
    let desk = Desk::playing("turns: [{ say: done }]");
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write(
        "toolgate.yaml",
        &config.replace("command: toolgate, args: [demo-server]", "command: sleep, args: ['600']"),
    );
    let screen = at_a_terminal(&desk, &["run", "Hello"], &[("Esc skips shop", "\x1b")]).expect(0);
    assert!(screen.text.contains("`shop` is not ready yet, and was not waited for"), "{}", screen.text);
    assert!(screen.text.contains("done"), "{}", screen.text);
}

#[test]
fn an_open_prompt_leaves_the_item_pending() {
    let desk = Desk::playing(NOTE);
    let screen = at_a_terminal(&desk, &["run", "Note it"], &[(DECIDE, "q")]).expect(10);
    assert!(screen.text.contains("pending: the run waits for 1 answer") && !was_sent(&desk), "{}", screen.text);
    at_a_terminal(&desk, &["resume", "last"], &[(DECIDE, "y")]).expect(0);
    assert_eq!(decision(&desk)["answer"], "approve");
}

#[test]
fn a_message_entered_during_a_run_is_sent_to_it_and_other_text_is_told() {
    let desk =
        Desk::playing("turns: [{ say: one two three, stream: { fragments: 3, delay_ms: 2500 } }, { say: In French. }]");
    let mut shell = Shell::at(&desk);
    shell.runs("toolgate run Count").sees("| one");
    shell.types("In French\rand then").sees("(the model reads it next)");
    shell.sees("| In French.");
    shell.sees("not sent: and then");
    shell.sees("[0] ready> ");
}

#[test]
fn input_typed_before_a_question_does_not_answer_it() {
    let calls = ["one", "two"]
        .map(|id| format!("{{ id: {id}, name: mcp_shop_add_note, arguments: {{ customer_id: C-1001, text: {id} }} }}"));
    let desk = Desk::playing(&format!("turns: [{{ calls: [{}] }}, {{ say: done }}]", calls.join(", ")));
    // The second question follows at once after the first answer, and finds the key that was pressed twice.
    let screen = typing_early(&desk, &["run", "x"], "a\na\n", &[(DECIDE, "a\na\n"), (DECIDE, "q")]).expect(10);
    let decided = desk.journal("last").into_iter().filter(|fact| fact["type"] == "approval.decided").count();
    assert_eq!(decided, 1, "{}", screen.text);
    assert!(screen.text.contains("pending: the run waits for 1 answer"), "{}", screen.text);
}

#[test]
fn hostile_text_brings_only_colours_to_the_terminal() {
    let hostile = r#""a\u001b]0;PWNED\u0007\u009b2J\u001b[2K\u202eb\n  [a]pprove once: ""#;
    let ask = format!("{{ id: ask, name: ask_human, arguments: {{ question: {hostile}, options: [{hostile}, no] }} }}");
    let desk = Desk::playing(&format!("turns: [{{ say: {hostile}, calls: [{ask}] }}, {{ say: {hostile} }}]"));
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &config.replace("    policy:", "    ask_human: true\n    policy:"));
    let screen = at_a_terminal(&desk, &["run", "Ask"], &[("your answer", "1\n")]).expect(0);
    let mut rest = screen.text.replace("\r\n", "\n").replace("\r\u{1b}[J", "").replace("\r\u{1b}[K", "");
    // The prompt asks the terminal to mark pastes while it is open.
    rest = rest.replace("\u{1b}[?2004h", "").replace("\u{1b}[?2004l", "");
    for colour in ["0", "1", "2", "31", "32", "33", "36"] {
        rest = rest.replace(&format!("\u{1b}[{colour}m"), "");
    }
    let raw = rest.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
    assert_eq!(raw, None, "{}", rest.escape_debug());
    assert!(rest.contains("| ") && rest.matches(r"\u{1b}]0;PWNED\u{7}").count() >= 4, "{rest}");
}

/// An agent with a server that charges and then asks for a name, and the messages that the server received.
fn charging_desk() -> Desk {
    let echo = "turns: [{ calls: [{ id: echo, name: mcp_odd_echo, arguments: { text: charged } }] }, { say: '{{last_result}}' }]";
    let desk = Desk::playing(echo);
    let server =
        json!({"command": fault_server(), "args": ["--stdio", "--fault", "elicits-late", "--log", "wire.jsonl"]});
    let config = json!({
        "lease_s": 1,
        "models": {"played": {"scripted": {"file": "conversation.yaml"}}},
        "servers": {"odd": {"stdio": server}},
        "agents": {"desk": {"servers": ["odd"], "policy": "bypass"}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    desk
}

/// The number of calls that the server received.
fn charges(desk: &Desk) -> usize {
    let wire = std::fs::read_to_string(desk.path().join("wire.jsonl")).unwrap();
    let lines = wire.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["received"]["method"] == "tools/call").count()
}

const ANSWER: &str = "[a]nswer, [d]ecline, [c]ancel, [q] later: ";

#[test]
fn a_call_answered_while_open_charges_once() {
    let desk = charging_desk();
    let screen = at_a_terminal(&desk, &["run", "Charge it"], &[(ANSWER, "a\n"), ("> ", "Ada\n")]).expect(0);
    assert!(screen.text.contains("hello, Ada"), "{}", screen.text);
    assert_eq!(charges(&desk), 1, "{}", screen.text);
}

#[test]
fn a_message_entered_at_the_question_of_a_server_is_recorded_before_the_answer() {
    let desk = charging_desk();
    let mut shell = Shell::at(&desk);
    shell.runs("toolgate chat").sees("> ");
    shell.types("Charge it\r").sees(ANSWER);
    shell.types("in French").sees("end your message first");
    shell.types("\r").sees(ANSWER);
    Shell::at(&desk).runs("toolgate runs events last --follow --json").sees("\"text\":\"in French\"");
    shell.types("a").sees("> ");
    shell.types("Bob\x1b").sees(ANSWER);
    shell.types("a").sees("> ");
    shell.types("Ada\r").sees("hello, Ada");
    assert_eq!(charges(&desk), 1);
}

#[test]
fn the_program_alone_names_the_first_steps_where_there_is_no_configuration() {
    let screen = at_a_terminal(&Desk::empty(), &[], &[("toolgate --help  lists the commands", "")]).expect(2);
    assert!(screen.text.contains("toolgate init    writes a configuration"), "{}", screen.text);
}

#[test]
fn a_trial_call_is_answered_at_the_terminal() {
    let desk = charging_desk();
    let call = ["mcp", "call", "odd", "echo", r#"{"text": "charged"}"#];
    let screen = at_a_terminal(&desk, &call, &[(ANSWER, "a\n"), ("> ", "Ada\n")]).expect(0);
    assert!(screen.text.contains("hello, Ada"), "{}", screen.text);
    assert_eq!(charges(&desk), 1, "{}", screen.text);
}

#[test]
fn a_question_left_open_cancels_the_call_and_a_repeat_needs_a_yes() {
    let desk = charging_desk();
    at_a_terminal(&desk, &["run", "Charge it"], &[(ANSWER, "q\n")]).expect(10);
    assert_eq!(charges(&desk), 1);
    let answered = [(ANSWER, "a\n"), ("> ", "Ada\n"), ("a second time?", "n\n")];
    let screen = at_a_terminal(&desk, &["resume", "last"], &answered).expect(10);
    assert!(screen.text.contains("what it did before may be done twice"), "{}", screen.text);
    assert_eq!(charges(&desk), 1, "{}", screen.text);
    let answered = [(ANSWER, "a\n"), ("> ", "Ada\n"), ("a second time?", "y\n")];
    at_a_terminal(&desk, &["resume", "last"], &answered).expect(0);
    assert_eq!(charges(&desk), 2);
}

#[test]
fn the_inbox_asks_about_one_run_after_the_other() {
    let desk = Desk::playing(NOTE);
    desk.toolgate(&["run", "Note it"]).expect(10);
    desk.toolgate(&["run", "Note it again"]).expect(10);
    desk.toolgate(&["run", "Note it for the third time"]).expect(10);
    let which = "(number; empty: marked; q, Esc: leave): ";
    let typed = [
        ("3 pending items in 3 runs", ""),
        (which, "7\n"),
        ("there is no number 7", ""),
        (which, "2\n"),
        (DECIDE, "a"),
        ("completed", ""),
        (which, "\n"),
        (DECIDE, "a"),
        ("completed", ""),
        // The only run that is left is asked about without a question.
        ("1 pending item in 1 run", ""),
        (DECIDE, "q"),
        ("left pending; `toolgate approvals` asks again", ""),
    ];
    at_a_terminal(&desk, &["approvals"], &typed).expect(0);
    let listed = desk.toolgate(&["approvals"]).expect(0);
    assert_eq!(
        listed.out.matches("mcp_shop_add_note").count() + listed.out.matches("shop: add_note").count(),
        1,
        "{}",
        listed.out
    );
    let unclear = desk.toolgate(&["approvals", "--config", "toolgate.yaml", "list"]).expect(2);
    assert!(unclear.err.contains("cannot be used with"), "{}", unclear.err);
}

#[test]
fn the_inbox_leaves_a_run_that_cannot_be_resumed() {
    let desk = Desk::playing(NOTE);
    desk.toolgate(&["run", "Note it"]).expect(10);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &config.replace("  desk:", "  office:"));
    let typed = [("unknown agent `desk`", ""), ("left pending; `toolgate approvals` asks again", "")];
    let screen = at_a_terminal(&desk, &["approvals"], &typed).expect(0);
    assert_eq!(screen.text.matches("unknown agent").count(), 1, "{}", screen.text);
}

#[test]
fn an_approval_covers_calls_that_meet_a_proposed_condition() {
    let note = |id, customer, text| {
        format!("{{ id: {id}, name: mcp_shop_add_note, arguments: {{ customer_id: {customer}, text: {text} }} }}")
    };
    let turns = [note("one", "C-1001", "late"), note("two", "C-1001", "later"), note("three", "C-1002", "late")];
    let turns = turns.map(|call| format!("{{ calls: [{call}] }}")).join(", ");
    let desk = Desk::playing(&format!("turns: [{turns}, {{ say: done }}]"));
    let typed = [
        (DECIDE, "l"),
        ("1. the same customer_id", ""),
        ("or a condition; empty: none): ", "9\n"),
        ("type a number from 1 to 2", ""),
        ("or a condition; empty: none): ", "1\n"),
        ("calls of this tool with the same customer_id, and any `text`", ""),
        ("neither): ", "s"),
        // The second call has the same customer, and the third another one.
        (DECIDE, "d"),
        ("why", "enough\n"),
    ];
    at_a_terminal(&desk, &["run", "Note it"], &typed).expect(0);
    assert_eq!(decided(&desk), ["one", "three"]);
    let grants = desk.toolgate(&["approvals", "grants"]).expect(0).out;
    assert!(grants.contains("covers calls with customer_id \"C-1001\""), "{grants}");
}
