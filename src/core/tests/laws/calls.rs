//! Laws 4 and 5: no call is made twice or against its verdict, and every call has exactly one answer.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use toolgate_core::chat::{Message, Part};
use toolgate_core::id::CallId;
use toolgate_core::run::{CallState, CallVerdict, DecisionKind, Event, Run};
use toolgate_core::tool::TierMode;
use toolgate_core::tool::file_change::changes_file;

use crate::choices::{strictly, tapes};
use crate::provider::{Open, refusal};
use crate::world::{journey, states, wild_journey};

/// The journal's record of one call.
#[derive(Default)]
struct Story {
    starts: u32,
    /// Whether a server runs it, and the limit of such calls holds for it: it holds for no undo call.
    is_mcp: bool,
    in_doubt_approvals: u32,
    /// How often its server received answers after it had suspended the call.
    answers: u32,
    asked: bool,
    approved: bool,
    refused: bool,
    results: u32,
}

fn stories(journal: &[Event]) -> BTreeMap<CallId, Story> {
    let mut stories: BTreeMap<CallId, Story> = BTreeMap::new();
    for (event, before) in journal[1..].iter().zip(states(journal)) {
        match event {
            Event::CallsStarted { calls } => {
                for call in calls {
                    let story = stories.entry(call.clone()).or_default();
                    story.starts += 1;
                    let tool = before.call(call).and_then(|call| call.tool.as_ref());
                    story.is_mcp = tool.is_some_and(|tool| tool.server().is_some()) && !before.is_compensating();
                }
            }
            Event::CallChecked { call, verdict, .. } => {
                let story = stories.entry(call.clone()).or_default();
                match verdict {
                    CallVerdict::Ask { .. } => (story.asked, story.approved) = (true, false),
                    CallVerdict::Rejected { .. } => story.refused = true,
                    CallVerdict::Run { .. } => {}
                }
            }
            Event::ApprovalDecided { call, decision } => {
                let doubted =
                    matches!(before.call(call).unwrap().state, CallState::Asked { outcome_unknown: true, .. });
                let story = stories.entry(call.clone()).or_default();
                let approved = decision.answer == DecisionKind::Approve;
                story.approved = approved;
                story.refused |= !approved;
                story.in_doubt_approvals += u32::from(approved && doubted);
            }
            Event::InputGiven { call, given } => {
                // An answer on the open call sends nothing, and one about a call that had begun sends it only with
                // consent.
                let sends_on = match &before.call(call).unwrap().state {
                    CallState::NeedsInput(needed) => !needed.interrupted || given.repeat,
                    _ => false,
                };
                stories.entry(call.clone()).or_default().answers += u32::from(sends_on);
            }
            Event::CallCompleted { call, .. } => stories.entry(call.clone()).or_default().results += 1,
            _ => {}
        }
    }
    stories
}

fn starts_are_lawful(journal: &[Event]) -> Result<(), TestCaseError> {
    let stories = stories(journal);
    for state in states(journal) {
        for (id, story) in &stories {
            let Some(call) = state.call(id) else { continue };
            let repeatable = call.tool.as_ref().is_some_and(|tool| tool.is_repeatable());
            if !repeatable {
                prop_assert!(story.starts <= 1 + story.in_doubt_approvals + story.answers, "{} was sent twice", id);
            }
            if call.is_external() {
                prop_assert_eq!(story.starts, 0, "the external call {} was sent", id);
            }
            prop_assert!(story.results <= 1, "{} has two results", id);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn law_4_no_call_is_started_twice_without_consent(tape in tapes()) {
        starts_are_lawful(&journey(tape))?;
    }

    #[test]
    fn law_4_no_call_is_started_twice_even_by_a_wild_driver(tape in tapes()) {
        starts_are_lawful(&wild_journey(tape))?;
    }

    #[test]
    fn law_4_a_refused_call_is_not_started_afterwards(tape in tapes()) {
        let journal = wild_journey(tape);
        for (index, event) in journal.iter().enumerate() {
            let Event::CallsStarted { calls } = event else { continue };
            let before = stories(&journal[..index]);
            for call in calls {
                let Some(story) = before.get(call) else { continue };
                prop_assert!(!story.refused, "{} was refused and sent", call);
                prop_assert!(!story.asked || story.approved, "{} required approval and was sent without one", call);
            }
        }
    }

    #[test]
    fn a_call_that_changes_a_file_runs_alone(tape in tapes()) {
        let journal = journey(tape);
        let mut begun = BTreeSet::new();
        for (event, before) in journal[1..].iter().zip(states(&journal)) {
            let changes_file = |id: &CallId| {
                let call = before.call(id).unwrap();
                let only_reads = call.tool.as_ref().is_some_and(|tool| tool.is_read_only());
                !only_reads && call.arguments().as_object().is_some_and(changes_file)
            };
            let is_started = |id: &&CallId| before.call(id).is_some_and(|call| call.state == CallState::Started);
            let (started, startable) = (begun.iter().filter(is_started).collect::<Vec<_>>(), before.startable_calls());
            if startable.iter().any(changes_file) {
                prop_assert_eq!((started.len(), startable.len()), (0, 1), "it would start beside others");
            }
            if started.into_iter().any(changes_file) {
                prop_assert_eq!(startable, [], "others would start beside it");
            }
            if let Event::CallsStarted { calls } = event {
                prop_assert!(calls.len() == 1 || !calls.iter().any(changes_file), "{:?} run at the same time", calls);
                begun.extend(calls.iter().cloned());
            }
        }
    }

    #[test]
    fn law_4_malformed_arguments_never_reach_a_tool(tape in tapes()) {
        let journal = wild_journey(tape);
        for (event, before) in journal[1..].iter().zip(states(&journal)) {
            let Event::CallsStarted { calls } = event else { continue };
            for call in calls {
                prop_assert!(before.call(call).unwrap().arguments().as_object().is_some(), "{} has none", call);
            }
        }
    }

    #[test]
    fn law_4_a_sent_call_is_never_reported_as_not_run(tape in tapes()) {
        let journal = journey(tape);
        let over = Run::replay(&journal).unwrap().unwrap();
        let stories = stories(&journal);
        for part in over.transcript().iter().flat_map(|message| &message.content) {
            let Part::ToolResult { tool_use_id, content, .. } = part else { continue };
            let sent = stories.get(tool_use_id).is_some_and(|story| story.starts > 0);
            let not_run = content.iter().filter_map(Part::as_text).any(|text| text.starts_with("Not run"));
            prop_assert!(!(sent && not_run), "{} was sent, and the model reads {:?}", tool_use_id, content);
        }
    }

    #[test]
    fn law_4_the_budget_of_mcp_calls_bounds_first_sends(tape in tapes()) {
        let journal = journey(tape);
        let Event::Started(started) = &journal[0] else { unreachable!() };
        let Some(bound) = started.spec.limits.max_mcp_calls else { return Ok(()) };
        let first_sends = stories(&journal).values().filter(|story| story.starts > 0 && story.is_mcp).count();
        prop_assert!(first_sends <= bound as usize, "{} calls were sent, {} may be", first_sends, bound);
    }

    #[test]
    fn law_5_the_transcript_is_acceptable_at_every_position(tape in tapes()) {
        for state in states(&wild_journey(tape)) {
            prop_assert_eq!(refusal(state.transcript(), Open::Never), None);
        }
    }

    #[test]
    fn law_5_an_open_turn_shows_its_calls_and_available_results(tape in tapes()) {
        for state in states(&wild_journey(tape)) {
            prop_assert_eq!(refusal(&state.messages(), Open::LastTurn), None);
        }
    }

    #[test]
    fn law_5_every_call_is_in_the_conversation_unless_dropped(tape in tapes()) {
        let journal = journey(tape);
        let Event::Started(started) = &journal[0] else { unreachable!() };
        let over = Run::replay(&journal).unwrap().unwrap();
        let parts = || over.conversation().iter().flat_map(|message| &message.content);
        for event in &journal {
            let Event::ModelReplied { reply } = event else { continue };
            for call in reply.calls() {
                let shown = parts().any(|part| matches!(part, Part::ToolUse { id, .. } if *id == call.id));
                prop_assert!(shown || started.spec.rules.tiers == TierMode::Drop, "{} is missing", call.id);
            }
        }
    }

    #[test]
    fn law_5_every_accepted_message_is_in_the_final_conversation(tape in tapes()) {
        let journal = journey(tape);
        let over = Run::replay(&journal).unwrap().unwrap();
        let text: String = over.conversation().iter().map(|message| Message::text(message)).collect();
        for event in &journal {
            let Event::MessageAdded { message } = event else { continue };
            prop_assert!(text.contains(&message.text()), "{:?} was accepted and is missing", message.text());
        }
    }

    #[test]
    fn law_5_the_conversation_only_grows(tape in tapes()) {
        let mut before: Vec<std::sync::Arc<Message>> = Vec::new();
        for state in states(&wild_journey(tape)) {
            let now = state.conversation();
            prop_assert!(now.len() >= before.len());
            for (old, new) in before.iter().zip(now) {
                prop_assert_eq!(old.role, new.role);
                prop_assert!(new.content.starts_with(&old.content), "history was rewritten");
            }
            before = now.to_vec();
        }
    }
}
