//! Strict simulated world: drives a run step by step. It does what `next()` requires, answers as its tape chooses, and
//! may at any point interrupt, crash, or try an unsolicited event. Every event it records has to be admitted.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use toolgate_core::chat::{Message, Usage};
use toolgate_core::id::CallId;
use toolgate_core::policy::Verdict;
use toolgate_core::run::{
    AnswerForm, Authorization, CallVerdict, Channel, Ending, Event, Input, OutputVerdict, PendingItem, Rejection,
    Resume, Run, Started, Step, ToolAccess,
};
use toolgate_core::tool::{Ask, ElicitationRequest, Outcome};

use crate::answers::{answer_all, any_resume};
use crate::choices::Tape;
use crate::events::{
    any_news, any_questions, asked, asked_by_default, drifted, extended, granted, rejected, wild_event,
};
use crate::fixtures::{
    any_failure, any_reply, any_start, larger_toolset, noon, problem, resolved, smaller_toolset, toolset, trace,
};

/// More steps than any lawful run of these sizes needs.
const ENOUGH: usize = 10_000;

pub(crate) struct World {
    pub(crate) journal: Vec<Event>,
    /// When each event of the journal was recorded.
    pub(crate) times: Vec<Timestamp>,
    pub(crate) run: Run,
    now: Timestamp,
    tape: Tape,
    /// An unsolicited event is tried once in so many steps; 0 for never.
    wildness: usize,
    executions: u8,
}

/// A crash: the journaled events stay, everything else is lost.
struct Lost;

/// An ended journal without unsolicited events.
pub(crate) fn journey(tape: Tape) -> Vec<Event> {
    World::begin(tape, 0).into_ended()
}

/// An ended journal with unsolicited events that the fold admits.
pub(crate) fn wild_journey(tape: Tape) -> Vec<Event> {
    World::begin(tape, 4).into_ended()
}

/// The states after each event of a journal.
pub(crate) fn states(journal: &[Event]) -> Vec<Run> {
    let Some(Event::Started(started)) = journal.first() else { panic!("a journal begins with its start") };
    let mut states = vec![Run::begin(started.clone())];
    for event in &journal[1..] {
        let mut next = states.last().unwrap().clone();
        next.apply(event).unwrap();
        states.push(next);
    }
    states
}

/// The complete state in comparable form.
pub(crate) fn whole(run: &Run) -> String {
    format!("{run:?}")
}

/// The first difference of two states, if there is one.
pub(crate) fn difference(one: &Run, other: &Run) -> Option<String> {
    let (one, other) = (whole(one), whole(other));
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let excerpt = |text: &str| String::from_utf8_lossy(&text.as_bytes()[same.saturating_sub(120)..]).into_owned();
    let excerpt = |text: &str| excerpt(text).chars().take(240).collect::<String>();
    (one != other).then(|| format!("\n  one: ..{}\nother: ..{}", excerpt(&one), excerpt(&other)))
}

pub(crate) fn to_json(journal: &[Event]) -> Vec<String> {
    journal.iter().map(|event| serde_json::to_string(event).unwrap()).collect()
}

pub(crate) fn from_json(lines: &[String]) -> Vec<Event> {
    lines.iter().map(|line| resolved(serde_json::from_str(line).unwrap())).collect()
}

impl World {
    pub(crate) fn begin(mut tape: Tape, wildness: usize) -> Self {
        let started = any_start(&mut tape);
        Self::new(started, tape, wildness)
    }

    pub(crate) fn new(started: Arc<Started>, tape: Tape, wildness: usize) -> Self {
        let run = Run::begin(started.clone());
        Self {
            journal: vec![Event::Started(started)],
            times: vec![noon()],
            run,
            now: noon(),
            tape,
            wildness,
            executions: 1,
        }
    }

    /// Resumes a journal where it stops.
    pub(crate) fn resume_run(journal: &[Event], tape: Tape) -> Self {
        let run = Run::replay(journal).unwrap().expect("a journal begins with its start");
        let times = vec![noon(); journal.len()];
        Self { journal: journal.to_vec(), times, run, now: noon(), tape, wildness: 0, executions: 1 }
    }

    pub(crate) fn into_ended(mut self) -> Vec<Event> {
        self.run_to_its_end();
        self.journal
    }

    pub(crate) fn run_to_its_end(&mut self) {
        for _ in 0..ENOUGH {
            if self.run.ending().is_some() {
                return;
            }
            self.turn_the_crank();
        }
        panic!("no ending after {ENOUGH} steps; the last: {:?}, next {:?}", self.journal.last(), self.run.next());
    }

    /// One step of the run, with the disturbances that the tape chooses.
    pub(crate) fn turn_the_crank(&mut self) {
        if self.wildness > 0 && self.tape.once_in(self.wildness) {
            let event = wild_event(&mut self.tape, &self.run, &self.journal, self.now);
            if self.run.admit(&event).is_ok() {
                return self.record(event);
            }
        }
        if self.act().is_err() {
            self.come_back();
        }
    }

    fn act(&mut self) -> Result<(), Lost> {
        self.interrupt()?;
        match self.run.next() {
            Step::Record(events) => {
                assert!(!events.is_empty(), "a step that records nothing never ends");
                for event in events {
                    self.record(event);
                    self.may_be_lost()?;
                }
            }
            Step::ListTools => {
                let toolset =
                    (*self.tape.pick(&[toolset, toolset, toolset, larger_toolset, larger_toolset, smaller_toolset]))();
                self.record(Event::ToolsListed { toolset });
            }
            Step::ResolveApprovals(guarded) => {
                assert!(!guarded.is_empty());
                let granted: Vec<_> = guarded.into_iter().filter(|_| self.tape.once_in(3)).map(granted).collect();
                self.record(Event::ApprovalsResolved { granted: granted.into() });
            }
            Step::CallModel { attempt, tool_access, .. } => self.ask_the_model(attempt, tool_access)?,
            Step::Compact { attempt, replaces, keeps } => self.compact(attempt, replaces, keeps)?,
            Step::ValidateOutput(_) => {
                let verdict = match self.tape.below(4) {
                    0 => OutputVerdict::Valid { value: None },
                    1 => OutputVerdict::Valid { value: Some(json!({"x": 0.3})) },
                    2 => OutputVerdict::Valid { value: Some(json!(null)) },
                    _ => OutputVerdict::Invalid { problems: vec![problem()] },
                };
                self.record(Event::OutputValidated { verdict });
            }
            Step::CheckCalls(ids) => self.check(ids)?,
            Step::RunTier(ids) => self.run_tier(ids)?,
            Step::Wait(items) => self.pay(&items),
            Step::Done(_) => {}
        }
        Ok(())
    }

    fn ask_the_model(&mut self, attempt: u32, tool_access: ToolAccess) -> Result<(), Lost> {
        self.now += SignedDuration::from_secs(*self.tape.pick(&[0, 1, 30, 100]));
        let model = self.run.candidate(self.now).clone();
        self.record(Event::ModelCalled { model, attempt, tool_access });
        self.may_be_lost()?;
        self.interrupt()?;
        if self.run.ending().is_some() || self.run.is_compensating() {
            return Ok(());
        }
        if self.tape.once_in(8) {
            let usage = Usage { input_tokens: Some(5), ..Usage::default() };
            let error = any_failure(&mut self.tape);
            self.record(self.run.model_failed(error, usage, self.now));
            return Ok(());
        }
        let tools = self.run.tools().expect("tools are listed before the model is asked").clone();
        let reply = any_reply(&mut self.tape, &tools, tool_access);
        let reply = self.run.with_unique_ids(reply);
        assert_eq!(self.run.with_unique_ids(reply.clone()), reply, "unique ids stay as they are");
        self.record(Event::ModelReplied { reply: Arc::new(reply) });
        Ok(())
    }

    fn compact(&mut self, attempt: u32, replaces: u64, keeps: u64) -> Result<(), Lost> {
        let (model, usage) =
            (self.run.compaction_model(self.now).clone(), Usage { input_tokens: Some(2), ..Usage::default() });
        self.record(Event::CompactionStarted { model: model.clone(), attempt, replaces, keeps });
        self.may_be_lost()?;
        self.interrupt()?;
        if self.run.ending().is_some() || self.run.is_compensating() {
            return Ok(());
        }
        let end = match self.tape.once_in(4) {
            true => Event::CompactionFailed { error: any_failure(&mut self.tape), usage },
            false => Event::CompactionCompleted { summary: "they said much".into(), usage, model },
        };
        self.record(end);
        Ok(())
    }

    fn check(&mut self, ids: Vec<CallId>) -> Result<(), Lost> {
        for id in self.tape.shuffled(ids) {
            let call = self.run.call(&id).expect("the call is open");
            let tool = call.tool.clone().expect("only calls of known tools are checked");
            let askable = |arguments| Ask::parse(arguments).is_ok();
            let verdict = if !call.arguments().as_object().is_some_and(|a| !call.is_question() || askable(a)) {
                rejected(Rejection::InvalidArguments)
            } else if call.is_approved() {
                if self.tape.once_in(4) {
                    self.record(drifted(&self.run, id));
                    continue;
                }
                CallVerdict::Run { by: Authorization::HumanApproval }
            } else if call.sent {
                if self.tape.once_in(4) {
                    let unknown = Event::CallCompleted {
                        call: id,
                        outcome: Outcome::Unknown.into(),
                        stderr: Vec::new(),
                        wire: None,
                    };
                    self.record(unknown);
                    continue;
                }
                asked("once more")
            } else if self.tape.once_in(9) {
                rejected(*self.tape.pick(&[Rejection::InvalidArguments, Rejection::Denied]))
            } else {
                match tool.verdict {
                    Verdict::Allow => CallVerdict::Run { by: Authorization::Policy { rule: None, policy: None } },
                    Verdict::Ask => match self.run.granted(&tool, call.arguments(), self.now, &asked_by_default(&tool))
                    {
                        Some(grant) => CallVerdict::Run { by: Authorization::Grant { grant: grant.clone() } },
                        None => asked("the rule says so"),
                    },
                    Verdict::Deny => rejected(Rejection::Denied),
                }
            };
            self.record(Event::CallChecked { call: id, verdict, advisory: Vec::new() });
            self.may_be_lost()?;
        }
        Ok(())
    }

    fn run_tier(&mut self, ids: Vec<CallId>) -> Result<(), Lost> {
        assert!(!ids.is_empty(), "a tier has calls");
        if self.tape.once_in(8) {
            let event = drifted(&self.run, self.tape.pick(&ids).clone());
            self.record(event);
            return Ok(());
        }
        self.record(Event::CallsStarted { calls: ids.clone() });
        for id in self.tape.shuffled(ids) {
            self.may_be_lost()?;
            self.interrupt()?;
            // The run ended, or its turn was abandoned for a compensation.
            if self.run.call(&id).is_none() {
                return Ok(());
            }
            self.hold(&id)?;
            let news = any_news(&mut self.tape, id);
            self.record(news);
        }
        Ok(())
    }

    /// The server of a call asks on the open call, perhaps more than once, and gets an answer or none.
    fn hold(&mut self, id: &CallId) -> Result<(), Lost> {
        let is_mcp = self.run.call(id).is_some_and(|call| !call.is_builtin());
        while is_mcp && self.tape.once_in(6) {
            let needed = Arc::new(ElicitationRequest { interrupted: false, ..any_questions(&mut self.tape) });
            self.record(Event::InputRequested { call: id.clone(), needed, until: None });
            self.may_be_lost()?;
            let held = self.run.pending_items().into_iter().filter(PendingItem::is_held).collect::<Vec<_>>();
            assert!(held.iter().any(|item| item.call_id() == Some(id)), "a held call is shown");
            assert_eq!(self.run.pending(), [], "and the run is running");
            if self.tape.once_in(2) {
                let resume = any_resume(&mut self.tape, &held);
                self.give(&Input::Resume(Resume { partial: true, ..resume }));
                self.may_be_lost()?;
            }
        }
        Ok(())
    }

    /// Answers pending items: some or all, validly or not. Tasks settle without answers, in any order.
    fn pay(&mut self, items: &[PendingItem]) {
        assert!(!items.is_empty(), "a wait has at least one pending item");
        if self.tape.once_in(30) && !self.run.is_compensating() {
            return self.record(Event::Ended { ending: Ending::Expired });
        }
        if let Some(late) = items.iter().find(|item| can_be_late(item)).filter(|_| self.tape.once_in(8)) {
            return self.record(Event::Expired { call: late.call_id().unwrap().clone() });
        }
        if let Some(item) = items.iter().find(|item| can_be_late(item)).filter(|_| self.tape.once_in(12)) {
            let extended = extended(item.call_id().unwrap().clone(), self.now);
            return self.record(extended);
        }
        let tasks: Vec<CallId> =
            items.iter().filter(|item| !item.wants_answer()).filter_map(|item| item.call_id().cloned()).collect();
        if !tasks.is_empty() && (tasks.len() == items.len() || self.tape.once_in(2)) {
            let news = any_news(&mut self.tape, tasks[0].clone());
            return self.record(news);
        }
        let resume = any_resume(&mut self.tape, items);
        if self.give(&Input::Resume(resume)) == 0 {
            let all = Resume { expected_version: Some(self.run.length()), ..answer_all(items) };
            assert!(self.give(&Input::Resume(all)) > 0, "a resume that answers every item is accepted");
        }
    }

    /// Submits an input; returns the number of its events. A refused input has no effect.
    pub(crate) fn give(&mut self, input: &Input) -> usize {
        let events = self.run.accept(input).unwrap_or_default();
        let count = events.len();
        events.into_iter().for_each(|event| self.record(event));
        count
    }

    fn interrupt(&mut self) -> Result<(), Lost> {
        match self.tape.below(48) {
            39 => self.give(&pause()),
            47 => self.give(&Input::Cancel { reason: None, partial_reply: None, expected_version: None }),
            44..=46 => self.give(&Input::Message(Message::user(format!("and also {}", self.journal.len())))),
            40..=43 => {
                let resume = any_resume(&mut self.tape, &self.run.pending_items());
                self.give(&Input::Resume(Resume { partial: true, ..resume }))
            }
            37 | 38 => return Err(Lost),
            _ => 0,
        };
        Ok(())
    }

    fn may_be_lost(&mut self) -> Result<(), Lost> {
        if self.tape.once_in(16) { Err(Lost) } else { Ok(()) }
    }

    /// Another process loads the journal as text and derives the same run.
    fn come_back(&mut self) {
        let journal = from_json(&to_json(&self.journal));
        let replayed = Run::replay(&journal).unwrap().unwrap();
        assert_eq!(difference(&replayed, &self.run), None, "the journal differs from the run that was driven");
        self.run = replayed;
        if self.tape.once_in(2) && self.run.ending().is_none() {
            self.executions = self.executions.wrapping_add(1);
            self.record(Event::Resumed { trace: trace(self.executions), limits: None });
        }
    }

    pub(crate) fn record(&mut self, event: Event) {
        if let Err(refused) = self.run.apply(&event) {
            panic!("{refused}\nthe event: {event:?}\nthe journal:\n{}", to_json(&self.journal).join("\n"));
        }
        self.journal.push(event);
        self.times.push(self.now);
    }
}

/// A pause by a person.
pub(crate) fn pause() -> Input {
    Input::Pause { reason: Some("lunch".into()), by: "ada".into(), via: Channel::Library, expected_version: None }
}

fn can_be_late(item: &PendingItem) -> bool {
    match item.form() {
        AnswerForm::Result { .. } | AnswerForm::Decision(_) | AnswerForm::Choice(_) => true,
        AnswerForm::Elicitation { .. } | AnswerForm::Background(_) | AnswerForm::Continue { .. } => false,
    }
}
