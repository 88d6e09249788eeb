//! Tests of the live view: the printed output of one run, event by event.

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::cli::paint::Paint;
use crate::core::chat::{Stop, Usage, Usd};
use crate::core::error::{ErrorCode, Failure};
use crate::core::lifecycle::{CallEnd, CallRef, Delta, LifecycleEvent, LifecycleKind};
use crate::core::policy::{OnTimeout, PolicyMark};
use crate::core::run::{
    self, Channel, Coverage, Output, PendingApproval, PendingExternalResult, PendingItem, Rejection, Scope, ToolAccess,
};
use crate::core::tool::{Annotations, Arguments, LeftOut, Origin, Problem, Progress, ToolName};
use crate::core::trace::TraceId;

const LOOK: DisplaySettings = DisplaySettings { paint: Paint::Plain, width: 100 };

fn event(fact: LifecycleKind) -> LifecycleEvent {
    LifecycleEvent { seq: None, run_id: "run_1".into(), at: Some(Timestamp::UNIX_EPOCH), iteration: 1, fact }
}

fn call(name: &str) -> CallRef {
    let arguments = Some(json!({"customer_id": "C-1001", "text": "x".repeat(200)}));
    CallRef { call_id: "call_1".into(), tool_name: name.into(), tool: None, priority: None, arguments }
}

fn text(text: &str) -> LifecycleKind {
    LifecycleKind::Fragment { delta: Delta::Text { text: text.into() }, from: None }
}

fn replied(text: &str, tool_calls: Vec<CallRef>) -> LifecycleKind {
    let usage = Usage {
        input_tokens: Some(120),
        output_tokens: Some(30),
        cost_usd: Usd::try_from(0.0012).ok(),
        ..Usage::default()
    };
    LifecycleKind::ModelReplied {
        model: "auto".into(),
        fallback: false,
        response_model: None,
        attempt: 1,
        stop: Stop::End,
        usage,
        duration_ms: 1_234,
        cumulative: Usage::default(),
        first_token_ms: None,
        tool_calls,
        text: Some(text.into()),
    }
}

fn model_called(attempt: u32) -> LifecycleKind {
    LifecycleKind::ModelCalled { model: "auto".into(), fallback: false, attempt, tool_access: ToolAccess::Enabled }
}

/// All events of a turn with calls.
fn busy_turn() -> Vec<LifecycleKind> {
    let problems = Problem::feedback(
        "Invalid:",
        &[Problem {
            path: "/order_id".into(),
            rule: "pattern".into(),
            message: "\"1001\" does not match ^A-".into(),
            received: None,
        }],
    );
    let left_out =
        LeftOut { server: Some("git".into()), tool: None, reason: "it did not start: no such program `uvx`".into() };
    vec![
        LifecycleKind::Started {
            agent: "desk".into(),
            model: "auto".into(),
            session_id: "s_1".into(),
            trace_id: TraceId([1; 16]),
            input: Some("Sort it out,\nplease.".into()),
            restart: None,
        },
        LifecycleKind::ToolsListed {
            tools: vec![ToolName::parse("mcp_shop_find").unwrap()],
            left_out: vec![left_out],
            changed: Vec::new(),
            warnings: Vec::new(),
        },
        model_called(1),
        LifecycleKind::ModelFailed {
            model: "auto".into(),
            attempt: 1,
            error: Failure::new(ErrorCode::ProviderTimeout, "no byte for 120 s"),
            usage: Usage { input_tokens: Some(120), output_tokens: Some(2), ..Usage::default() },
            duration_ms: 120_000,
            cumulative: Usage::default(),
        },
        LifecycleKind::ModelRetrying { model: "auto".into(), attempt: 2, instead_of: None },
        model_called(2),
        text("I look"),
        text(" it up.\nNow."),
        replied("I look it up.\nNow.", vec![call("mcp_shop_find")]),
        LifecycleKind::TierSelected { priority: 10, run: vec!["call_1".into()], deferred: vec!["call_2".into()] },
        LifecycleKind::Rejected { call: call("mcp_shop_orders"), reason: Rejection::Deferred, message: None },
        LifecycleKind::Rejected {
            call: call("get_invoice"),
            reason: Rejection::InvalidArguments,
            message: Some(problems),
        },
        LifecycleKind::ApprovalRequested {
            call: call("mcp_shop_add_note"),
            rule: None,
            reason: "it writes".into(),
            policy: None,
            answer_timeout_s: None,
            on_timeout: OnTimeout::Expire,
        },
        LifecycleKind::ApprovalDecided {
            call: call("mcp_shop_add_note"),
            decision: run::DecisionKind::Approve,
            by: "kim".into(),
            via: Channel::Terminal,
            scope: Scope::Session,
            coverage: Coverage::Tool,
            expires_at: None,
            edited: true,
            policy: Some(PolicyMark { name: "default".into(), version: "1a2b".into() }),
            reason: None,
        },
        LifecycleKind::McpExecuting { call: call("mcp_shop_find"), grant_id: None },
        LifecycleKind::Fragment {
            delta: Delta::Progress {
                call: "call_1".into(),
                progress: Progress { progress: 1.0, total: Some(3.0), message: Some("asking the archive".into()) },
            },
            from: None,
        },
        LifecycleKind::McpCompleted {
            call: call("mcp_shop_find"),
            duration_ms: Some(204),
            end: CallEnd {
                is_error: false,
                error: None,
                result_bytes: 3,
                result: Some("found\u{1b}[2J\nher".into()),
                kept: Vec::new(),
            },
            problems: Vec::new(),
            stderr: None,
        },
        LifecycleKind::ExternalRequested { call: call("ext_refund") },
        LifecycleKind::ExternalCompleted {
            call: call("ext_refund"),
            end: CallEnd {
                is_error: true,
                error: Some("tool_error"),
                result_bytes: 3,
                result: Some("no money".into()),
                kept: Vec::new(),
            },
        },
        LifecycleKind::BudgetExhausted { used: 3, max: 3 },
        model_called(1),
        text("Sorry."),
        replied("Sorry.", Vec::new()),
        LifecycleKind::Completed {
            tool_interactions: 1,
            usage: Usage::default(),
            output: Some(Output { text: "Sorry.".into(), ..Output::default() }),
            warnings: Vec::new(),
        },
    ]
}

fn rendered(answer: AnswerPlacement, facts: Vec<LifecycleKind>) -> String {
    let mut live_view = LiveView::new(LOOK, answer);
    let shown = facts.into_iter().flat_map(|fact| live_view.render(&event(fact)));
    let print = |shown| match shown {
        LiveOutput::Line(line) => format!("{line}\n"),
        LiveOutput::Fragment(text) => text,
    };
    shown.map(print).collect()
}

#[test]
fn a_person_at_a_terminal_reads_the_answer_in_the_story() {
    insta::assert_snapshot!(rendered(AnswerPlacement::Inline, busy_turn()));
}

#[test]
fn the_live_view_omits_an_answer_that_goes_to_stdout() {
    let live_view = rendered(AnswerPlacement::Apart, busy_turn());
    assert!(!live_view.contains("Sorry."), "{live_view}");
    assert!(live_view.contains("  | I look it up.\n  | Now.\n"), "{live_view}");
}

#[test]
fn a_run_that_fails_says_with_which_code() {
    let failed = LifecycleKind::Failed {
        error: Failure::new(ErrorCode::ProviderAuth, "the key was refused"),
        tool_interactions: 2,
        usage: Usage::default(),
    };
    let rendered = rendered(AnswerPlacement::Inline, vec![failed]);
    assert_eq!(rendered, "failed: provider_auth: the key was refused\n2 turns with tools, usage unknown\n");
}

#[test]
fn a_total_without_an_attempt_is_shown_as_a_minimum() {
    let usage = Usage {
        input_tokens: Some(120),
        output_tokens: Some(30),
        cost_usd: Usd::try_from(0.0012).ok(),
        ..Usage::default()
    };
    let completed = LifecycleKind::Completed { tool_interactions: 0, usage, output: None, warnings: Vec::new() };
    let unpriced = LifecycleKind::ModelFailed {
        model: "auto".into(),
        attempt: 1,
        error: Failure::new(ErrorCode::ProviderTimeout, "cut"),
        usage: Usage { cost_usd: None, ..usage },
        duration_ms: 1,
        cumulative: Usage::default(),
    };
    let mut live_view = LiveView::new(LOOK, AnswerPlacement::Apart);
    live_view.note(&event(unpriced));
    let Some(LiveOutput::Line(line)) = live_view.render(&event(completed)).pop() else { panic!("one line") };
    assert_eq!(line, "completed: 0 turns with tools, 120 → 30 tokens, at least $0.0012");
}

#[test]
fn no_line_of_a_call_is_wider_than_the_terminal() {
    for width in [60, 100, 200] {
        let look = DisplaySettings { width, ..LOOK };
        let mut live_view = LiveView::new(look, AnswerPlacement::Inline);
        let shown =
            live_view.render(&event(LifecycleKind::McpExecuting { call: call("mcp_shop_find"), grant_id: None }));
        let Some(LiveOutput::Line(line)) = shown.first() else { panic!("one line") };
        assert!(line.chars().count() <= width, "{width}: {line}");
    }
}

#[test]
fn pending_items_come_with_the_command_that_settles_them() {
    let items = [
        PendingItem::Approval(PendingApproval {
            call_id: "call_1".into(),
            summary: "shop: add_note(text: \"late\")".into(),
            tool: Origin::Mcp { server: "shop".into(), tool: "add_note".into() }.into(),
            tool_name: ToolName::parse("mcp_shop_add_note").unwrap(),
            arguments: Arguments::from_value(json!({"text": "late"})),
            problems: Vec::new(),
            annotations: Annotations::default(),
            trusted: false,
            definition_hash: "sha256:d".into(),
            rule: Some("writes".into()),
            reason: "it writes".into(),
            policy: None,
            may_be_denied: false,
            differences: Vec::new(),
            outcome_unknown: false,
            event: 7,
            requested_at: None,
            expires_at: None,
            on_timeout: OnTimeout::Expire,
        }),
        PendingItem::ExternalResult(PendingExternalResult {
            call_id: "call_2".into(),
            tool: Origin::External { tool: "refund".into() }.into(),
            tool_name: ToolName::parse("ext_refund").unwrap(),
            arguments: Arguments::from_value(json!({"cents": 100})),
            result_schema: Some(
                json!({"type": "object", "required": ["status"], "properties": {"status": {"enum": ["done"]}}}),
            ),
            requested_at: None,
            expires_at: None,
        }),
    ];
    let again = RepeatedFlags::new(vec!["--config".into(), "desk.yaml".into()], Vec::new());
    insta::assert_snapshot!(pending_lines(&"run_1".into(), &items, &again, LOOK).join("\n"));
}

#[test]
fn a_deferred_call_has_one_line_and_its_result() {
    let mut live_view = LiveView::new(LOOK, AnswerPlacement::Inline);
    let executing = event(LifecycleKind::McpExecuting { call: call("mcp_shop_find"), grant_id: None });
    assert!(live_view.defer(&executing) && !live_view.defer(&event(text("Hello"))));
    let end = CallEnd { is_error: false, error: None, result_bytes: 5, result: Some("found".into()), kept: Vec::new() };
    let completed = LifecycleKind::BuiltinCompleted { call: call("mcp_shop_find"), duration_ms: Some(85), end };
    let lines = live_view.render(&event(completed));
    let [LiveOutput::Line(head), LiveOutput::Line(result)] = &lines[..] else { panic!("{lines:?}") };
    assert!(head.starts_with("  ✓ mcp_shop_find · 85 ms  customer_id: \""), "{lines:?}");
    assert_eq!(result, "    found");
}

#[test]
fn a_change_of_a_file_is_shown_below_its_call_unless_a_prompt_showed_it() {
    let arguments = json!({"path": "a.py", "old_string": "x = 1", "new_string": "x = 2"});
    let edit = CallRef { arguments: Some(arguments), ..call("mcp_files_edit") };
    let ended = |is_error, is_seen| {
        let mut live_view = LiveView::new(LOOK, AnswerPlacement::Conversation);
        if is_seen {
            live_view.shown_here(edit.call_id.clone());
        }
        live_view.defer(&event(LifecycleKind::McpExecuting { call: edit.clone(), grant_id: None }));
        let end = CallEnd { is_error, error: None, result_bytes: 4, result: Some("done".into()), kept: Vec::new() };
        live_view.render(&event(LifecycleKind::BuiltinCompleted { call: edit.clone(), duration_ms: Some(85), end }))
    };
    let line = |text: &str| LiveOutput::Line(text.to_owned());
    let head = line("  ✓ mcp_files_edit · 85 ms  a.py");
    assert_eq!(ended(false, false), [head, line("    - x = 1"), line("    + x = 2"), line("    done")]);
    assert_eq!(ended(false, true).len(), 2);
    assert_eq!(ended(true, false)[1..], [line("    | done")]);
}

#[test]
fn a_decision_at_the_prompt_is_not_repeated() {
    let decided = |decision, scope, reason: Option<&str>| {
        event(LifecycleKind::ApprovalDecided {
            call: call("mcp_shop_add_note"),
            decision,
            by: "kim".into(),
            via: Channel::Terminal,
            scope,
            coverage: Coverage::Tool,
            expires_at: None,
            edited: false,
            policy: Some(PolicyMark { name: "default".into(), version: "1a2b".into() }),
            reason: reason.map(str::to_owned),
        })
    };
    let (approve, deny) = (run::DecisionKind::Approve, run::DecisionKind::Deny);
    let (once, granted) = (decided(approve, Scope::Once, None), decided(approve, Scope::Session, None));
    let mut live_view = LiveView::new(LOOK, AnswerPlacement::Conversation);
    assert_eq!(live_view.render(&once).len(), 1, "a decision of another process is shown");
    let mut rendered_here = |decision: &LifecycleEvent| {
        live_view.decided_here("call_1".into());
        live_view.render(decision)
    };
    assert_eq!(rendered_here(&once), []);
    let line = |text: &str| [LiveOutput::Line(text.to_owned())];
    let told = "  ✓ mcp_shop_add_note approved for this session, any arguments";
    assert_eq!(rendered_here(&granted), line(told));
    let denied = decided(deny, Scope::Once, Some("late"));
    assert_eq!(rendered_here(&denied), line("  ✗ mcp_shop_add_note denied: late"));
    assert!(
        matches!(&live_view.render(&once)[..], [LiveOutput::Line(line)] if line.contains("by kim")),
        "decided again"
    );
}

#[test]
fn a_cancelled_run_names_the_calls_in_progress() {
    let executing = |id: &str, name: &str| {
        let call = CallRef { call_id: id.into(), ..call(name) };
        LifecycleKind::McpExecuting { call, grant_id: None }
    };
    let end = CallEnd { is_error: false, error: None, result_bytes: 0, result: None, kept: Vec::new() };
    let done = CallRef { call_id: "2".into(), ..call("mcp_shop_find") };
    let cancelled =
        LifecycleKind::Cancelled { reason: None, partial_reply: None, tool_interactions: 1, usage: Usage::default() };
    let facts = vec![
        executing("1", "mcp_shop_pay"),
        executing("2", "mcp_shop_find"),
        LifecycleKind::McpCompleted { call: done, duration_ms: None, end, problems: Vec::new(), stderr: None },
        cancelled,
    ];
    let shown = rendered(AnswerPlacement::Inline, facts);
    let last: Vec<&str> = shown.lines().rev().take(2).collect();
    assert!(last[0].starts_with("cancelled"), "{shown}");
    assert!(
        last[1].starts_with("  ! mcp_shop_pay") && last[1].ends_with("whether it took effect is unknown"),
        "{shown}"
    );
    assert_eq!(shown.matches("interrupted").count(), 1, "{shown}");
}

#[test]
fn a_message_is_quoted_where_the_model_reads_it_unless_the_prompt_stands_above() {
    let lines = |facts: Vec<LifecycleKind>| {
        let mut live_view = LiveView::new(LOOK, AnswerPlacement::Conversation);
        live_view.note(&event(LifecycleKind::MessageAdded { text: Some("Hurry".into()) }));
        let shown = facts.into_iter().flat_map(|fact| live_view.render(&event(fact)));
        let lines = shown.filter_map(|shown| if let LiveOutput::Line(line) = shown { Some(line) } else { None });
        lines.collect::<Vec<_>>()
    };
    let answer = |text| replied(text, Vec::new());
    assert_eq!(lines(vec![model_called(1), answer("Now.")])[0], "  | Now.");
    // The reply to the request before, which another process had begun.
    let between = lines(vec![model_called(2), answer("Soon."), model_called(1), answer("Now.")]);
    let told: Vec<&str> = between.iter().map(String::as_str).filter(|line| !line.contains("model:")).collect();
    assert_eq!(told[..3], ["  | Soon.", "> Hurry", "  | Now."]);
}
