//! Pasted text and type-ahead at a prompt, with a real shell behind the program: the text becomes an answer or is
//! dropped, and the shell never executes it.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};

use super::desk::Desk;
use super::shell::{Shell, pasted};
use super::suspended_calls::fault_server;

const DECIDE: &str = "[q] later: ";
const RESULT: &str = "empty leaves it pending): ";

/// A kind of prompt that takes text.
struct Kind {
    name: &'static str,
    desk: fn() -> Desk,
    /// The prompts before the tested one, each with its key.
    on_the_way: &'static [(&'static str, &'static str)],
    prompt: &'static str,
    /// The answer as the journal records it.
    answer: fn(&Desk) -> Value,
}

const TEXTS: [Kind; 4] = [
    Kind { name: "result", desk: external, on_the_way: &[], prompt: RESULT, answer: result },
    Kind {
        name: "denial reason",
        desk: guarded,
        on_the_way: &[(DECIDE, "d")],
        prompt: "the model reads it): ",
        answer: |desk| fact(desk, "approval.decided")["decision"]["reason"].take(),
    },
    Kind {
        name: "question",
        desk: asking,
        on_the_way: &[],
        prompt: "leave it pending): ",
        answer: |desk| fact(desk, "question.answered")["answer"]["text"].take(),
    },
    Kind {
        name: "elicitation",
        desk: eliciting,
        on_the_way: &[(DECIDE, "a")],
        prompt: "required > ",
        answer: |desk| fact(desk, "tool.input.given")["given"]["reactions"]["who"]["content"]["name"].take(),
    },
];

fn external() -> Desk {
    let desk = Desk::playing("turns: [{ calls: [{ id: ask, name: ext_look_up, arguments: {} }] }, { say: done }]");
    let tool = json!({"name": "look_up", "description": "Looks it up.", "input_schema": {"type": "object"}});
    let config = json!({
        "models": {"played": {"scripted": {"file": "conversation.yaml"}}},
        "agents": {"desk": {"external_tools": [tool]}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    desk
}

fn guarded() -> Desk {
    let note = "{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }";
    Desk::playing(&format!("turns: [{{ calls: [{note}] }}, {{ say: done }}]"))
}

fn asking() -> Desk {
    let ask = "{ id: ask, name: ask_human, arguments: { question: Which? } }";
    let desk = Desk::playing(&format!("turns: [{{ calls: [{ask}] }}, {{ say: done }}]"));
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &config.replace("    policy:", "    ask_human: true\n    policy:"));
    desk
}

fn eliciting() -> Desk {
    let echo = "{ id: echo, name: mcp_odd_echo, arguments: { text: hi } }";
    with_server(echo, &["--stdio", "--protocol-version", "2026-07-28", "--fault", "elicits"])
}

fn with_server(call: &str, words: &[&str]) -> Desk {
    let desk = Desk::playing(&format!("turns: [{{ calls: [{call}] }}, {{ say: done }}]"));
    let server = json!({"command": fault_server(), "args": words});
    let config = json!({
        "models": {"played": {"scripted": {"file": "conversation.yaml"}}},
        "servers": {"odd": {"stdio": server}},
        "agents": {"desk": {"servers": ["odd"], "policy": "bypass"}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    desk
}

fn fact(desk: &Desk, kind: &str) -> Value {
    let found = desk.journal("last").into_iter().find(|fact| fact["type"] == kind);
    found.unwrap_or_else(|| panic!("there is no {kind}"))
}

fn result(desk: &Desk) -> Value {
    fact(desk, "tool.completed")["outcome"].take()
}

impl Kind {
    /// A shell in which the program waits at this prompt.
    fn waits_in(&self, desk: &Desk) -> Shell {
        let mut shell = Shell::at(desk);
        shell.runs("toolgate run Go");
        for (prompt, key) in self.on_the_way {
            shell.sees(prompt);
            shell.types(key);
        }
        shell.sees(self.prompt);
        shell
    }
}

fn was_executed(desk: &Desk) -> bool {
    desk.path().join("pwned").exists()
}

#[test]
fn a_paste_of_several_lines_is_one_answer_and_no_command() {
    for kind in TEXTS {
        let desk = (kind.desk)();
        let mut shell = kind.waits_in(&desk);

        shell.types(&pasted("ok\ntouch pwned\n")).types("\r");

        shell.sees("[0] ready> ");
        shell.has_executed_everything();
        assert!(!was_executed(&desk), "{}", kind.name);
        let answer = (kind.answer)(&desk);
        assert!(answer.to_string().contains(r"ok\ntouch pwned"), "{}: {answer}", kind.name);
    }
}

#[test]
fn lines_that_come_at_once_without_marks_do_not_reach_the_shell() {
    for kind in TEXTS {
        let desk = (kind.desk)();
        let mut shell = kind.waits_in(&desk);

        shell.types("ok\ntouch pwned\ntouch pwned\n");

        shell.sees("[0] ready> ");
        shell.has_executed_everything();
        assert!(!was_executed(&desk), "{}", kind.name);
        let answer = (kind.answer)(&desk).to_string();
        assert!(answer.contains("ok") && !answer.contains("pwned"), "{}: {answer}", kind.name);
    }
}

#[test]
fn a_paste_decides_no_approval_and_leaves_no_command() {
    for (paste, told) in [
        (pasted("a\ntouch pwned\n"), "pasted text decides nothing"),
        (pasted("a"), "pasted text decides nothing"),
        ("a\ntouch pwned\n".to_owned(), "pasted text decides nothing"),
        ("ok\ntouch pwned\n".to_owned(), "pasted text decides nothing"),
    ] {
        let desk = guarded();
        let mut shell = Shell::at(&desk);
        shell.runs("toolgate run Go").sees(DECIDE);
        shell.types(&paste).sees(told);
        shell.sees(DECIDE);
        shell.types("q").sees("[10] ready> ");
        shell.has_executed_everything();
        assert!(!was_executed(&desk) && desk.journal("last").iter().all(|fact| fact["type"] != "approval.decided"));
    }
}

#[test]
fn arguments_are_pasted_over_several_lines_and_a_first_line_alone_is_refused() {
    let desk = guarded();
    let mut shell = Shell::at(&desk);
    shell.runs("toolgate run Go").sees(DECIDE);
    shell.types("e").sees("as JSON (unchanged or empty: leave them): ");
    shell.types("\x15{\n\"text\":\ntouch pwned\n").sees("several lines came at once");
    shell.sees("as JSON (unchanged or empty: leave them): ");
    shell
        .types("\x15")
        .types(&pasted("{\r  \"customer_id\": \"C-1002\",\r  \"text\": \"soon\"\r}\r"))
        .types("\r")
        .sees("[e]dit again, [n]o: ");
    shell.types("a").sees("[0] ready> ");
    shell.has_executed_everything();
    assert!(!was_executed(&desk));
    assert_eq!(fact(&desk, "approval.decided")["decision"]["edited_arguments"]["text"], "soon");
}

#[test]
fn json_of_any_size_is_pasted_whole() {
    let rows: Vec<Value> = (0..300).map(|row| json!({"row": row, "note": "Grüße aus Zürich"})).collect();
    let lines = serde_json::to_string_pretty(&json!({"rows": rows})).unwrap();
    let line = json!({"rows": rows}).to_string();
    assert!(line.len() > 10_000 && !line.contains('\n'));
    for paste in [pasted(&lines.replace('\n', "\r")), pasted(&line), line.clone()] {
        let desk = external();
        let mut shell = Shell::at(&desk);
        shell.runs("toolgate run Go").sees(RESULT);
        shell.types(&paste).types("\r").sees("[0] ready> ");
        let taken = result(&desk);
        let text = taken["returned"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json!({"rows": rows}));
    }
}

#[test]
fn text_that_is_typed_while_a_run_is_under_way_does_not_reach_the_shell() {
    let desk = with_server("{ id: slow, name: mcp_odd_slow, arguments: { ms: 1500 } }", &["--stdio"]);
    let mut shell = Shell::at(&desk);
    shell.runs("toolgate run Go").sees("odd · slow");
    shell.types("touch pwned\rtouch pwn");
    shell.sees("[0] ready> ");
    shell.has_executed_everything();
    assert!(!was_executed(&desk));
}

#[test]
fn a_terminal_that_knows_no_escape_sequences_gets_none() {
    let desk = external();
    let mut shell = Shell::with_terminal(&desk, "dumb");
    shell.runs("toolgate run Go");
    let shown = shell.sees(RESULT);
    shell.types("oh\x7fk\ntouch pwned\n");
    let shown = shown + &shell.sees("[0] ready> ");
    shell.has_executed_everything();
    assert!(!was_executed(&desk));
    assert!(!shown.contains("\x1b[?2004") && !shown.contains("\x1b[J"), "{}", shown.escape_debug());
    assert!(result(&desk).to_string().contains("\"ok\""), "{}", result(&desk));
}

/// How a program ends while its prompt holds half an answer, and what its shell then reports.
const WAYS_TO_END: [(&str, &str); 5] =
    [("^C", "[10] "), ("^D", "[10] "), ("TERM", "[143] "), ("HUP", "[143] "), ("QUIT", "[131] ")];

#[test]
fn the_terminal_is_as_before_and_nothing_is_left_in_it_however_the_program_ends() {
    for (way, code) in WAYS_TO_END {
        let desk = external();
        let mut shell = Shell::at(&desk);
        let before = shell.modes();
        shell.runs("toolgate run Go").sees(RESULT);
        match way {
            "^C" => drop(shell.types("touch pw\x03touch pwned\n")),
            "^D" => drop(shell.types("\x04touch pwned\n")),
            signal => {
                shell.types("touch pw").sees("touch pw");
                send(signal, &desk);
            }
        }
        let shown = shell.sees(&format!("{code}ready> "));
        assert!(shown.contains("\x1b[?2004l"), "{way}: {}", shown.escape_debug());
        shell.has_executed_everything();
        assert!(!was_executed(&desk), "{way}");
        assert_eq!(shell.modes(), before, "{way}");
    }
}

#[test]
fn a_suspended_prompt_gives_the_terminal_back_and_asks_again() {
    for way in ["^Z", "TSTP", "STOP"] {
        let desk = external();
        let mut shell = Shell::at(&desk);
        let before = shell.modes();
        shell.runs("toolgate run Go").sees(RESULT);
        shell.types("fi").sees("fi");
        match way {
            "^Z" => drop(shell.types("\x1a")),
            signal => send(signal, &desk),
        }
        shell.sees("Stopped");
        shell.sees("ready> ");
        assert_eq!(shell.modes(), before, "{way}");
        shell.runs("fg").sees(RESULT);
        shell.sees("fi");
        shell.types(&pasted("ne\nindeed")).types("\r").sees("[0] ready> ");
        assert_eq!(shell.modes(), before, "{way}");
        assert!(result(&desk).to_string().contains(r"fine\nindeed"), "{way}: {}", result(&desk));
    }
}

#[test]
fn questions_reach_the_terminal_past_a_pipe_and_a_redirected_standard_error() {
    let desk = external();
    let mut shell = Shell::at(&desk);
    shell.runs("echo Go | toolgate run - 2>story.txt").sees(RESULT);
    shell.types(&pasted("ok\ntouch pwned\n")).types("\r").sees("[0] ready> ");
    shell.has_executed_everything();
    assert!(!was_executed(&desk));
    assert!(result(&desk).to_string().contains(r"ok\ntouch pwned"), "{}", result(&desk));
}

#[test]
fn a_message_from_the_terminal_is_as_long_as_it_was_pasted() {
    let line = "0123456789".repeat(1_000);
    let lines = "a line of the message\r".repeat(400);
    for (paste, message) in [
        (line.clone(), line.clone()),
        (pasted(&line), line.clone()),
        (pasted(&lines), lines.trim_end().replace('\r', "\n")),
    ] {
        let desk = Desk::playing("turns: [{ say: done }]");
        let mut shell = Shell::at(&desk);
        shell.runs("toolgate run -").sees("Ctrl-D");
        shell.types(&paste).types("\r\x04").sees("[0] ready> ");
        let text = fact(&desk, "execution.started")["input"]["content"][0]["text"].take();
        assert_eq!(text.as_str().map(str::trim_end), Some(&*message));
    }
}

#[test]
fn a_program_ends_when_its_terminal_is_closed_at_a_prompt() {
    let desk = external();
    let mut shell = Shell::at(&desk);
    shell.runs("toolgate run Go").sees(RESULT);
    let program = program_of(&desk).expect("the program runs");
    shell.close();
    while std::path::Path::new(&format!("/proc/{program}")).exists() {
        std::thread::yield_now();
    }
    let listed = desk.toolgate(&["runs", "list", "--json"]).json_lines();
    assert_eq!(listed[0]["status"], "pending");
    assert!(!desk.toolgate(&["resume", "last", "--result", "ask=ok"]).expect(0).err.contains("another process"));
}

/// The process that runs in this folder.
fn program_of(desk: &Desk) -> Option<u32> {
    let folder = std::fs::canonicalize(desk.path()).unwrap();
    let ids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.into_iter().find(|id: &u32| {
        let runs_here = std::fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd == folder);
        let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        runs_here && words.starts_with(b"toolgate\0run\0")
    })
}

fn send(signal: &str, desk: &Desk) {
    let program = program_of(desk).expect("the program runs").to_string();
    let sent = std::process::Command::new("kill").args([&format!("-{signal}"), &program]).status().unwrap();
    assert!(sent.success());
}
