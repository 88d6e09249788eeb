//! Laws of segments: the conversation of a run is the segments of its predecessors and its own messages.

use std::sync::Arc;

use proptest::prelude::*;
use toolgate_core::chat::Message;
use toolgate_core::run::{Event, Limits, Run, Segment, Started};

use crate::choices::{Tape, tapes};
use crate::fixtures::{predecessor, spec, started};
use crate::provider::{Open, refusal};
use crate::world::{states, wild_journey};

/// The journal of a run with a predecessor. The predecessor's conversation is the segment of another journal, so that it
/// ends in any way a segment does.
fn continued(tape: Tape) -> (Vec<Event>, Segment) {
    let before = Segment::from_journal(&wild_journey(tape.clone())).unwrap().unwrap();
    let prior = Segment::join([before]);
    let mut journal = wild_journey(tape);
    let Some(Event::Started(first)) = journal.first_mut() else { panic!("a journal begins with its start") };
    let first: &mut Started = Arc::make_mut(first);
    first.history = Vec::new();
    first.predecessor = Some(predecessor(0));
    (with_conversation(&journal, Some(&prior)), prior)
}

fn with_conversation(journal: &[Event], conversation: Option<&Segment>) -> Vec<Event> {
    let mut journal = journal.to_vec();
    journal[0] = journal[0].with_conversation(conversation.cloned().map(Arc::new));
    journal
}

/// The journal as far as the fold admits it: the ids of its calls may be those of the conversation before it.
fn admitted(journal: &[Event]) -> Vec<Event> {
    let mut run = Run::replay(&journal[..1]).unwrap().unwrap();
    let admitted = journal[1..].iter().take_while(|event| run.apply(event).is_ok()).count();
    journal[..=admitted].to_vec()
}

proptest! {
    #[test]
    fn the_transcript_is_the_conversation_before_and_the_own_messages(tape in tapes()) {
        let (journal, prior) = continued(tape);
        let journal = admitted(&journal);
        let alone = with_conversation(&journal, None);
        for (resolved, alone) in states(&journal).iter().zip(states(&alone)) {
            let own = Segment { messages: alone.conversation().to_vec(), ..Segment::default() };
            let joined = Segment::join([prior.clone(), own]);
            prop_assert_eq!(resolved.conversation(), &*joined.messages);
            prop_assert_eq!(refusal(resolved.transcript(), Open::Never), None);
        }
    }

    #[test]
    fn the_conversation_before_changes_only_what_a_model_reads(tape in tapes()) {
        let journal = admitted(&continued(tape).0);
        let alone = with_conversation(&journal, None);
        for (resolved, alone) in states(&journal).iter().zip(states(&alone)) {
            prop_assert_eq!(resolved.status(), alone.status());
            prop_assert_eq!(resolved.pending(), alone.pending());
            prop_assert_eq!(resolved.budget(), alone.budget());
            // Whether a compaction is due depends on what a model reads.
            if resolved.started().spec.rules.compaction.is_none() {
                prop_assert_eq!(format!("{:?}", resolved.next()), format!("{:?}", alone.next()));
            }
            prop_assert_eq!(resolved.execution_context(), alone.execution_context());
        }
    }

    #[test]
    fn a_segment_is_of_its_own_run_alone(tape in tapes()) {
        let journal = admitted(&continued(tape).0);
        let alone = with_conversation(&journal, None);
        prop_assert_eq!(Segment::from_journal(&journal).unwrap(), Segment::from_journal(&alone).unwrap());
    }

    #[test]
    fn every_provider_accepts_a_conversation_of_segments_and_a_new_message(tapes in prop::collection::vec(tapes(), 1..4)) {
        let segments = tapes.into_iter().map(|tape| Segment::from_journal(&wild_journey(tape)).unwrap().unwrap());
        let conversation = Segment::join(segments);
        let mut first = Arc::unwrap_or_clone(started(spec(Limits::default())));
        first.predecessor = Some(predecessor(0));
        let next = Run::replay([&Event::Started(first.into()).with_conversation(Some(conversation.into()))]).unwrap();
        // Ids repeat, because each segment is of a run that did not know the others.
        let transcript: Vec<Arc<Message>> = next.unwrap().transcript().to_vec();
        prop_assert!(transcript.windows(2).all(|pair| pair[0].role != pair[1].role));
    }

    #[test]
    fn every_provider_accepts_a_new_message_after_a_segment_at_any_position(tape in tapes()) {
        let journal = wild_journey(tape);
        for length in 1..=journal.len() {
            let segment = Segment::from_journal(&journal[..length]).unwrap().unwrap();
            let joined = Segment::join([segment]);
            let mut first = Arc::unwrap_or_clone(started(spec(Limits::default())));
            first.predecessor = Some(predecessor(0));
            let first = Event::Started(first.into()).with_conversation(Some(joined.into()));
            let next = Run::replay([&first]).unwrap().unwrap();
            prop_assert_eq!(refusal(next.transcript(), Open::Never), None);
        }
    }
}
