use super::console::Script;
use super::*;
use crate::cli::answers::denial;
use crate::cli::argument_lines::EarlierChange;
use crate::core::policy::OnTimeout;
use crate::core::run::{
    Coverage, DecisionKind, PendingApproval, PendingExternalResult, PendingInput, PendingTask, Resume, Scope,
};
use crate::core::tool::{Annotations, Origin, TaskHandle, ToolName};
use serde_json::json;

pub(in crate::cli) fn approval_item(id: &str) -> PendingItem {
    PendingItem::Approval(PendingApproval {
        call_id: id.into(),
        summary: "shop: add_note(text: \"late\")".into(),
        tool: Origin::Mcp { server: "shop".into(), tool: "add_note".into() }.into(),
        tool_name: ToolName::parse("mcp_shop_add_note").unwrap(),
        arguments: Arguments::from_value(json!({"text": "late"})),
        problems: Vec::new(),
        annotations: Annotations::default(),
        trusted: false,
        definition_hash: "sha256:d".into(),
        rule: None,
        reason: "it writes".into(),
        policy: None,
        may_be_denied: false,
        differences: Vec::new(),
        outcome_unknown: false,
        event: 7,
        requested_at: None,
        expires_at: None,
        on_timeout: OnTimeout::Expire,
    })
}

pub(in crate::cli) fn external_item(id: &str) -> PendingItem {
    PendingItem::ExternalResult(PendingExternalResult {
        call_id: id.into(),
        tool: Origin::External { tool: "refund".into() }.into(),
        tool_name: ToolName::parse("ext_refund").unwrap(),
        arguments: Arguments::from_value(json!({"cents": 100})),
        result_schema: None,
        requested_at: None,
        expires_at: None,
    })
}

fn input_item(id: &str) -> PendingItem {
    let schema = json!({"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]});
    let question = Question::Form { message: "Are you sure?".into(), schema };
    PendingItem::Input(PendingInput {
        call_id: id.into(),
        tool: Origin::Mcp { server: "shop".into(), tool: "book".into() }.into(),
        tool_name: ToolName::parse("mcp_shop_book").unwrap(),
        arguments: Arguments::from_value(json!({"flight": "LX 38"})),
        questions: [("sure".to_owned(), question)].into(),
        restarts: true,
        repeats: false,
        held: false,
        held_until: None,
    })
}

const NO_RECORD: CallRecord<'_> = CallRecord { past: &|| None, refusal: &|_| None };

fn ask(items: &[PendingItem], typed: &str) -> (Resume, String) {
    ask_on(items, Script::typing(typed))
}

fn ask_on(items: &[PendingItem], console: Script) -> (Resume, String) {
    let mut prompt = Prompt::new(console);
    let mut resume = Resume::default().partial();
    for (index, item) in items.iter().enumerate() {
        if let Reply::Answered(answers) = asked(&mut prompt, item, index + 1, items.len()) {
            resume.answers.extend(answers);
        }
    }
    (resume, prompt.console.shown)
}

/// The reply to the question about an item, without further approvals.
fn asked(prompt: &mut Prompt<Script>, item: &PendingItem, number: usize, of: usize) -> Reply {
    let place = Place { number, of, has_previous: number > 1 };
    let asked =
        AskedItem { item: item.clone(), further: Vec::new(), changed_before: Vec::new(), withdrawn: None, place };
    prompt.ask(&asked, NO_RECORD).unwrap()
}

#[test]
fn each_letter_gives_its_decision() {
    let items: Vec<PendingItem> = ["1", "2", "3", "4", "5"].into_iter().map(approval_item).collect();
    let (resume, _) = ask(&items, "a\ns\nd\ntoo early\ne\n{\"text\":\"soon\"}\na\nq\n");
    let decided: Vec<_> = resume
        .decisions()
        .map(|(call, d)| (call.as_str(), d.answer, d.scope, d.reason.as_deref(), d.edited_arguments.is_some()))
        .collect();
    assert_eq!(
        decided,
        [
            ("1", DecisionKind::Approve, Scope::Once, None, false),
            ("2", DecisionKind::Approve, Scope::Session, None, false),
            ("3", DecisionKind::Deny, Scope::Once, Some("too early"), false),
            ("4", DecisionKind::Approve, Scope::Once, None, true),
        ]
    );
    assert!(resume.partial);
}

#[test]
fn an_approval_can_cover_more_calls_or_only_these_arguments() {
    let items: Vec<PendingItem> = ["1", "2", "3"].into_iter().map(approval_item).collect();
    let (resume, questions) = ask(&items, "w\ny\no\n\no\ns\no\nw\n");
    let decided: Vec<_> = resume.decisions().map(|(call, d)| (call.as_str(), d.scope, d.coverage.clone())).collect();
    let only = Coverage::Arguments;
    assert_eq!(
        decided,
        [("1", Scope::Always, Coverage::Tool), ("2", Scope::Session, only.clone()), ("3", Scope::Always, only)]
    );
    assert!(questions.contains("because: it writes"), "{questions}");
}

#[test]
fn keys_about_other_calls_are_offered_only_where_there_are_others() {
    let (item, further) = (approval_item("1"), [approval_item("2"), approval_item("3")]);
    let reply = |further: &[PendingItem], has_previous, typed| {
        let mut prompt = Prompt::new(Script::typing(typed));
        let place = Place { number: 1, of: 3, has_previous };
        let (item, further) = (item.clone(), further.to_vec());
        let asked = AskedItem {
            item,
            further,
            changed_before: vec![EarlierChange { number: 1, arguments: Arguments::from_value(json!({})) }],
            withdrawn: Some(denial(Some("late".into()))),
            place,
        };
        let reply = prompt.ask(&asked, NO_RECORD).unwrap();
        (reply, prompt.console.shown)
    };
    let (all, shown) = reply(&further, true, "r\nn\nr\ny\n");
    assert!(matches!(&all, Reply::Answered(answers) if answers.len() == 3), "{all:?}");
    assert!(shown.contains("\n3. mcp_shop_add_note\n  text: \"late\""), "{shown}");
    for line in ["! call 1 changes this file first", "your decision before, taken back: denied: late\n"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(matches!(reply(&further, true, "b\n").0, Reply::Back));
    // Without others, both are unknown keys.
    let (left, shown) = reply(&[], false, "b\nr\nq\n");
    assert!(matches!(left, Reply::LeftPending) && !shown.contains("[b]ack") && !shown.contains("[r]emain"), "{shown}");
    assert!(matches!(reply(&[], false, "x\nwrong\n").0, Reply::Stopped(call, _) if call.as_str() == "1"));
}

#[test]
fn any_arguments_of_a_tool_with_a_command_need_a_confirmation() {
    let mut item = approval_item("1");
    let PendingItem::Approval(approval) = &mut item else { panic!("an approval") };
    approval.arguments = Arguments::from_value(json!({"cmd": "git push"}));
    let (resume, shown) = ask(std::slice::from_ref(&item), "w\nn\ns\ny\n");
    assert_eq!(resume.decisions().map(|(_, decision)| decision.scope).collect::<Vec<_>>(), [Scope::Session]);
    assert!(
        shown.contains("by this agent, in any session, with any arguments: whatever the model writes as `cmd`"),
        "{shown}"
    );
}

#[test]
fn any_arguments_of_a_tool_that_moves_files_need_a_confirmation() {
    let mut item = approval_item("1");
    let PendingItem::Approval(approval) = &mut item else { panic!("an approval") };
    approval.arguments = Arguments::from_value(json!({"source": "a", "destination": ".git/hooks/pre-push"}));
    let (resume, shown) = ask(std::slice::from_ref(&item), "s\nn\nq\n");
    assert!(resume.answers.is_empty(), "{resume:?}");
    assert!(shown.contains("with any arguments: the model may change any file that the server reaches"), "{shown}");
    let PendingItem::Approval(approval) = &mut item else { panic!("an approval") };
    approval.arguments = Arguments::from_value(json!({"from": "VIE", "to": "LHR"}));
    let (resume, shown) = ask(std::slice::from_ref(&item), "s\n");
    assert!(resume.answers.len() == 1 && !shown.contains("any file"), "{shown}");
}

#[test]
fn the_confirmation_shows_the_waiting_calls_that_it_covers() {
    let [item, further] = ["git diff", "git push --force"].map(|command| {
        let mut item = approval_item(command);
        if let PendingItem::Approval(approval) = &mut item {
            approval.arguments = Arguments::from_value(json!({"cmd": command}));
        }
        item
    });
    let place = Place { number: 1, of: 2, has_previous: false };
    let asked = AskedItem { item, further: vec![further], changed_before: Vec::new(), withdrawn: None, place };
    let mut prompt = Prompt::new(Script::typing("s\ny\n"));
    prompt.ask(&asked, NO_RECORD).unwrap();
    let shown = prompt.console.shown;
    assert!(shown.contains("it also covers the call that waits after this one: cmd: \"git push --force\""), "{shown}");
}

#[test]
fn a_refused_edit_is_where_the_next_one_begins() {
    let mut prompt = Prompt::new(Script::typing("e\n\ne\n{\"b\":2}\na\n"));
    let call = CallId::from("1");
    prompt.refuse_edit(&call, &Arguments::from_value(json!({"a": 1})), "it does not fit");
    let reply = asked(&mut prompt, &approval_item("1"), 1, 1);
    let Reply::Answered(answers) = reply else { panic!("{reply:?}") };
    let edited = answers[0].1.decision().unwrap().edited_arguments.clone().unwrap();
    assert_eq!(edited.to_value(), json!({"b": 2}));
}

#[test]
fn an_edit_is_shown_as_a_difference_and_can_be_continued_or_given_up() {
    let mut prompt = Prompt::new(Script::typing("e\n{\"text\":\"soon\"}\ne\n{\"text\":\"now\"}\nn\na\n"));
    let reply = asked(&mut prompt, &approval_item("1"), 1, 1);
    let Reply::Answered(answers) = reply else { panic!("{reply:?}") };
    assert_eq!(answers[0].1.decision().unwrap().edited_arguments, None);
    let shown = prompt.console.shown;
    let differences = ["    - text: \"late\"\n    + text: \"soon\"\n", "    - text: \"late\"\n    + text: \"now\"\n"];
    assert!(differences.iter().all(|lines| shown.contains(lines)), "{shown}");
}

#[test]
fn a_grant_for_any_file_takes_a_second_key() {
    let PendingItem::Approval(approval) = approval_item("1") else { panic!("an approval") };
    let arguments = Arguments::from_value(json!({"path": "a.txt", "content": "late"}));
    let (resume, shown) = ask(&[PendingItem::Approval(PendingApproval { arguments, ..approval })], "s\nn\na\n");
    assert!(shown.contains("the model may change any file that the server reaches"), "{shown}");
    assert_eq!(resume.decisions().next().unwrap().1.scope, Scope::Once);
}

#[test]
fn below_a_long_change_the_call_and_its_file_are_named_again() {
    let PendingItem::Approval(approval) = approval_item("1") else { panic!("an approval") };
    let arguments = Arguments::from_value(json!({"path": "a.txt", "content": "line\n".repeat(20)}));
    let (_, shown) = ask(&[PendingItem::Approval(PendingApproval { arguments, ..approval })], "a\n");
    assert!(shown.contains("May mcp_shop_add_note run?  a.txt\n"), "{shown}");
}

#[test]
fn one_key_explains_the_keys_and_an_unknown_one_names_it() {
    for (key, told) in [("?", "w  every call of this tool by this agent"), ("yikes", "? explains"), ("", "? explains")]
    {
        let (resume, questions) = ask(&[approval_item("1")], &format!("{key}\na\n"));
        assert!(questions.contains(told), "{key}: {questions}");
        assert_eq!(resume.answers.len(), 1, "{key}");
    }
    let (_, questions) = ask(&[approval_item("1")], "a\n");
    assert!(!questions.contains("w  every call"), "{questions}");
}

#[test]
fn a_call_that_a_rule_may_deny_is_offered_no_wider_grant() {
    let PendingItem::Approval(approval) = approval_item("1") else { panic!("an approval") };
    let item = PendingItem::Approval(PendingApproval { may_be_denied: true, ..approval });
    let (resume, questions) = ask(&[item], "s\nw\nl\no\ns\n");
    assert!(questions.contains("[o] the same call, as a rule may deny calls like it"), "{questions}");
    assert_eq!(questions.matches("that key is not offered").count(), 3, "{questions}");
    let decision = resume.answers[0].1.decision().unwrap();
    assert_eq!((decision.scope, &decision.coverage), (Scope::Session, &Coverage::Arguments));
}

fn entry(text: &str) -> Entry {
    Entry { text: text.into(), ..Entry::default() }
}

fn pasted(text: &str) -> Entry {
    Entry { has_paste: true, ..entry(text) }
}

fn cut(text: &str) -> Entry {
    Entry { dropped: true, ..entry(text) }
}

fn ask_with(items: &[PendingItem], entries: Vec<Entry>) -> (Resume, String) {
    ask_on(items, Script::new(entries))
}

#[test]
fn a_paste_never_decides() {
    for paste in [pasted("a"), cut("a"), cut("w")] {
        let (resume, shown) = ask_with(&[approval_item("1")], vec![paste, entry("q")]);
        assert!(resume.answers.is_empty() && shown.contains("pasted text decides nothing"), "{shown}");
    }
    let (resume, _) = ask_with(&[approval_item("1")], vec![entry("o"), pasted("w"), entry("s")]);
    assert_eq!(resume.decisions().next().unwrap().1.scope, Scope::Session);
}

#[test]
fn pasted_json_is_one_result_and_its_first_line_alone_is_rejected() {
    let items = [external_item("1")];
    let (resume, _) = ask_with(&items, vec![pasted("{\n  \"ok\": true\n}\n")]);
    assert_eq!(resume.answers, [("1".into(), Answer::output(json!({"ok": true})))]);
    let (resume, shown) = ask_with(&items, vec![cut("{"), entry("")]);
    assert!(resume.answers.is_empty() && shown.contains("nothing was taken"), "{shown}");
    let (resume, shown) = ask_with(&items, vec![cut("all done")]);
    assert_eq!(resume.answers, [("1".into(), Answer::output("all done"))]);
    assert!(shown.contains("only the first is taken"), "{shown}");
}

#[test]
fn arguments_that_are_not_an_object_are_asked_again() {
    let (resume, questions) = ask(&[approval_item("1")], "e\n[1]\n{\"a\":1}\na\n");
    assert!(questions.contains("arguments are a JSON object"), "{questions}");
    assert_eq!(resume.decisions().next().unwrap().1.edited_arguments, Some(Arguments::from_value(json!({"a": 1}))));
}

#[test]
fn a_result_is_json_text_or_an_error_and_empty_input_leaves_it_pending() {
    let items = [external_item("1"), external_item("2"), external_item("3"), external_item("4")];
    let (resume, _) = ask(&items, "{\"ok\":true}\nall done\nerror: no money\n\n");
    let expected = [
        ("1".into(), Answer::output(json!({"ok": true}))),
        ("2".into(), Answer::output("all done")),
        ("3".into(), Answer::error("no money")),
    ];
    assert_eq!(resume.answers, expected);
}

#[test]
fn the_end_of_the_input_leaves_everything_pending() {
    let (resume, questions) = ask(&[approval_item("1"), external_item("2"), input_item("3")], "");
    assert!(resume.answers.is_empty());
    assert!(questions.contains("  text: \"late\"\n"), "{questions}");
}

#[test]
fn server_questions_are_asked_and_tasks_are_not() {
    let task = PendingItem::Task(PendingTask {
        call_id: "2".into(),
        tool: Origin::Mcp { server: "shop".into(), tool: "bake".into() }.into(),
        tool_name: ToolName::parse("mcp_shop_bake").unwrap(),
        arguments: Arguments::from_value(json!({})),
        task: TaskHandle { id: "t".into(), message: None, poll_ms: None, ttl_ms: None },
    });
    let (resume, questions) = ask(&[input_item("1"), task], "a\nyes\n");
    let given = resume.answers.iter().filter_map(|(call, answer)| Some((call.as_str(), answer.elicitation()?)));
    let reactions: Vec<_> = given.map(|(call, given)| (call, json!(given.reactions))).collect();
    assert_eq!(reactions, [("1", json!({"sure": {"action": "accept", "content": {"sure": true}}}))]);
    assert!(questions.contains("The server of mcp_shop_book needs input before"), "{questions}");
    assert!(questions.contains("sent again with the answers"), "{questions}");
}
