//! A full disk (issue 39, part A): commands that only read work, and the others say why they do not.
//!
//! A shell that allows files of one block stands in for the disk: SQLite cannot allocate its shared memory there either.

#![cfg(target_os = "linux")]

use super::desk::{Desk, Ended};

/// Runs a command on a full disk.
fn when_full(desk: &Desk, command: &str) -> Ended {
    desk.paste(&format!("trap '' XFSZ; ulimit -f 1; exec toolgate {command}"))
}

#[test]
fn runs_are_listed_and_shown_on_a_full_disk() {
    let desk = Desk::playing("turns:\n  - say: Forty-two.\n");
    desk.toolgate(&["run", "--session", "chat-77", "What is it?"]).expect(0);

    let listed = when_full(&desk, "runs list").expect(0);
    assert!(listed.out.contains("What is it?"), "{}", listed.out);
    let shown = when_full(&desk, "sessions messages chat-77").expect(0);
    assert!(shown.out.contains("Forty-two."), "{}", shown.out);
}

#[test]
fn a_run_on_a_full_disk_says_that_the_disk_is_full() {
    let desk = Desk::playing("turns:\n  - say: Forty-two.\n");
    desk.toolgate(&["run", "What is it?"]).expect(0);

    let refused = when_full(&desk, "run 'And now?'").expect(1);
    assert!(refused.err.contains("the disk of the store is full"), "{}", refused.err);
    assert!(refused.err.contains("free some disk space"), "{}", refused.err);
    assert!(!refused.err.contains("And now?\n0 tools"), "nothing is started: {}", refused.err);
    let runs = desk.toolgate(&["runs", "list", "--json"]).expect(0).json_lines();
    assert_eq!(runs.len(), 1, "the file is intact");
}
