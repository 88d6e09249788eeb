//! Laws of forks: every fork of a journal can be driven, calls the model or waits before it ends, and forgets no call that
//! was sent.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use toolgate_core::chat::{Message, Usage};
use toolgate_core::id::CallId;
use toolgate_core::run::{CallVerdict, Channel, Ending, Event, Limits, OnDeny, Rejection, Run, Started, Trigger};

use crate::choices::{Tape, strictly, tapes};
use crate::fixtures::{any_limits, started, trace};
use crate::provider::{Open, refusal};
use crate::world::{World, from_json, states, to_json, wild_journey};

/// The journal of a fork at this position, as the runner begins it, with the limits of its source.
fn forked(source: &[Event], at: usize, message: Option<&str>) -> Vec<Event> {
    forked_within(&limits_of(&source[..at]), source, at, message)
}

/// The journal of a fork at this position with these limits.
fn forked_within(limits: &Limits, source: &[Event], at: usize, message: Option<&str>) -> Vec<Event> {
    let trigger = |at| Trigger::Fork { run: "run_source".into(), at, authors: Default::default() };
    copied(trigger, limits, source, at, message)
}

/// The journal of a copy with this trigger, for which it gets the number of copied events.
pub(crate) fn copied(
    trigger: impl FnOnce(u64) -> Trigger,
    limits: &Limits,
    source: &[Event],
    at: usize,
    message: Option<&str>,
) -> Vec<Event> {
    let mut journal = Run::forked(source[..at].to_vec()).unwrap();
    let length = journal.len() as u64;
    let Some(Event::Started(first)) = journal.first_mut() else { panic!("a journal begins with its start") };
    let first: &mut Started = Arc::make_mut(first);
    first.trigger = trigger(length);
    journal.push(Event::Resumed { trace: trace(7), limits: Some(limits.clone().into()) });
    journal.extend(message.map(|text| Event::MessageAdded { message: Message::user(text) }));
    from_json(&to_json(&journal))
}

fn limits_of(source: &[Event]) -> Limits {
    Run::replay(source).unwrap().unwrap().started().spec.limits.clone()
}

/// The position of a fork with the limits of its source.
fn position(source: &[Event], has_message: bool) -> usize {
    Run::fork_position(source, has_message, &limits_of(source)).unwrap() as usize
}

/// The calls that a journal sends, without undo calls: a fork continues before them.
fn sent(journal: &[Event]) -> BTreeSet<CallId> {
    let calls = |event: &Event| if let Event::CallsStarted { calls } = event { calls.clone() } else { Vec::new() };
    let undoes = |event: &&Event| matches!(event, Event::CompensationStarted { .. });
    journal.iter().take_while(|event| !undoes(event)).flat_map(calls).collect()
}

/// The journal without its ending.
fn open_part(journal: &[Event]) -> &[Event] {
    match journal.last() {
        Some(Event::Ended { .. }) => &journal[..journal.len() - 1],
        _ => journal,
    }
}

/// Whether the journal after this position calls the model, or waits.
fn asks_or_waits(journal: &[Event], from: usize) -> bool {
    let is_call = |event: &Event| matches!(event, Event::ModelCalled { .. } | Event::CompactionStarted { .. });
    let asks = journal[from..].iter().any(is_call);
    asks || states(journal)[from - 1..].iter().any(|state| !state.pending().is_empty())
}

/// Whether the own part of a fork stops at a limit before the model is called, as its agent's `on_exceed` tells.
fn stops_at_limit(journal: &[Event], own: usize) -> bool {
    journal[own..].iter().any(|event| {
        matches!(
            event,
            Event::Paused { via: Channel::Limit, .. }
                | Event::Ended { ending: Ending::Incomplete { output: None, .. } }
        )
    })
}

fn has_stop_condition(journal: &[Event]) -> bool {
    let Some(Event::Started(started)) = journal.first() else { return false };
    started.spec.rules.stop_when.is_some() || !started.spec.rules.finish_with.is_empty()
}

/// Whether a call after this position closed the copied turn, after which a stop condition of the agent ended the run: what
/// the source has copied cannot foretell the results of the fork.
fn stops_by_condition(journal: &[Event], own: usize) -> bool {
    let settles = |event: &Event| matches!(event, Event::CallChecked { .. } | Event::CallCompleted { .. });
    has_stop_condition(journal) && journal[own..].iter().any(settles)
}

/// Whether a check after this position denied a call, and denials end the run: what the source has copied cannot
/// foretell the policy of the fork.
fn is_denied_by_check(journal: &[Event], from: usize) -> bool {
    let Some(Event::Started(started)) = journal.first() else { return false };
    let denies = |event: &Event| {
        matches!(event, Event::CallChecked { verdict: CallVerdict::Rejected { reason: Rejection::Denied, .. }, .. })
    };
    started.spec.rules.on_deny == OnDeny::Fail && journal[from..].iter().any(denies)
}

/// Whether the run had to compact a conversation in which there is nothing to replace.
fn has_nothing_to_compact(journal: &[Event]) -> bool {
    let run = Run::replay(journal).unwrap().unwrap();
    run.started().is_compaction()
        && run.ending().and_then(|ending| ending.output()).is_some_and(|output| output.is_empty())
}

proptest! {
    #![proptest_config(strictly())]

    /// The next step of a fork without a position is a model call or a wait, after the calls that were copied. Three things
    /// of the fork's own can end it before: a call that its policy denies now, a limit of zero at which its agent fails,
    /// and a call that it sends and that fails, if the agent ends runs because of that. The calm world has no failing
    /// calls.
    #[test]
    fn a_fork_of_an_ended_run_calls_the_model_or_waits(tape in tapes(), limits in tapes(), has_message: bool) {
        let source = wild_journey(tape);
        let limits = any_limits(&mut limits.clone());
        let at = Run::fork_position(&source, has_message, &limits).unwrap() as usize;
        let journal = forked_within(&limits, &source, at, has_message.then_some("look again"));
        let own = journal.len();
        let foregone = Run::replay(&journal).unwrap().unwrap().foregone_ending();
        // A limit of zero at which the agent fails, or a stop condition of a turn that sent calls.
        let may_end = matches!(foregone, Some(Ending::Incomplete { output: None, .. })) || has_stop_condition(&journal);
        prop_assert!(foregone.is_none() || may_end, "{:?} in\n{}", foregone, to_json(&journal).join("\n"));
        let whole = World::resume_run(&journal, Tape::blank()).into_ended();
        let ends_early = is_denied_by_check(&whole, own)
            || has_nothing_to_compact(&whole)
            || stops_at_limit(&whole, own)
            || stops_by_condition(&whole, own);
        prop_assert!(asks_or_waits(&whole, own) || ends_early, "{}", to_json(&whole).join("\n"));
    }

    #[test]
    fn a_fork_forgets_no_call_that_was_sent(tape in tapes(), limits in tapes(), has_message: bool) {
        let source = wild_journey(tape);
        let at = Run::fork_position(&source, has_message, &any_limits(&mut limits.clone())).unwrap() as usize;
        prop_assert_eq!(sent(&source[..at]), sent(&source), "{} of\n{}", at, to_json(&source).join("\n"));
    }

    #[test]
    fn a_fork_has_its_message_before_the_model_is_called(tape in tapes()) {
        let source = wild_journey(tape);
        let at = position(&source, true);
        let journal = forked(&source, at, Some("look again"));
        let whole = World::resume_run(&journal, Tape::blank()).into_ended();
        let asked = whole[journal.len()..].iter().position(|event| matches!(event, Event::ModelCalled { .. }));
        let Some(asked) = asked else {
            let own = journal.len();
            let ends_early =
                is_denied_by_check(&whole, own) || stops_at_limit(&whole, own) || stops_by_condition(&whole, own);
            prop_assert!(asks_or_waits(&whole, own) || ends_early);
            return Ok(());
        };
        let before = Run::replay(&whole[..journal.len() + asked]).unwrap().unwrap();
        let answered = before.transcript().iter().any(|message| message.text().contains("look again"));
        prop_assert!(answered, "{}", to_json(&whole).join("\n"));
    }

    #[test]
    fn a_fork_ends_at_once_or_has_a_new_budget(tape in tapes()) {
        let source = wild_journey(tape);
        let open = open_part(&source);
        for at in 1..=open.len() {
            let journal = forked(open, at, None);
            let run = Run::replay(&journal).unwrap().unwrap();
            prop_assert_eq!(run.budget().iterations + run.budget().tool_interactions + run.budget().mcp_calls, 0);
            prop_assert_eq!(run.budget().usage, Usage::default());
            if run.foregone_ending().is_some() {
                continue;
            }
            let whole = World::resume_run(&journal, Tape::blank()).into_ended();
            for state in states(&whole) {
                prop_assert_eq!(refusal(state.transcript(), Open::Never), None, "forked at {}", at);
            }
        }
    }

    #[test]
    fn a_fork_of_a_fork_is_a_fork(tape in tapes()) {
        let source = wild_journey(tape);
        let at = position(&source, false);
        let once = World::resume_run(&forked(&source, at, None), Tape::blank()).into_ended();
        let again = position(&once, true);
        let twice = World::resume_run(&forked(&once, again, Some("and again")), Tape::blank()).into_ended();
        prop_assert!(Run::replay(&twice).unwrap().unwrap().ending().is_some());
    }
}

#[test]
fn only_a_fork_starts_a_budget_of_its_own() {
    let run = Run::begin(started(crate::fixtures::spec(Limits::default())));
    let renewed = Event::Resumed { trace: trace(2), limits: Some(Limits::default().into()) };
    assert!(run.admit(&renewed).is_err());
}

/// A counterexample that `a_fork_has_its_message_before_the_model_is_called` found: a run without a tool budget whose
/// model made only tool calls.
#[test]
fn a_fork_does_not_begin_after_calls_that_its_budget_rejects() {
    let source = wild_journey(Tape::new(vec![
        85, 2, 0, 0, 0, 25, 119, 239, 227, 60, 255, 96, 31, 173, 49, 254, 82, 189, 120, 78, 216, 178, 230, 49, 22, 38,
        115, 24, 3, 2, 189, 157, 248, 253, 154, 228, 116, 33, 170, 230, 139, 150, 155, 25, 45, 123, 70, 192, 239,
    ]));
    let at = position(&source, true);
    let journal = forked(&source, at, Some("look again"));
    let whole = World::resume_run(&journal, Tape::blank()).into_ended();
    assert!(asks_or_waits(&whole, journal.len()), "{}", to_json(&whole).join("\n"));
}
