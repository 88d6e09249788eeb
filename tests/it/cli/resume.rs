use serde_json::json;

use super::desk::{Desk, Ended, person};

const NOTE: &str = "
turns:
  - { calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }] }
  - { say: '{{last_result}}' }
  - { say: 'At last: {{last_result}}' }
";
const NOTE_AND_REFUND: &str = "
turns:
  - calls:
      - { id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }
      - { id: refund, name: ext_issue_refund, arguments: { order_id: A-1077 } }
  - { say: '{{last_result}}' }
";

/// A pending run.
fn pending(turns: &str) -> Desk {
    let desk = Desk::playing(turns);
    desk.toolgate(&["run", "Sort it out"]).expect(10);
    desk
}

#[test]
fn an_approved_call_runs() {
    let ended = pending(NOTE).toolgate(&["resume", "last", "--approve", "note"]).expect(0);
    assert!(ended.out.contains("noted; Ada Lindqvist now has 1 note(s)"), "{}", ended.out);
    assert!(ended.err.contains(&format!("approved by {}", person())), "{}", ended.err);
}

#[test]
fn a_denied_call_does_not_run_and_the_model_reads_why() {
    let desk = pending(NOTE);
    let ended = desk.toolgate(&["resume", "last", "--deny", "note=not today"]).expect(0);
    assert!(ended.out.contains("not today"), "{}", ended.out);
    assert!(desk.journal("last").iter().all(|event| event["type"] != "tool.started"));
}

#[test]
fn edited_arguments_are_checked_and_then_sent() {
    let desk = pending(NOTE);
    let wrong = desk.toolgate(&["resume", "last", "--edit", "note={\"text\": 1}"]).expect(1);
    assert!(wrong.err.contains("the edited arguments"), "{}", wrong.err);
    let edit = "note={\"customer_id\": \"C-1002\", \"text\": \"soon\"}";
    let ended = desk.toolgate(&["resume", "last", "--edit", edit]).expect(0);
    assert!(ended.out.contains("Bruno Okafor"), "{}", ended.out);
}

/// A run of two calls of the same tool, the second with this text.
fn two_notes(second: &str) -> Desk {
    pending(&format!(
        "
turns:
  - {{ calls: [{{ id: one, name: mcp_shop_add_note, arguments: {{ customer_id: C-1001, text: a }} }}] }}
  - {{ calls: [{{ id: two, name: mcp_shop_add_note, arguments: {{ customer_id: C-1001, text: {second} }} }}] }}
  - {{ say: done }}"
    ))
}

#[test]
fn an_approval_for_the_session_covers_the_same_arguments() {
    two_notes("a").toolgate(&["resume", "last", "--approve", "one"]).expect(10);
    for flag in ["--approve-session", "--approve-always"] {
        two_notes("a").toolgate(&["resume", "last", flag, "one"]).expect(0);
        two_notes("b").toolgate(&["resume", "last", flag, "one"]).expect(10);
    }
}

#[test]
fn an_approval_covers_other_arguments_only_if_the_user_says_so() {
    for flag in ["--approve-session", "--approve-always"] {
        two_notes("b").toolgate(&["resume", "last", flag, "one", "--match", "tool"]).expect(0);
    }
    let refused = two_notes("b").toolgate(&["resume", "last", "--approve", "one", "--match", "tool"]).expect(2);
    assert!(refused.err.contains("covers nothing else"), "{}", refused.err);
}

#[test]
fn a_file_answers_everything_at_once() {
    let desk = pending(NOTE_AND_REFUND);
    let answers = json!({
        "answers": [
            {"type": "result", "call_id": "refund", "output": {"status": "refunded"}},
            {"type": "decision", "call_id": "note", "decision": "deny", "reason": "no"},
        ],
    });
    desk.write("answers.json", &answers.to_string());
    let ended = desk.toolgate(&["resume", "last", "--json", "--file", "answers.json"]).expect(0);
    assert_eq!(ended.result()["status"], "completed");
    assert!(ended.json_lines().iter().all(|line| line["type"] != "execution.started"), "only new events are printed");
}

#[test]
fn an_incomplete_answer_is_rejected_without_the_partial_flag() {
    let desk = pending(NOTE_AND_REFUND);
    let refused = desk.toolgate(&["resume", "last", "--approve", "note"]).expect(1);
    assert!(refused.err.contains("these calls are pending too: refund"), "{}", refused.err);
    desk.toolgate(&["resume", "last", "--approve", "note", "--partial"]).expect(10);
    desk.toolgate(&["resume", "last", "--error", "refund=the bank is closed"]).expect(0);
}

#[test]
fn a_result_that_does_not_fit_its_schema_is_refused_and_may_be_given_again() {
    let desk = pending(
        "turns: [{ calls: [{ id: refund, name: ext_issue_refund, arguments: { order_id: A-1077 } }] },
        { say: done }]",
    );
    let refused = desk.toolgate(&["resume", "last", "--result", "refund={\"status\": \"maybe\"}"]).expect(1);
    assert!(refused.err.contains("the result of call `refund`"), "{}", refused.err);
    let broken = desk.toolgate(&["resume", "last", "--result", "refund={\"status\": \"refused\""]).expect(2);
    assert!(broken.err.contains("--result refund: not JSON: EOF"), "{}", broken.err);
    desk.toolgate(&["resume", "last", "--result", "refund={\"status\": \"refused\"}"]).expect(0);
}

#[test]
fn an_abandoned_call_resumes_the_run() {
    let desk = pending(
        "turns: [{ calls: [{ id: refund, name: ext_issue_refund, arguments: { order_id: A-1077 } }] },
        { say: '{{last_result}}' }]",
    );
    let ended = desk.toolgate(&["resume", "last", "--abandon", "refund"]).expect(0);
    assert!(ended.out.contains("did not run this call"), "{}", ended.out);
}

#[test]
fn resume_without_answers_lists_the_pending_items() {
    let desk = pending(NOTE);
    let ended = desk.toolgate(&["resume", "last"]).expect(10);
    desk.paste(&ended.offered_command()).expect(0);
    let over = desk.toolgate(&["resume", "last", "--json"]).expect(0);
    assert_eq!(over.result()["status"], "completed");
}

#[test]
fn a_message_is_part_of_the_next_turn() {
    let desk = pending(NOTE);
    let ended = desk.toolgate(&["resume", "last", "--approve", "note", "--message", "Be brief."]).expect(0);
    assert!(ended.err.contains("> Be brief."), "{}", ended.err);
}

#[test]
fn an_unknown_run_or_call_is_named() {
    let desk = pending(NOTE);
    let run: Ended = desk.toolgate(&["resume", "run_nope", "--json"]).expect(2);
    assert!(run.err.contains("there is no run `run_nope`; the newest are: run_"), "{}", run.err);
    assert_eq!(run.result()["error"]["code"], "not_found");
    let call = desk.toolgate(&["resume", "last", "--approve", "nope"]).expect(2);
    assert!(call.err.contains("call `nope` is not a call of this run that waits"), "{}", call.err);
    let kind = desk.toolgate(&["resume", "last", "--result", "note=done"]).expect(2);
    assert!(kind.err.contains("waits for a decision"), "{}", kind.err);
}

#[test]
fn results_for_a_cancelled_run_are_refused_in_one_sentence_and_for_good() {
    let desk = pending(NOTE_AND_REFUND);
    desk.toolgate(&["runs", "cancel", "last"]).expect(0);
    let refused =
        desk.toolgate(&["resume", "last", "--json", "--result", "refund=1", "--approve", "note", "--result", "x=2"]);
    let error = refused.expect(1).result()["error"].take();
    assert_eq!((&error["code"], &error["retryable"]), (&json!("conflict"), &json!(false)), "{error}");
    let message = error["message"].as_str().unwrap();
    assert_eq!(message.matches("the run is over: cancelled").count(), 1, "{message}");
}
