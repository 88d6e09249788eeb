//! `toolgate chat` in a terminal.
#![cfg(target_os = "linux")]

use serde_json::Value;

use super::desk::Desk;
use super::shell::{Shell, pasted};

/// Two short turns, and a third that calls a guarded tool.
const TURNS: &str = "
turns:
  - say: Forty-two.
  - say: As I said.
  - { calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }] }
  - { say: Noted. }
summary:
  say: They talked about numbers.
";

fn sessions(desk: &Desk) -> Vec<Value> {
    desk.toolgate(&["sessions", "list", "--json"]).json_lines()
}

fn user_texts(desk: &Desk, session: &str) -> Vec<String> {
    let messages = desk.toolgate(&["sessions", "messages", session, "--json"]).expect(0).json_lines();
    let users = messages.iter().filter(|message| message["role"] == "user");
    users.filter_map(|message| message["content"][0]["text"].as_str().map(str::to_owned)).collect()
}

/// The id of the newest session.
fn session_id(desk: &Desk) -> String {
    sessions(desk)[0]["id"].as_str().unwrap().to_owned()
}

/// A desk whose model writes for some time before it calls a tool that requires approval.
fn asking_after_a_slow_reply() -> Desk {
    let call = "{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }";
    let slow = "say: I note it., stream: { fragments: 3, delay_ms: 500 }";
    Desk::playing(&format!("turns: [{{ {slow}, calls: [{call}] }}, {{ say: Noted. }}]"))
}

/// A conversation at its first prompt.
fn chat(desk: &Desk, arguments: &str) -> Shell {
    let mut shell = Shell::at(desk);
    shell.runs(&format!("toolgate chat {arguments}"));
    shell.sees("Ctrl-D leaves");
    shell.sees("> ");
    shell
}

/// Leaves the conversation and returns what it printed last.
fn left(shell: &mut Shell) -> String {
    shell.types("\x04");
    shell.sees("[0] ready> ")
}

#[test]
fn messages_are_runs_of_one_session_and_servers_start_once() {
    let desk = Desk::playing(TURNS);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let counted = "command: sh, args: [-c, 'echo x >> starts; exec toolgate demo-server']";
    desk.write("toolgate.yaml", &config.replace("command: toolgate, args: [demo-server]", counted));
    let mut shell = chat(&desk, "");
    shell.runs("What is it?").sees("Forty-two.");
    shell.sees("> ");
    shell.runs("What was it?").sees("As I said.");
    shell.sees("> ");
    let end = left(&mut shell);
    let session = sessions(&desk).remove(0);
    assert_eq!((&session["runs"], &session["title"]), (&2.into(), &"What is it?".into()));
    assert!(end.contains(&format!("toolgate chat --session {}", session["id"].as_str().unwrap())), "{end}");
    assert_eq!(std::fs::read_to_string(desk.path().join("starts")).unwrap(), "x\n");
}

#[test]
fn the_last_conversation_is_continued_and_its_end_is_shown() {
    let desk = Desk::playing(TURNS);
    desk.toolgate(&["run", "--session", "chat-77", "What is it?"]).expect(0);
    for arguments in ["-c", "--session chat", "--pick"] {
        let mut shell = Shell::at(&desk);
        shell.runs(&format!("toolgate chat {arguments}"));
        if arguments == "--pick" {
            shell.sees("1. 1 turn");
            shell.sees("a new conversation): ");
            shell.runs("7").sees("there is no number 7");
            shell.sees("a new conversation): ");
            shell.runs("1");
        }
        shell.sees("Ctrl-D leaves");
        let shown = shell.sees("> ");
        assert!(shown.contains(" What is it?\r\n  | Forty-two."), "{shown}");
        // Up recalls the message of the earlier process.
        shell.types("\x1b[A");
        shell.sees("What is it?");
        shell.types("\x15");
        left(&mut shell);
    }
    let mut shell = chat(&desk, "-c");
    shell.runs("Again").sees("As I said.");
    shell.sees("> ");
    left(&mut shell);
    assert_eq!(user_texts(&desk, "chat-77"), ["What is it?", "Again"]);
}

#[test]
fn escape_interrupts_a_turn_and_the_conversation_goes_on() {
    let desk = Desk::playing("turns: [{ hang: true }]");
    desk.add_another_model();
    let mut shell = chat(&desk, "");
    shell.runs("Hello").sees("Esc interrupts");
    shell.types("\x1b").sees("cancelled: interrupted at the terminal");
    shell.sees("> ");
    shell.runs("/model").sees("● played");
    shell.sees("> ");
    shell.runs("/model other").sees("model other");
    shell.sees("> ");
    shell.runs("Still there?").sees("Here I am.");
    shell.sees("> ");
    left(&mut shell);
    let session = session_id(&desk);
    // The message without a reply is joined to the next one.
    assert_eq!(desk.toolgate(&["sessions", "show", &session]).out.matches("run_").count(), 2);
}

#[test]
fn an_answer_that_escape_stops_stays_in_the_conversation() {
    let expected = "[toolgate] The reply above was stopped before it was complete.";
    let desk = Desk::playing(&format!(
        "turns:
  - {{ say: The answer is forty, stream: {{ fragments: 4 }}, hang: true }}
  - {{ expect: {{ contains: '{expected}' }}, say: Shorter it is. }}"
    ));
    let mut shell = chat(&desk, "");
    shell.runs("Hello").sees("The answer is forty");
    shell.types("\x1b").sees("cancelled: interrupted at the terminal");
    shell.sees("> ");
    shell.runs("Shorter, please").sees("Shorter it is.");
    shell.sees("> ");
    left(&mut shell);

    let mut again = Shell::at(&desk);
    again.runs("toolgate chat -c");
    let shown =
        ["Hello", "The answer is forty", "cancelled: interrupted at the terminal", "Shorter, please", "Shorter it is."];
    for text in shown.into_iter().chain(["> "]) {
        again.sees(text);
    }
    left(&mut again);
    let stopped = desk.toolgate(&["runs", "list", "--status", "cancelled", "--json"]).json_lines();
    let shown = desk.toolgate(&["runs", "show", stopped[0]["id"].as_str().unwrap()]).out;
    assert!(shown.contains("The answer is forty") && shown.contains("interrupted at the terminal"), "{shown}");
}

#[test]
fn ctrl_c_puts_a_draft_aside_and_leaves_at_an_empty_prompt() {
    let desk = Desk::playing("turns: [{ say: One. }]");
    let mut shell = chat(&desk, "");
    shell.types("\x03").sees("press Ctrl-C again");
    shell.sees("> ");
    shell.types("a draft").sees("a draft");
    shell.types("\x03").sees("> ");
    shell.types("\x1b[A").sees("a draft");
    shell.types("\r").sees("One.");
    shell.sees("> ");
    shell.types("\x03").sees("press Ctrl-C again");
    shell.sees("> ");
    shell.types("\x03").sees("[0] ready> ");
}

#[test]
fn a_retry_asks_the_model_that_was_chosen_after_a_failure() {
    let desk = Desk::playing("turns: [{ fail: { code: provider_rejected } }]");
    desk.add_another_model();
    let mut shell = chat(&desk, "");
    shell.runs("Hello").sees("failed:");
    shell.sees("> ");
    shell.runs("/model other").sees("model other");
    shell.sees("> ");
    shell.runs("/retry").sees("Here I am.");
    shell.sees("> ");
    left(&mut shell);
}

#[test]
fn the_end_names_no_flag_that_a_choice_in_the_conversation_has_replaced() {
    let desk = Desk::playing("turns: [{ say: One. }, { say: Two. }]");
    let mut shell = chat(&desk, "--policy bypass");
    shell.runs("Hello").sees("One.");
    shell.sees("> ");
    shell.runs("/policy plan").sees("plan > ");
    let end = shell.types("\x04").sees("[0] ready> ");
    assert!(end.contains("--policy plan") && !end.contains("bypass"), "{end}");
    let mut shell = chat(&desk, "-c --policy bypass");
    shell.runs("/policy plan").sees("plan > ");
    shell.runs("And?").sees("Two.");
    shell.sees("plan > ");
    let end = left(&mut shell);
    assert!(end.contains("--session") && !end.contains("--policy"), "its run keeps the policy: {end}");
    let mut shell = Shell::at(&desk);
    shell.runs("toolgate chat -c").sees("plan > ");
    left(&mut shell);
}

#[test]
fn a_message_entered_during_a_turn_that_ends_is_read_by_the_model_that_is_chosen_for_the_retry() {
    let desk = Desk::playing("turns: [{ hang: true }]");
    desk.add_another_model();
    let mut shell = chat(&desk, "");
    shell.runs("Hello").sees("Esc interrupts");
    shell.types("In French\r").sees("(the model reads it next)");
    shell.types("\x1b").sees("the model has not read this message; it stays in the conversation");
    shell.sees("cancelled");
    shell.sees("> ");
    shell.runs("/model other").sees("model other");
    shell.sees("> ");
    shell.runs("/retry").sees("Here I am.");
    shell.sees("> ");
    left(&mut shell);
    let session = session_id(&desk);
    let messages = desk.toolgate(&["sessions", "messages", &session]).expect(0).out;
    assert!(
        messages.contains("Hello") && messages.contains("In French") && messages.contains("Here I am."),
        "{messages}"
    );
}

#[test]
fn a_server_that_is_not_available_is_told_once_in_a_conversation() {
    let desk = Desk::playing("turns: [{ say: One. }, { say: Two. }]");
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write(
        "toolgate.yaml",
        &config.replace("command: toolgate, args: [demo-server]", "command: sh, args: [-c, exit 3]"),
    );
    let mut shell = chat(&desk, "");
    assert!(shell.runs("Hello").sees("One.").contains("! left out: "));
    shell.sees("> ");
    let second = shell.runs("And?").sees("Two.");
    assert!(!second.contains("! "), "{second}");
    shell.sees("> ");
    left(&mut shell);
}

#[test]
fn text_typed_during_a_turn_begins_the_next_message() {
    let desk = Desk::playing("turns: [{ hang: true }]");
    let mut shell = chat(&desk, "");
    shell.runs("Hello").sees("Esc interrupts");
    shell.types("and them\x7fn\x1b\rwhat?").sees("> and then");
    shell.sees("    what?");
    shell.types("\x1b").sees("cancelled: interrupted at the terminal");
    shell.sees("> and then\r\n  | what?");
    shell.types(" Now.\r").sees("Esc interrupts");
    shell.types("\x1b").sees("cancelled: interrupted at the terminal");
    shell.sees("> ");
    left(&mut shell);
    let session = session_id(&desk);
    assert_eq!(user_texts(&desk, &session).pop().as_deref(), Some("and then\nwhat? Now."));
}

#[test]
fn a_message_entered_during_a_turn_is_read_with_the_next_request_of_the_turn() {
    let desk = Desk::playing(
        "turns: [{ say: one two three four five, stream: { fragments: 5, delay_ms: 1500 } }, { say: In French. }]",
    );
    let mut shell = chat(&desk, "");
    shell.runs("Count").sees("| one");
    shell.types("In French, please\r").sees("> In French, please  (the model reads it next)");
    shell.sees("model: ");
    let between = shell.sees("In French.\r\n");
    assert!(between.contains(" In French, please\r\n"), "{between}");
    shell.sees("> ");
    shell.types("\x1b[A").sees("In French, please");
    shell.types("\x15");
    left(&mut shell);
    let session = sessions(&desk).remove(0);
    assert_eq!(session["runs"], 1);
    assert_eq!(user_texts(&desk, session["id"].as_str().unwrap()), ["Count", "In French, please"]);
}

#[test]
fn a_message_that_the_model_has_not_read_before_the_end_of_a_turn_stays_in_the_conversation() {
    let desk = Desk::playing("turns: [{ hang: true }]");
    let mut shell = chat(&desk, "");
    shell.runs("Hello").sees("Esc interrupts");
    shell.types("Be quick\r").sees("(the model reads it next)");
    let end = shell.types("\x1b").sees("cancelled: interrupted at the terminal");
    assert!(
        end.contains(" Be quick\r\n")
            && end.contains("the model has not read this message; it stays in the conversation"),
        "{end}"
    );
    shell.sees("> ");
    left(&mut shell);
    let session = session_id(&desk);
    let messages = desk.toolgate(&["sessions", "messages", &session]).expect(0).out;
    assert!(messages.contains("Hello") && messages.contains("Be quick"), "{messages}");
}

#[test]
fn no_letter_of_a_message_in_progress_decides_about_a_call() {
    let desk = asking_after_a_slow_reply();
    let mut shell = chat(&desk, "");
    shell.runs("Note it").sees("| I");
    shell.types("and make").sees("> and make");
    shell.sees("end your message first");
    shell.types(" sure").sees("and make sure");
    shell.types("\x1b").sees("[q] later: ");
    // The first letters of a sentence at the question do not decide either.
    shell.types("so").sees("end your message first");
    shell.types("\x15").sees("[q] later: ");
    shell.types("a").sees("Noted.");
    shell.sees("> ");
    left(&mut shell);
    assert_eq!(desk.toolgate(&["runs", "list", "--json"]).json_lines().len(), 1);
}

#[test]
fn a_message_entered_at_a_question_is_recorded_before_the_decision() {
    let desk = asking_after_a_slow_reply();
    let mut shell = chat(&desk, "");
    shell.runs("Note it").sees("| I");
    shell.types("in French").sees("end your message first");
    shell.types("\r").sees("[q] later: ");
    // Another process reads it while the question is open.
    Shell::at(&desk).runs("toolgate runs events last --follow --json").sees("\"text\":\"in French\"");
    shell.types("a");
    let answer = shell.sees("Noted.");
    assert!(answer.contains(" in French\r\n"), "{answer}");
    shell.sees("> ");
    left(&mut shell);
    let messages = desk.toolgate(&["sessions", "messages", &session_id(&desk), "--json"]).expect(0).json_lines();
    assert_eq!(messages[2]["content"][1]["text"], "in French", "with the result of the call");
}

#[test]
fn of_what_was_entered_during_a_turn_that_does_not_complete_only_a_choice_is_executed() {
    let desk = Desk::playing("turns: [{ hang: true }]");
    desk.write("notes.txt", "four");
    let mut shell = chat(&desk, "");
    shell.runs("Hello").sees("Esc interrupts");
    shell.types("/cost\rsee @notes.txt\r/policy plan\r").sees("(after this turn)");
    shell.types("\x1b").sees("cancelled");
    shell.sees("not executed: /cost");
    shell.sees("plan > see @notes.txt");
    shell.types("\x15");
    left(&mut shell);
}

#[test]
fn a_new_conversation_recalls_the_messages_of_those_before_it() {
    let desk = Desk::playing(TURNS);
    for message in ["What is the answer?", "And the question?"] {
        desk.toolgate(&["run", message]).expect(0);
    }
    let mut shell = chat(&desk, "--policy bypass");
    shell.types("\x1b[A").sees("And the question?");
    shell.types("\x1b[A").sees("What is the answer?");
    shell.types("\x15the ques\x12").sees("And the question?");
    let found = shell.types("\x15\x12What").sees("What is the answer?");
    assert!(found.contains("search What: "), "{found}");
    shell.types("\x15");
    left(&mut shell);
}

#[test]
fn the_conversations_that_can_be_picked_are_in_the_order_of_their_last_use() {
    let desk = Desk::playing(TURNS);
    for message in ["First", "Second"] {
        desk.toolgate(&["run", "--quiet", message]).expect(0);
    }
    let first = desk.toolgate(&["runs", "list", "--json"]).json_lines()[1]["session_id"].as_str().unwrap().to_owned();
    desk.toolgate(&["run", "--session", &first, "Again"]).expect(0);
    let mut shell = Shell::at(&desk);
    let shown = shell.runs("toolgate chat --pick").sees("a new conversation): ");
    assert!(shown.find("2 turns").unwrap() < shown.find("1 turn ").unwrap(), "{shown}");
    shell.runs("1").sees("> ");
    left(&mut shell);
}

#[test]
fn the_end_of_a_turn_that_another_process_continued_is_shown() {
    let desk = asking_after_a_slow_reply();
    let mut shell = chat(&desk, "");
    shell.runs("Note it").sees("[q] later: ");
    shell.types("q").sees("> ");
    desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(0);
    let shown = shell.types("\r").sees("Noted.");
    assert!(shown.contains("another process continued the last turn:"), "{shown}");
    shell.sees("> ");
    let rest = left(&mut shell);
    assert!(!rest.contains("Noted."), "it is shown once: {rest}");
}

#[test]
fn a_turn_that_this_process_continued_is_not_shown_again() {
    for ends in ["\r", "/cancel\r"] {
        let desk = asking_after_a_slow_reply();
        let mut shell = chat(&desk, "");
        shell.runs("Note it").sees("[q] later: ");
        shell.types("q").sees("> ");
        if ends == "\r" {
            shell.types(ends).sees("[q] later: ");
            shell.types("a").sees("Noted.");
        } else {
            shell.types(ends).sees("cancelled run_");
        }
        shell.sees("> ");
        shell.types("/cost\r").sees("1 run");
        shell.sees("> ");
        let rest = left(&mut shell);
        assert!(!rest.contains("another process") && !rest.contains("Noted."), "{ends}: {rest}");
    }
}

#[test]
fn a_conversation_that_waits_is_marked_among_those_that_can_be_picked() {
    let desk = asking_after_a_slow_reply();
    desk.toolgate(&["run", "--quiet", "Note it"]).expect(10);
    let mut shell = Shell::at(&desk);
    shell.runs("toolgate chat --pick").sees("pending · Note it");
    shell.sees("a new conversation): ");
    shell.types("\x03");
}

#[test]
fn the_prompt_names_a_policy_that_allows_calls_by_default() {
    let desk = Desk::playing(TURNS);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &config.replace("policy: accept-edits", "policy: bypass"));
    let mut shell = chat(&desk, "");
    shell.runs("Hello").sees("Forty-two.");
    shell.sees("bypass > ");
    left(&mut shell);
}

#[test]
fn one_key_decides_and_a_decision_that_was_left_open_is_asked_again() {
    let desk = Desk::playing(TURNS);
    desk.toolgate(&["run", "--session", "chat-77", "One"]).expect(0);
    desk.toolgate(&["run", "--session", "chat-77", "Two"]).expect(0);
    let mut shell = chat(&desk, "-c");
    shell.runs("Note it").sees("[q] later: ");
    shell.types("q").sees("pending: the run waits for 1 answer");
    assert!(!shell.sees("press Enter to answer").contains("toolgate resume"), "no command of the shell fits here");
    shell.sees("> ");
    shell.types("\r").sees("[q] later: ");
    shell.types("\x1b").sees("press Enter to answer");
    shell.sees("> ");
    shell.runs("/approvals").sees("[q] later: ");
    shell.types("a").sees("Noted.");
    shell.sees("> ");
    shell.runs("/resume").sees("nothing is pending");
    shell.sees("> ");
    shell.runs("/approvals").sees("no grant is in force");
    shell.sees("> ");
    left(&mut shell);
}

/// A conversation with a desk that plays [`TURNS`], at the question of its third turn.
fn asked_in_the_third_turn(desk: &Desk) -> Shell {
    let mut shell = chat(desk, "");
    for (message, shown) in [("One", "Forty-two."), ("Two", "As I said.")] {
        shell.runs(message).sees(shown);
        shell.sees("> ");
    }
    shell.runs("Note it").sees("[q] later: ");
    shell
}

#[test]
fn a_message_in_place_of_an_approval_denies_the_call_and_continues_the_turn() {
    let desk = Desk::playing(TURNS);
    let mut shell = asked_in_the_third_turn(&desk);
    shell.types("\x1b").sees("a message denies what waits for approval");
    shell.sees("> ");
    shell.runs("Rather tell her").sees("denied");
    shell.sees("Noted.");
    shell.sees("> ");
    left(&mut shell);
    let facts = desk.journal("last");
    let denials: Vec<&str> = facts.iter().filter_map(|fact| fact["decision"]["reason"].as_str()).collect();
    assert_eq!(denials, ["the user did not approve this call, and sent a message in its place"]);
    let added = facts.iter().find(|fact| fact["type"] == "message.added").unwrap();
    assert!(added.to_string().contains("Rather tell her"), "{added}");
    assert!(facts.iter().all(|fact| fact["type"] != "tool.started"), "the call did not run");
}

#[test]
fn a_conversation_that_another_terminal_continued_goes_on_where_that_is() {
    let desk = Desk::playing(TURNS);
    let mut first = chat(&desk, "");
    first.runs("One").sees("Forty-two.");
    first.sees("> ");
    let mut second = chat(&desk, "-c");
    second.runs("Two").sees("As I said.");
    second.sees("> ");
    first.runs("Note it").sees("another process continued this conversation");
    first.sees("As I said.");
    first.sees("nothing was done, because you had not seen this turn");
    first.sees("> ");
    first.runs("Note it").sees("[q] later: ");
    first.types("q").sees("press Enter to answer");
    first.sees("> ");
    second.types("\r").sees("[q] later: ");
    second.types("a").sees("Noted.");
    second.sees("> ");
    left(&mut second);
    left(&mut first);
}

#[test]
fn a_turn_that_waits_keeps_its_policy_and_takes_no_message_under_another_one() {
    let desk = Desk::playing(TURNS);
    let mut shell = asked_in_the_third_turn(&desk);
    shell.types("q").sees("press Enter to answer");
    shell.sees("> ");
    shell.runs("/policy plan").sees("plan > ");
    shell.runs("Rather not").sees("continues under policy accept-edits, not plan");
    shell.sees("plan > ");
    shell.types("\r").sees("this turn continues under policy accept-edits");
    shell.sees("[q] later: ");
    shell.types("q").sees("plan > ");
    shell.runs("/cancel").sees("cancelled");
    shell.sees("plan > ");
    left(&mut shell);
    assert!(desk.journal("last").iter().all(|fact| fact["type"] != "message.added"));
}

#[test]
fn a_listed_grant_is_revoked() {
    let desk = Desk::playing(
        "turns: [{ calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }] }, { say: Noted. }]",
    );
    let mut shell = chat(&desk, "");
    shell.runs("Note it").sees("[q] later: ");
    shell.types("s").sees("Noted.");
    shell.sees("> ");
    shell.runs("/approvals").sees("/revoke GRANT revokes one");
    shell.sees("> ");
    shell.types("/revoke \t").sees("/revoke grant_");
    shell.types("\r").sees("mcp_shop_add_note revoked by");
    shell.sees("> ");
    shell.runs("/approvals").sees("no grant is in force");
    shell.sees("> ");
    left(&mut shell);
}

#[test]
fn an_earlier_turn_names_no_grants_in_force_and_the_next_one_does() {
    let call = "{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }";
    let desk =
        Desk::playing(&format!("turns: [{{ calls: [{call}] }}, {{ say: Noted. }}, {{ say: One. }}, {{ say: Two. }}]"));
    let mut shell = chat(&desk, "");
    shell.runs("Note it").sees("[q] later: ");
    assert!(shell.types("s").sees("Noted.").contains("1 grant in force"));
    shell.sees("> ");
    shell.runs("And?").sees("One.");
    shell.sees("> ");
    left(&mut shell);
    let mut shell = Shell::at(&desk);
    let earlier = shell.runs("toolgate chat -c").sees("One.");
    assert!(!earlier.contains("in force"), "{earlier}");
    shell.sees("> ");
    assert!(shell.runs("And now?").sees("Two.").contains("1 grant in force"));
    shell.sees("> ");
    left(&mut shell);
}

#[test]
fn a_file_that_a_message_names_is_attached() {
    let desk = Desk::playing(TURNS);
    desk.write("notes.txt", "Buy milk.");
    desk.write("empty.txt", "");
    let mut shell = chat(&desk, "");
    shell.runs("Read @empty.txt").sees("a space after the `@` makes it text");
    shell.sees("> ");
    shell.types("Read @no\t").sees("Read @notes.txt");
    shell.types(" to @ada.\r").sees("attached notes.txt");
    shell.sees("Forty-two.");
    shell.sees("> ");
    left(&mut shell);
    let session = session_id(&desk);
    let sent = desk.toolgate(&["sessions", "messages", &session, "--json"]).expect(0).json_lines().remove(0);
    let parts = sent["content"].as_array().unwrap();
    assert_eq!((&parts[0]["text"], parts.len()), (&"Read @notes.txt to @ada.".into(), 2));
}

#[test]
fn commands_show_and_change_what_the_next_message_is_sent_with() {
    let desk = Desk::playing(TURNS);
    let mut shell = chat(&desk, "");
    for (command, shown) in [
        ("/help", "/compact"),
        ("/tols", "there is no command /tols"),
        ("/tools", "mcp_shop_find_customer"),
        ("/cost", "this conversation has no message yet"),
        ("/trace", "this conversation has no message yet"),
        ("/approvals", "no grant is in force"),
        ("/policy nonsense", "there is no policy `nonsense`; there are: "),
        ("/policy plan", "policy plan"),
        ("/attach nothing.png", "cannot attach `nothing.png`"),
        ("Hello", "Forty-two."),
        ("/cost", "1 run, usage unknown"),
        ("/trace", "invoke_agent desk"),
        ("/fork", "the next message begins a copy"),
        ("Hello again", "As I said."),
        ("/compact", "nothing was replaced"),
        ("/cost", "1 run, usage unknown"),
        ("/trace", "chat played"),
        ("/agent", "● desk"),
        ("/new", "policy plan"),
    ] {
        shell.runs(command).sees(shown);
        shell.sees("> ");
    }
    left(&mut shell);
    let listed = sessions(&desk);
    assert_eq!(listed.len(), 2, "{listed:?}");
    let usage: Value = serde_json::from_str(&desk.toolgate(&["usage", "--json"]).expect(0).out).unwrap();
    assert_eq!(usage["total"]["runs"], 2, "a compaction that replaced nothing does not count: {usage}");
    let newest = desk.toolgate(&["runs", "list", "--json"]).json_lines().remove(0);
    let started = desk.journal(newest["id"].as_str().unwrap()).remove(0);
    assert_eq!(started["spec"]["mode"], Value::Null, "a compaction calls no tool: {started}");
    // The conversation goes on with the policy of its last message.
    shell.runs("toolgate chat -c").sees("policy plan");
    shell.sees("Ctrl-D leaves");
}

#[test]
fn a_shortened_result_names_the_command_that_shows_its_call_whole() {
    let desk = Desk::playing(
        "turns: [{ calls: [{ id: orders, name: mcp_shop_list_orders, arguments: { customer_id: C-1001 } }] }, { say: Two. }]",
    );
    let mut shell = chat(&desk, "");
    shell.runs("/show").sees("this conversation has shown no call yet");
    shell.sees("> ");
    shell.runs("List them").sees("… whole: /show 1");
    shell.sees("> ");
    for command in ["/show 1", "/show", "/show orders"] {
        shell.runs(command).sees("\"order_id\": \"A-1041\"");
        shell.sees("> ");
    }
    shell.runs("/show 2").sees("this conversation has shown no call `2`");
    shell.sees("> ");
    left(&mut shell);
    // A later process numbers the calls that it shows again.
    let mut shell = Shell::at(&desk);
    shell.runs("toolgate chat -c").sees("… whole: /show 1");
    shell.sees("> ");
    shell.runs("/show 1").sees("\"order_id\": \"A-1041\"");
    shell.sees("> ");
    left(&mut shell);
}

#[test]
fn the_turns_that_a_fork_has_copied_have_no_duration() {
    let desk = Desk::playing(TURNS);
    let mut shell = chat(&desk, "");
    for (command, shown) in [("What is it?", "Forty-two."), ("/fork", "begins a copy"), ("Again", "As I said.")] {
        let seen = shell.runs(command).sees(shown);
        assert!(!seen.contains("\x1b[1m>\x1b[0m"), "the prompt has shown the message: {seen}");
        shell.sees("> ");
    }
    left(&mut shell);
    shell.runs("toolgate chat -c").sees("Forty-two.");
    let copied = shell.sees("Again");
    let own = shell.sees("> ");
    assert!(!copied.contains("model: "), "{copied}");
    assert!(own.contains("model: "), "{own}");
}

#[test]
fn a_message_has_several_lines_and_a_command_is_completed() {
    let desk = Desk::playing(TURNS);
    let mut shell = chat(&desk, "");
    shell.types("/tra\t").sees("/trace");
    shell.types("\x15");
    shell.types("one\\\rtwo\x1b\rthree ").types(&pasted("four\rfive")).types("\r").sees("Forty-two.");
    shell.sees("> ");
    left(&mut shell);
    let session = session_id(&desk);
    assert_eq!(user_texts(&desk, &session), ["one\ntwo\nthree four\nfive"]);
}

#[test]
fn shift_tab_applies_the_next_policy_and_keeps_the_typed_text() {
    let desk = Desk::playing(TURNS);
    let mut shell = chat(&desk, "");
    shell.types("half a mess\x1b[Z").sees("plan > half a mess");
    let chosen = shell.types("\x1b[Z").sees("default > half a mess");
    assert!(!chosen.contains("/policy"), "{chosen}");
    shell.types("age\r").sees("Forty-two.");
    shell.sees("> ");
    left(&mut shell);
    let session = session_id(&desk);
    assert_eq!(user_texts(&desk, &session), ["half a message"]);
}

#[test]
fn ctrl_c_at_the_prompt_leaves_when_it_is_pressed_twice() {
    let desk = Desk::playing(TURNS);
    let mut shell = chat(&desk, "");
    shell.types("\x03").sees("press Ctrl-C again, or Ctrl-D, to leave");
    shell.sees("> ");
    shell.types("\x03").sees("[0] ready> ");
    assert!(sessions(&desk).is_empty(), "no session without a message");
}

#[test]
fn the_program_alone_converses_where_a_configuration_is() {
    let desk = Desk::playing(TURNS);
    let mut shell = Shell::at(&desk);
    shell.runs("toolgate").sees("agent desk · model played · policy accept-edits");
    shell.sees("> ");
    left(&mut shell);
    let refused = desk.toolgate(&["chat"]).expect(2);
    assert!(refused.err.contains("a conversation needs a terminal"), "{}", refused.err);
}

#[test]
fn arguments_are_edited_in_the_editor_of_the_user() {
    let desk = Desk::playing(
        "turns: [{ calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }] }, { say: Noted. }]",
    );
    let mut shell = Shell::at(&desk);
    shell.runs("EDITOR='sed -i s/late/soon/' toolgate chat").sees("> ");
    shell.runs("Note it").sees("[q] later: ");
    shell.types("e").sees("[e]dit again, [n]o: ");
    shell.types("a").sees("arguments edited");
    shell.sees("Noted.");
    shell.sees("> ");
    left(&mut shell);
    let mut shell = Shell::at(&desk);
    shell.runs("EDITOR=false toolgate run 'Note it'").sees("[q] later: ");
    shell.types("e").sees("the editor `false` ended with exit status: 1");
    shell.sees("[q] later: ");
    shell.types("q").sees("[10] ready> ");
}

#[test]
fn each_kind_of_pending_item_is_answered_in_the_conversation() {
    let refund = "{ id: refund, name: ext_issue_refund, arguments: { order_id: A-1 } }";
    let ask = "{ id: ask, name: ask_human, arguments: { question: Which colour? } }";
    let desk = Desk::playing(&format!("turns: [{{ calls: [{refund}, {ask}] }}, {{ say: Paid. }}]"));
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &config.replace("    policy:", "    ask_human: true\n    policy:"));
    desk.toolgate(&["run", "Pay it"]).expect(10);
    let mut shell = chat(&desk, "-c");
    shell.types("\r").sees("waits for your application");
    shell.sees("empty leaves it pending): ");
    shell.types("{\"status\": \"refunded\"}\r").sees("Which colour?");
    shell.sees("leave it pending): ");
    shell.types("red\r").sees("Paid.");
    shell.sees("> ");
    left(&mut shell);
}

#[test]
fn a_message_with_a_file_that_is_entered_during_a_turn_is_sent_after_it() {
    let turns = "turns: [{ say: one two three, stream: { fragments: 3, delay_ms: 2500 } }, { say: And four. }]";
    let desk = Desk::playing(turns);
    desk.write("notes.txt", "four");
    let mut shell = chat(&desk, "");
    shell.runs("Hello").sees("| one");
    shell.types("and @notes.txt\r").sees("(after this turn)");
    shell.sees("attached notes.txt");
    shell.sees("And four.");
    shell.sees("> ");
    left(&mut shell);
    assert_eq!(sessions(&desk)[0]["runs"], 2);
}

#[test]
fn a_failed_turn_is_retried_in_its_place() {
    let failing = "turns: [{ fail: { code: provider_unavailable, message: too busy } }]";
    let desk = Desk::playing(failing);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &config.replace("  desk:", "  desk:\n    limits: { max_attempts: 1 }"));
    let mut shell = chat(&desk, "");
    shell.runs("Hello").sees("failed:");
    shell.sees("/retry asks the model again");
    shell.sees("> ");
    left(&mut shell);
    desk.write("conversation.yaml", "turns: [{ say: Here I am. }, { say: Here I am. }]");
    let mut shell = chat(&desk, "-c");
    shell.runs("/retry").sees("Here I am.");
    shell.sees("> ");
    left(&mut shell);
    let session = session_id(&desk);
    assert_eq!(user_texts(&desk, &session), ["Hello"]);
}

#[test]
fn tab_lists_the_candidates_and_a_name_without_a_file_is_told() {
    let desk = Desk::playing(TURNS);
    desk.write("notes-a.txt", "");
    desk.write("notes-b.txt", "");
    let mut shell = chat(&desk, "");
    shell.types("Read @no\t").sees("@notes-");
    shell.types("\t").sees("  @notes-a.txt  @notes-b.txt");
    shell.sees("> Read @notes-");
    shell.types("c.txt\r").sees("there is no file notes-c.txt, so its name stays text");
    shell.sees("Forty-two.");
    shell.sees("> ");
    left(&mut shell);
}

#[test]
fn text_typed_while_the_answer_streams_is_visible() {
    let desk = Desk::playing("turns: [{ say: one two three four five, stream: { fragments: 5, delay_ms: 1500 } }]");
    let mut shell = chat(&desk, "");
    shell.runs("Hello").sees("| one");
    shell.types("and then").sees("> and then");
    shell.sees("  model: ");
    shell.sees("> and then");
    shell.types("\x15");
    left(&mut shell);
}

#[test]
fn the_policy_of_a_conversation_is_kept_when_it_is_continued() {
    let desk = Desk::playing(TURNS);
    let mut shell = chat(&desk, "");
    shell.runs("/policy plan").sees("policy plan");
    shell.sees("> ");
    shell.runs("Hello").sees("Forty-two.");
    shell.sees("> ");
    left(&mut shell);
    for (arguments, policy) in [("--session last", "policy plan"), ("-c --policy bypass", "policy bypass")] {
        let mut shell = Shell::at(&desk);
        shell.runs(&format!("toolgate chat {arguments}")).sees(policy);
        shell.sees("> ");
        left(&mut shell);
    }
    let mut shell = chat(&desk, "-c");
    shell.runs("/policy default").sees("policy default");
    shell.sees("> ");
    shell.types("\x04").sees("--policy default");
}

#[test]
fn a_policy_that_allows_all_calls_is_not_kept_when_a_conversation_is_continued() {
    let desk = Desk::playing(TURNS);
    let mut shell = chat(&desk, "");
    shell.runs("/policy bypass").sees("bypass > ");
    shell.runs("Hello").sees("Forty-two.");
    shell.sees("bypass > ");
    left(&mut shell);
    let mut shell = Shell::at(&desk);
    shell.runs("toolgate chat -c").sees("the last message had policy bypass, which allows all calls");
    shell.sees("policy accept-edits");
    shell.sees("> ");
    left(&mut shell);
}

#[test]
fn a_conversation_shows_a_failure_once_and_no_log_line() {
    let desk = Desk::playing("turns: [{ say: One. }]");
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &format!("{config}log: warn\n"));
    let mut shell = chat(&desk, "");
    shell.runs("Hello").sees("One.");
    shell.sees("> ");
    shell.runs("/fork").sees("begins a copy");
    shell.sees("> ");
    shell.runs("Again");
    let shown = shell.sees("failed:");
    assert!(shown.contains("provider_rejected") && !shown.contains("toolgate::run"), "{shown}");
    shell.sees("> ");
    left(&mut shell);
}
