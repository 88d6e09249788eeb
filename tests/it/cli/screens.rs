//! Screens of the terminal at 60, 80 and 140 columns, as a terminal emulator shows them. The snapshots name the styles of each
//! part, and `scripts/screens` draws them with a light and a dark theme, for review.
#![cfg(target_os = "linux")]

use std::num::NonZeroU16;

use serde_json::json;
use vt100::{Cell, Color, Parser};

use super::desk::{Desk, steady};
use super::shell::Shell;
use super::suspended_calls::fault_server;

const WIDTHS: [u16; 3] = [60, 80, 140];
const ROWS: u16 = 70;

const ANSWER: &str = "
turns:
  - say: |
      ## Three late orders

      Orders **A-1077** and *A-1080* are late, because the carrier lost a pallet; the customers were told on Monday.

      1. Refund the shipping.
      2. Send `A-1080` again:

      ```sh
      shop resend A-1080 --carrier north
      ```

      | order | customer | days |
      |---|---|--:|
      | A-1077 | Ada Lindqvist | 3 |
      | A-1080 | 山田太郎 | 12 |

      > Nothing was sent yet.
  - say: As I said.
";

const NOTE: &str = r#"
turns:
  - calls:
      - id: note
        name: mcp_shop_add_note
        arguments: { customer_id: C-1001, text: "Called on Monday.\nShe wants a refund of the shipping.\n" }
  - { say: Noted. }
"#;

/// Words that are wider than any of the terminals.
const LONG_WORDS: &str = r#"
turns:
  - calls:
      - id: note
        name: mcp_shop_add_note
        arguments: { customer_id: C-1001, text: "Called on Monday.\nWIDE https://parcels.example.com/track?id=NARROW\n" }
  - { say: Noted. }
"#;

/// A shell in a terminal of this width.
struct Terminal {
    shell: Shell,
    columns: u16,
}

impl Terminal {
    fn at(desk: &Desk, columns: u16) -> Self {
        let mut shell = Shell::at(desk);
        shell.runs(&format!("PS1='$ '; unset COLUMNS; stty rows {ROWS} cols {columns}; clear"));
        shell.sees("\x1b[2J");
        shell.sees("$ ");
        Self { shell, columns }
    }

    /// What the screen shows, with placeholders for what differs between runs.
    fn screen(&self) -> String {
        let mut parser = Parser::new(size(ROWS), size(self.columns), 0);
        parser.process(without_ids(self.shell.shown()).as_bytes());
        let rows =
            (0..ROWS).map(|row| styled((0..self.columns).filter_map(|column| parser.screen().cell(row, column))));
        let rows: Vec<String> = rows.collect();
        let text = steady(rows.join("\n").trim_end());
        let text: Vec<String> = text.lines().map(|row| without_alignment(&without_first_times(row))).collect();
        let text = text.join("\n");
        text.chars().map(|c| if ('⠀'..='⣿').contains(&c) { '⠿' } else { c }).collect()
    }
}

/// The output with zeros in place of ids and digests, which may be broken at the edge of the screen.
fn without_ids(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let is_hex = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    let (mut steady, mut rest) = (String::new(), &*text);
    while let Some(start) = rest.find(is_hex) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_hex(c)).unwrap_or(from.len()));
        steady.push_str(before);
        steady.push_str(&if word.len() < 12 { word.to_owned() } else { "0".repeat(word.len()) });
        rest = after;
    }
    steady + rest
}

/// The row with a placeholder for a time that a styled part begins with.
fn without_first_times(row: &str) -> String {
    let parts = row.split_inclusive('|').map(|part| {
        let unit = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is_time = unit.len() < part.len() && (unit.starts_with(" ms") || unit.starts_with(" s"));
        if is_time {
            format!("N ms{}", unit.trim_start_matches(" ms").trim_start_matches(" s"))
        } else {
            part.to_owned()
        }
    });
    parts.collect()
}

/// The row with a fixed gap between the columns of a table, if one of them has times, whose lengths differ between runs.
fn without_alignment(row: &str) -> String {
    if !row.contains("N ms") && !row.contains(" AGE ") {
        return row.to_owned();
    }
    let indent = row.len() - row.trim_start().len();
    let columns: Vec<&str> = row.trim_start().split("  ").map(str::trim).filter(|column| !column.is_empty()).collect();
    format!("{}{}", &row[..indent], columns.join("  "))
}

fn size(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).unwrap()
}

/// A row with its styles, such as `{dim|turn 1}`.
fn styled<'c>(cells: impl Iterator<Item = &'c Cell>) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for cell in cells.filter(|cell| !cell.is_wide_continuation()) {
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let style = style(cell);
        match parts.last_mut() {
            Some((last, row)) if *last == style => row.push_str(text),
            Some(_) | None => parts.push((style, text.to_owned())),
        }
    }
    let row: String = parts
        .iter()
        .map(|(style, text)| if style.is_empty() { text.clone() } else { format!("{{{style}|{text}}}") })
        .collect();
    row.trim_end().to_owned()
}

fn style(cell: &Cell) -> String {
    let colour = match cell.fgcolor() {
        Color::Default => "",
        Color::Idx(1) => "red",
        Color::Idx(2) => "green",
        Color::Idx(3) => "yellow",
        Color::Idx(5) => "magenta",
        Color::Idx(6) => "cyan",
        other @ (Color::Idx(_) | Color::Rgb(..)) => panic!("{other:?} is not a colour of both themes"),
    };
    assert_eq!(cell.bgcolor(), Color::Default, "a background colour hides text in one of the themes");
    let named = [(cell.bold(), "bold"), (cell.dim(), "dim"), (cell.italic(), "italic"), (!colour.is_empty(), colour)];
    let words: Vec<&str> = named.iter().filter(|(is_set, _)| *is_set).map(|(_, word)| *word).collect();
    words.join(" ")
}

/// Shows a scene at each width.
fn scene(name: &str, desk: &Desk, play: impl Fn(&mut Shell)) {
    for columns in WIDTHS {
        let mut terminal = Terminal::at(desk, columns);
        play(&mut terminal.shell);
        insta::assert_snapshot!(format!("{name}_{columns}"), terminal.screen());
    }
}

/// Runs a command to its end.
fn running(command: &str) -> impl Fn(&mut Shell) {
    move |shell| {
        shell.runs(command);
        shell.sees("\r\n");
        shell.sees("$ ");
    }
}

#[test]
fn an_answer_is_typeset() {
    let desk = Desk::playing(ANSWER);
    scene("answer", &desk, |shell| {
        shell.runs("toolgate chat").sees("> ");
        shell.runs("Which orders are late?").sees("yet.");
        shell.sees("> ");
    });
}

#[test]
fn the_answer_of_a_stored_run_is_typeset_in_a_terminal_only() {
    let desk = Desk::playing(ANSWER);
    let plain = desk.toolgate(&["run", "Which orders are late?"]).expect(0);
    assert!(plain.out.contains("**A-1077**"), "{}", plain.out);
    let mut terminal = Terminal::at(&desk, 80);
    running("toolgate runs show last")(&mut terminal.shell);
    let screen = terminal.screen();
    assert!(screen.contains("  | {bold|Three late orders}") && screen.contains("  | Orders {bold|A-1077}"), "{screen}");
    let plain = desk.toolgate(&["runs", "show", "last"]).expect(0).out;
    assert!(plain.contains("  | ## Three late orders") && plain.contains("**A-1077**"), "{plain}");
}

#[test]
fn the_words_of_the_demonstration_hang_below_their_beginning() {
    let desk = Desk::empty();
    let mut terminal = Terminal::at(&desk, 80);
    terminal.shell.runs("toolgate demo").sees("writes your own.");
    terminal.shell.sees("$ ");
    let screen = terminal.screen();
    let rows: Vec<&str> = screen.lines().collect();
    let note = rows.iter().position(|row| row.contains("── The run is pending: ext_issue_refund")).unwrap();
    assert!(rows[note + 1].starts_with("{cyan|   ") && rows[note + 2].starts_with("{cyan|   "), "{screen}");
}

#[test]
fn an_approval_shows_what_would_run() {
    let desk =
        Desk::playing(&LONG_WORDS.replace("WIDE", &"山田".repeat(40)).replace("NARROW", &"quick-brown-".repeat(15)));
    scene("approval", &desk, |shell| {
        shell.runs("toolgate run 'Note the call'").sees("later: ");
        shell.types("?").sees("Ctrl-C");
        shell.sees("later: ");
        shell.types("l").sees("none): ");
    });
}

#[test]
fn the_inbox_lists_what_waits() {
    let refund = "{ id: refund, name: ext_issue_refund, arguments: { order_id: A-1077 } }";
    let desk = Desk::playing(&format!("turns: [{{ calls: [{refund}] }}, {{ say: done }}]"));
    desk.toolgate(&["run", "Refund the shipping"]).expect(10);
    desk.write("conversation.yaml", NOTE);
    desk.toolgate(&["run", "Note the call"]).expect(10);
    desk.toolgate(&["run", "--session", "monday", "Note the call"]).expect(10);
    scene("inbox", &desk, |shell| {
        shell.runs("toolgate approvals").sees("Esc: leave): ");
    });
}

#[test]
fn parallel_calls_have_a_line_each() {
    let call = |n: usize| json!({"id": format!("c{n}"), "name": "mcp_odd_echo", "arguments": {"text": format!("order {n} of the customer who wrote on Monday about a parcel that never came")}});
    let calls: Vec<_> = (1..=4).map(call).collect();
    let desk = Desk::playing(&json!({"turns": [{"calls": calls}, {"say": "done"}]}).to_string());
    let server = json!({"command": fault_server(), "args": ["--stdio", "--fault", "hang-at-call"]});
    let config = json!({
        "models": {"played": {"scripted": {"file": "conversation.yaml"}}},
        "servers": {"odd": {"stdio": server}},
        "agents": {"desk": {"servers": ["odd"], "policy": "bypass"}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    scene("calls", &desk, |shell| {
        shell.runs("toolgate chat").sees("> ");
        shell.runs("Ask for all four").sees("order 4");
        shell.types("and write to them").sees("> and write to them");
    });
}

#[test]
fn a_line_of_the_log_replaces_the_temporary_lines() {
    let desk = Desk::playing(&NOTE.replace("- calls:", "- latency_ms: 500\n    calls:"));
    let mut terminal = Terminal::at(&desk, 140);
    let command = "NO_COLOR=1 RUST_LOG=toolgate=debug toolgate run --policy bypass 'Note it'";
    terminal.shell.runs(command).sees("continue with: ");
    terminal.shell.sees("$ ");
    let screen = terminal.screen();
    assert!(screen.contains("Noted.") && !screen.contains("Esc interrupts"), "{screen}");
    let mut logged = screen.lines().filter(|row| row.contains(" toolgate::run: ")).peekable();
    assert!(logged.peek().is_some() && logged.all(|row| row.starts_with("20")), "{screen}");
}

#[test]
fn lists_fit_the_terminal() {
    let desk = Desk::playing(NOTE);
    desk.toolgate(&["run", "Note that call"]).expect(10);
    desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(0);
    desk.toolgate(&["run", "Note the call"]).expect(10);
    for (name, command) in [
        ("runs", "toolgate runs list"),
        ("show", "toolgate runs show last"),
        ("pending", "toolgate approvals list"),
        ("tools", "toolgate tools"),
        ("doctor", "toolgate doctor"),
    ] {
        scene(name, &desk, running(command));
    }
}

#[test]
fn the_next_steps_of_init_fit_the_terminal() {
    let desk = Desk::empty();
    desk.toolgate(&["init"]).expect(0);
    scene("init", &desk, running("toolgate init --force --model anthropic"));
}

#[test]
fn an_error_of_the_configuration_points_at_its_place() {
    let desk = Desk::playing(NOTE);
    let yaml = "models: { played: { scripted: { file: conversation.yaml } } }\nagents:\n  desk: { model: plaid, policy: acept-edits, limits: { max_iterations: 0 } }\n";
    desk.write("toolgate.yaml", yaml);
    scene("error", &desk, running("toolgate run 'Note the call'"));
}
