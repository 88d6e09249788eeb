//! Spending (rows 3.11, 3.40, 3.42): the effect of a hard limit, and attempts beyond one.

use toolgate_core::chat::{Reply, Stop, Usage, Usd};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::run::{
    CallEstimate, Channel, Ending, Event, Input, Limit, Limits, OnExceed, Resume, Run, RunRules, RunWarning, Spec,
    Status, Step, TighterLimits, ToolAccess, Unpause,
};

use crate::fixtures::{call, noon, spec};
use crate::manual_driver::Hand;

fn dollars(amount: f64) -> Option<Usd> {
    Usd::try_from(amount).ok()
}

fn costing(amount: f64) -> Usage {
    Usage { cost_usd: dollars(amount), ..Usage::default() }
}

/// A run with a limit of one dollar, after a turn that cost this much.
fn spent(on_exceed: OnExceed, amount: f64) -> Hand {
    let limits = Limits { max_cost_usd: dollars(1.0), ..Limits::default() };
    let reply = Reply::calling([call("a", "mcp_files_read")]);
    Hand::with(Spec { rules: RunRules { on_exceed, ..RunRules::default() }, ..spec(limits) })
        .model_says(Reply { usage: costing(amount), ..reply })
}

fn access(hand: &Hand) -> ToolAccess {
    match hand.run.next() {
        Step::CallModel { tool_access, .. } => tool_access,
        other => panic!("{other:?}"),
    }
}

fn fails(mut hand: Hand, usage: Usage) -> Hand {
    let Step::CallModel { attempt, tool_access, .. } = hand.run.next() else { panic!("{:?}", hand.run.next()) };
    let model = hand.run.candidate(noon()).clone();
    hand.record(Event::ModelCalled { model, attempt, tool_access });
    let failure = Failure::new(ErrorCode::ProviderUnavailable, "the provider is unwell");
    hand.record(hand.run.model_failed(failure, usage, noon()));
    hand.settled()
}

fn continued(hand: Hand, limits: TighterLimits) -> Hand {
    let unpause = Some(Unpause { by: "ada".into(), via: Channel::Library, limits });
    hand.given(Input::Resume(Resume { unpause, ..Resume::default() }))
}

#[test]
fn row_3_42_a_limit_that_fails_ends_the_run_without_a_last_answer() {
    let hand = spent(OnExceed::Fail, 1.0);
    assert_eq!(hand.run.ending(), Some(&Ending::Incomplete { limit: Limit::Cost, output: None }));
    assert_eq!(access(&spent(OnExceed::LastWord, 1.0)), ToolAccess::FinalAnswer);
}

#[test]
fn row_3_42_a_limit_that_warns_does_not_end_the_run() {
    let hand = spent(OnExceed::Warn, 1.5);
    assert_eq!(access(&hand), ToolAccess::Enabled);
    let hand = hand.model_says(Reply::text("Done."));
    let expected = vec![RunWarning::LimitExceeded { limit: Limit::Cost }];
    assert_eq!((hand.status(), hand.run.warnings()), (Status::Completed, expected));
    let hand = spent(OnExceed::Warn, 0.5).model_says(Reply::text("Done."));
    assert_eq!(hand.run.warnings(), vec![]);
    let bounded = Spec {
        rules: RunRules { on_exceed: OnExceed::Warn, ..RunRules::default() },
        ..spec(Limits { max_iterations: 1, ..Limits::default() })
    };
    let hand = Hand::with(bounded).model_calls([call("a", "mcp_files_read")]);
    assert_eq!(access(&hand), ToolAccess::FinalAnswer, "turns stay bounded");
}

#[test]
fn row_3_42_a_limit_that_asks_pauses_the_run_until_more_is_granted() {
    let hand = spent(OnExceed::Ask, 1.0);
    assert_eq!((hand.status(), hand.pending()), (Status::Pending, vec!["pause".to_owned()]));
    let pause = hand.run.pause().unwrap();
    assert_eq!((pause.by.as_str(), pause.via), ("toolgate", Channel::Limit));
    let reason = "`max_cost_usd`: 1 of 1 used; continue with a higher limit, or without one for a last answer";
    assert_eq!(pause.reason.as_deref(), Some(reason));

    let more = TighterLimits { max_cost_usd: dollars(2.0), ..TighterLimits::default() };
    let hand = continued(hand, more);
    assert_eq!(access(&hand), ToolAccess::Enabled);
    let again = Reply { usage: costing(1.5), ..Reply::calling([call("b", "mcp_files_read")]) };
    let hand = hand.model_says(again);
    assert_eq!(hand.pending(), ["pause"], "the raised limit is a limit");
    let hand = continued(hand, TighterLimits::default());
    assert_eq!(access(&hand), ToolAccess::FinalAnswer);
    let hand = hand.model_says(Reply::text("as far as I got"));
    assert_eq!(hand.status(), Status::Incomplete);
}

#[test]
fn row_3_42_an_answer_whose_limit_was_raised_meanwhile_is_one_like_any_other() {
    for (stop, status) in [(Stop::End, Status::Completed), (Stop::MaxTokens, Status::Failed)] {
        let limits = Limits { max_cost_usd: dollars(1.0), ..Limits::default() };
        let first = Reply { usage: costing(1.0), ..Reply::calling([call("a", "mcp_files_read")]) };
        let spec = Spec {
            rules: RunRules { on_exceed: OnExceed::Ask, validate_output: true, ..RunRules::default() },
            ..spec(limits)
        };
        let hand = continued(Hand::with(spec).model_says(first), TighterLimits::default());
        assert_eq!(access(&hand), ToolAccess::FinalAnswer);
        let hand = fails(hand, Usage::default());
        let hand =
            hand.given(Input::Pause { reason: None, by: "ada".into(), via: Channel::Library, expected_version: None });
        let hand = continued(hand, TighterLimits { max_cost_usd: dollars(9.0), ..TighterLimits::default() });
        let hand = hand.model_says(Reply { stop, ..Reply::text("the answer") });
        let hand = if stop == Stop::End { hand.finds_the_answer(&[]) } else { hand };
        assert_eq!(hand.status(), status);
    }
}

#[test]
fn row_3_42_each_limit_that_a_continued_run_gets_takes_effect() {
    let hand = spent(OnExceed::Ask, 1.0);
    assert_eq!(hand.run.ends_by(noon()), None);
    let limits = TighterLimits {
        max_cost_usd: dollars(2.0),
        deadline_s: Some(90),
        max_attempts: Some(9),
        max_result_bytes: Some(50_000),
        ..TighterLimits::default()
    };
    let hand = continued(hand, limits);
    let limits = &hand.run.started().spec.limits;
    assert_eq!((limits.max_attempts, limits.result_bytes()), (9, 50_000));
    assert_eq!(hand.run.ends_by(noon()), noon().checked_add(std::time::Duration::from_secs(90)).ok());
    assert_eq!(hand.run.budget().limits, *limits);
}

#[test]
fn row_3_42_a_fork_of_a_continued_run_has_the_events_beyond_the_first_limit() {
    let hand = spent(OnExceed::Ask, 1.0);
    let hand = continued(hand, TighterLimits { max_cost_usd: dollars(2.0), ..TighterLimits::default() });
    let hand = hand.model_calls([call("b", "mcp_files_read")]);
    let copy = Run::forked(hand.journal.clone()).unwrap();
    let forked = Run::replay(&copy).unwrap().unwrap();
    assert_eq!((forked.transcript().len(), forked.pause()), (hand.run.transcript().len(), None));
}

#[test]
fn row_3_42_only_limits_that_are_kept_refuse_a_call_by_its_worst_case() {
    let call = |cost| CallEstimate { input_tokens: 10, output_tokens: Some(10), cost_usd: dollars(cost) };
    for (on_exceed, expected) in [
        (OnExceed::LastWord, None),
        (OnExceed::Warn, None),
        (OnExceed::Fail, Some(Limit::Cost)),
        (OnExceed::Ask, Some(Limit::Cost)),
    ] {
        let hand = spent(on_exceed, 0.5);
        assert_eq!(hand.run.limit_exceeded_by(&call(0.6)), expected, "{on_exceed:?}");
        assert_eq!(hand.run.limit_exceeded_by(&call(0.5)), None, "{on_exceed:?}");
    }
}

#[test]
fn row_3_11_a_refused_call_is_a_hard_limit() {
    let refused = |mut hand: Hand| {
        hand.record(Event::ModelCallRefused {
            model: "first".into(),
            limit: Limit::Governor,
            reason: "the month is over".into(),
            estimate: CallEstimate::default(),
        });
        hand.settled()
    };
    let hand = refused(spent(OnExceed::Fail, 0.1));
    assert_eq!(hand.run.ending(), Some(&Ending::Incomplete { limit: Limit::Governor, output: None }));
    assert_eq!(access(&refused(spent(OnExceed::LastWord, 0.1))), ToolAccess::FinalAnswer);
    let hand = refused(spent(OnExceed::Ask, 0.1));
    let reason = hand.run.pause().unwrap().reason.clone().unwrap();
    assert!(reason.starts_with("the month is over; continue with"), "{reason}");
    let hand = continued(hand, TighterLimits { max_tokens: Some(10_000), ..TighterLimits::default() });
    assert_eq!(access(&hand), ToolAccess::Enabled, "the governor is asked again");
}

#[test]
fn row_3_40_each_attempt_looks_at_the_limits() {
    let hand = fails(spent(OnExceed::LastWord, 0.5), costing(0.6));
    assert_eq!(access(&hand), ToolAccess::FinalAnswer, "a failed attempt reached the limit");
    let hand = fails(spent(OnExceed::Fail, 0.5), costing(0.6));
    assert_eq!(hand.status(), Status::Incomplete);
}

#[test]
fn row_3_40_a_last_answer_that_cost_something_and_failed_is_not_repeated() {
    let hand = fails(spent(OnExceed::LastWord, 1.0), Usage::default());
    assert_eq!(access(&hand), ToolAccess::FinalAnswer, "an attempt that cost nothing");
    let hand = fails(hand, costing(0.2));
    assert_eq!(hand.run.ending(), Some(&Ending::Incomplete { limit: Limit::Cost, output: None }));
}
