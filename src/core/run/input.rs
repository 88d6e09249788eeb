//! What comes in from outside for a run: results, decisions, messages, a cancel. Checked against what is owed before
//! anything is written; a refused input consumes nothing.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::state::Phase;
use super::{Answer, CallState, Debt, Decision, Ending, Event, HumanAnswer, InputGiven, Run, Scope};
use crate::core::chat::Message;
use crate::core::id::CallId;
use crate::core::json;
use crate::core::tool::{Arguments, Ask, InputNeeded, Outcome, Reactions, ToolOutput};

/// Something for a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Results and decisions for what it is owed.
    Resume(Resume),
    /// Something a person or the application says.
    Message(Message),
    /// Give more time for something that is owed.
    Extend {
        /// The call.
        call: CallId,
        /// Until when.
        until: Timestamp,
        /// Who gives it.
        by: String,
    },
    /// Stop.
    Cancel {
        /// Why.
        reason: Option<String>,
    },
}

/// Results and decisions, addressed by call id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resume {
    /// Results of external calls.
    pub results: Vec<(CallId, Outcome)>,
    /// Decisions about calls that wait for approval.
    pub decisions: Vec<(CallId, Decision)>,
    /// What decisions were about, as it was shown to whoever made them: the digest of the binding. One that is not in
    /// force any more is refused.
    pub seen: Vec<(CallId, String)>,
    /// Answers to the model's questions.
    pub answers: Vec<(CallId, HumanAnswer)>,
    /// Answers to what the servers of calls want to know.
    pub inputs: Vec<(CallId, InputGiven)>,
    /// Whether it is fine to leave debts open.
    pub partial: bool,
    /// The journal length the sender saw; a different one is refused.
    pub expected_version: Option<u64>,
}

/// Why an input was refused. Nothing of it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Refusal {
    /// The run has no such call.
    #[error("call `{call_id}` is not a call of this run that waits; `toolgate runs show` lists what is owed")]
    UnknownCall {
        /// The id that was given.
        call_id: CallId,
    },
    /// The call has its answer already, and it is a different one.
    #[error("call `{call_id}` is settled already, with a different answer")]
    AlreadySettled {
        /// The call.
        call_id: CallId,
    },
    /// A result for something that waits for a decision, or the other way round.
    #[error("call `{call_id}` waits for {owed}, not for {given}")]
    WrongKind {
        /// The call.
        call_id: CallId,
        /// What it waits for.
        owed: String,
        /// What was given.
        given: String,
    },
    /// The same call is answered twice.
    #[error("call `{call_id}` is answered twice in one request")]
    Twice {
        /// The call.
        call_id: CallId,
    },
    /// What would run is not what was shown.
    #[error(
        "what waits at call `{call_id}` is not what the decision was about any more; look at it again and decide anew"
    )]
    Drifted {
        /// The call.
        call_id: CallId,
    },
    /// It came too late.
    #[error("call `{call_id}` was not answered in time; the model was told so")]
    TooLate {
        /// The call.
        call_id: CallId,
    },
    /// An extension that gives no more time.
    #[error("call `{call_id}` has time until {until} already; give a later time")]
    NotLater {
        /// The call.
        call_id: CallId,
        /// Until when it has.
        until: Timestamp,
    },
    /// Debts are left open by a request that is not partial.
    #[error("these calls are owed too: {}; answer all of them, or say that the resume is partial", list(missing))]
    Incomplete {
        /// The calls without an answer.
        missing: Vec<CallId>,
    },
    /// The result does not fit the tool's result schema, or edited arguments its input schema.
    #[error("{what} of call `{call_id}` {problems}")]
    Invalid {
        /// The call.
        call_id: CallId,
        /// `the result` or `the edited arguments`.
        what: String,
        /// What is wrong.
        problems: String,
    },
    /// The journal moved on since the sender looked.
    #[error("the run is at version {actual}, not {expected}, and is {status}")]
    Stale {
        /// What the sender saw.
        expected: u64,
        /// What is true.
        actual: u64,
        /// Where the run stands.
        status: String,
    },
    /// The run is over.
    #[error("the run is over: {status}")]
    Over {
        /// How it ended.
        status: String,
    },
    /// A message without words.
    #[error("a message needs text")]
    EmptyMessage,
}

impl Run {
    /// The facts an input becomes. None at all when it says only what the journal says already: the same resume
    /// repeated changes nothing, and neither does cancelling what is cancelled.
    pub fn accept(&self, input: &Input) -> Result<Vec<Event>, Vec<Refusal>> {
        match input {
            Input::Resume(resume) => self.accept_resume(resume),
            Input::Message(message) => {
                let event = Event::MessageAdded { message: message.clone() };
                match (self.ending(), self.admit(&event)) {
                    (Some(_), _) => Err(vec![self.over()]),
                    (None, Ok(())) => Ok(vec![event]),
                    (None, Err(_)) => Err(vec![Refusal::EmptyMessage]),
                }
            }
            Input::Extend { call, until, by } => self.accept_extension(call, *until, by),
            Input::Cancel { reason } => match self.ending() {
                None => Ok(vec![Event::Ended { ending: Ending::Cancelled { reason: reason.clone() } }]),
                Some(Ending::Cancelled { .. }) => Ok(Vec::new()),
                Some(_) => Err(vec![self.over()]),
            },
        }
    }

    fn accept_extension(&self, id: &CallId, until: Timestamp, by: &str) -> Result<Vec<Event>, Vec<Refusal>> {
        let event = Event::Extended { call: id.clone(), until, by: by.to_owned() };
        let call = match self.admit(&event) {
            Ok(()) => self.call(id),
            Err(_) if self.ending().is_some() => return Err(vec![self.over()]),
            Err(_) if self.is_late(id) => return Err(vec![Refusal::TooLate { call_id: id.clone() }]),
            Err(_) => return Err(vec![Refusal::UnknownCall { call_id: id.clone() }]),
        };
        match call.and_then(|call| call.term.until()) {
            Some(now) if now == until => Ok(Vec::new()),
            Some(now) if now > until => Err(vec![Refusal::NotLater { call_id: id.clone(), until: now }]),
            Some(_) | None => Ok(vec![event]),
        }
    }

    /// Whether nobody answered a call in time.
    fn is_late(&self, id: &CallId) -> bool {
        self.expired.contains(id)
    }

    fn over(&self) -> Refusal {
        Refusal::Over { status: self.status().as_str().to_owned() }
    }

    fn accept_resume(&self, resume: &Resume) -> Result<Vec<Event>, Vec<Refusal>> {
        let owed = self.debts();
        let mut events = Vec::new();
        let mut refusals = Vec::new();
        let mut answered: Vec<&CallId> = Vec::new();
        for (call, outcome) in &resume.results {
            let known = self.external_results.get(call).map(|before| **before == *outcome);
            match self.judge(&owed, call, "external_result", known) {
                Ok(Taken::New) => match unusable_result(call, outcome) {
                    None => events.push(Event::CallCompleted {
                        call: call.clone(),
                        outcome: outcome.clone().into(),
                        stderr: Vec::new(),
                    }),
                    Some(refusal) => refusals.push(refusal),
                },
                Ok(Taken::Before) => {}
                Err(refusal) => refusals.push(refusal),
            }
            answered.push(call);
        }
        for (call, decision) in &resume.decisions {
            let known = self.decisions.get(call).map(|before| before.is_repeated_by(decision));
            match self.judge(&owed, call, "approval", known) {
                Ok(Taken::New) if self.repeats_what_led_here(call, decision, resume) => {}
                Ok(Taken::New) => match self.unusable_edit(call, decision).or_else(|| unusable(call, decision)) {
                    None => events.push(Event::ApprovalDecided { call: call.clone(), decision: decision.clone() }),
                    Some(refusal) => refusals.push(refusal),
                },
                Ok(Taken::Before) => {}
                Err(refusal) => refusals.push(refusal),
            }
            answered.push(call);
        }
        for (call, answer) in &resume.answers {
            let known = self.answers.get(call).map(|before| before == answer);
            match self.judge(&owed, call, "question", known) {
                Ok(Taken::New) => match self.objection(call, answer) {
                    None => events.push(Event::QuestionAnswered { call: call.clone(), answer: answer.clone() }),
                    Some(refusal) => refusals.push(refusal),
                },
                Ok(Taken::Before) => {}
                Err(refusal) => refusals.push(refusal),
            }
            answered.push(call);
        }
        for (call, given) in &resume.inputs {
            let known = self.inputs_given.get(call).map(|before| before.is_repeated_by(given));
            match self.judge(&owed, call, "input", known) {
                // The same answers once more are a client's retry, unless their sender saw the new questions.
                Ok(Taken::New) if known == Some(true) && resume.expected_version.is_none() => {}
                Ok(Taken::New) => match self.answers(call, given) {
                    Ok(given) => events.push(Event::InputGiven { call: call.clone(), given }),
                    Err(refusal) => refusals.push(refusal),
                },
                Ok(Taken::Before) => {}
                Err(refusal) => refusals.push(refusal),
            }
            answered.push(call);
        }
        for (index, call) in answered.iter().enumerate() {
            if answered.iter().skip(index + 1).any(|other| other == call) {
                refusals.push(Refusal::Twice { call_id: (*call).clone() });
            }
        }
        if refusals.is_empty() && !events.is_empty() {
            refusals.extend(self.late(resume));
            let wanting = owed.iter().filter(|debt| debt.wants_answer());
            let missing = wanting.map(Debt::call_id).filter(|id| !answered.contains(id));
            let missing: Vec<CallId> = missing.cloned().collect();
            if !resume.partial && !missing.is_empty() {
                refusals.push(Refusal::Incomplete { missing });
            }
        }
        if refusals.is_empty() { Ok(events) } else { Err(refusals) }
    }

    /// A call that was approved and is asked about again, because it is in doubt or because what would run is something
    /// else by now: the same approval once more is a client's retry, not another approval, unless its sender says that
    /// they saw what is asked now.
    fn repeats_what_led_here(&self, id: &CallId, decision: &Decision, resume: &Resume) -> bool {
        let is_asked_again = self.call(id).is_some_and(|call| call.sent || !call.drift.is_empty());
        let repeats = self.decisions.get(id).is_some_and(|before| before.is_repeated_by(decision));
        let saw = resume.expected_version.is_some() || resume.seen.iter().any(|(call, _)| call == id);
        is_asked_again && repeats && !saw
    }

    /// What is wrong with the arguments a person put in the place of the model's, if the call can never run with them.
    fn unusable_edit(&self, id: &CallId, decision: &Decision) -> Option<Refusal> {
        let edited = decision.edited_arguments.as_ref()?;
        let is_usable = self.call(id).is_none_or(|call| call.is_callable_with(edited));
        let problems = match (decision.answer, edited) {
            (Answer::Deny, _) => "make no sense with a denial; leave them out",
            (Answer::Approve, Arguments::Malformed(_)) => "are not a JSON object",
            (Answer::Approve, Arguments::Object(_)) if !is_usable => "are no question that could be put to a person",
            (Answer::Approve, Arguments::Object(_)) => return None,
        };
        let what = "the edited arguments".to_owned();
        Some(Refusal::Invalid { call_id: id.clone(), what, problems: problems.to_owned() })
    }

    /// What is wrong with an answer to the model's question.
    fn objection(&self, id: &CallId, answer: &HumanAnswer) -> Option<Refusal> {
        let arguments = self.call(id)?.arguments().as_object()?;
        let problems = Ask::parse(arguments).ok()?.objection(&answer.choice)?;
        Some(Refusal::Invalid { call_id: id.clone(), what: "the answer to the question".into(), problems })
    }

    /// The answers with the forms' defaults, if they answer what was asked and nothing else.
    fn answers(&self, id: &CallId, given: &InputGiven) -> Result<InputGiven, Refusal> {
        let invalid = |problems: String| {
            Err(Refusal::Invalid { call_id: id.clone(), what: "the answers to the server".into(), problems })
        };
        let Some(CallState::NeedsInput(needed)) = self.call(id).map(|call| &call.state) else {
            return Err(Refusal::UnknownCall { call_id: id.clone() });
        };
        if let Some(key) = given.reactions.keys().find(|key| !needed.questions.contains_key(*key)) {
            return invalid(format!("answer `{key}`, which was not asked; asked are: {}", keys(needed)));
        }
        let mut reactions = Reactions::new();
        for (key, question) in &needed.questions {
            let Some(reaction) = given.reactions.get(key) else {
                return invalid(format!("leave `{key}` open; asked are: {}", keys(needed)));
            };
            if let Some(objection) = question.objection(reaction) {
                return invalid(format!("cannot be used: `{key}` {objection}"));
            }
            let content = reaction.content.iter().flat_map(|content| content.values());
            if content.into_iter().any(|value| json::is_deeper_than(value, json::MAX_DEPTH - 1)) {
                return invalid(format!("are nested deeper than {} levels at `{key}`", json::MAX_DEPTH));
            }
            reactions.insert(key.clone(), question.with_defaults(reaction.clone()));
        }
        Ok(InputGiven { reactions, by: given.by.clone() })
    }

    fn late(&self, resume: &Resume) -> Option<Refusal> {
        let expected = resume.expected_version.filter(|expected| *expected != self.length)?;
        Some(Refusal::Stale { expected, actual: self.length, status: self.status().as_str().to_owned() })
    }

    /// What is owed now, also while other calls of the turn are still under way.
    pub fn debts(&self) -> Vec<Debt> {
        match &self.phase {
            Phase::Working { turn, .. } => turn.calls.iter().filter_map(Self::debt).collect(),
            Phase::Ready { .. }
            | Phase::Asking(_)
            | Phase::Stumbled { .. }
            | Phase::Answered { .. }
            | Phase::Accepted { .. }
            | Phase::Ended(_) => Vec::new(),
        }
    }

    fn judge(&self, owed: &[Debt], call: &CallId, given: &str, known: Option<bool>) -> Result<Taken, Refusal> {
        if let Some(debt) = owed.iter().find(|debt| debt.call_id() == call) {
            if debt.kind() == given {
                return Ok(Taken::New);
            }
            if known == Some(true) {
                return Ok(Taken::Before);
            }
            let (owed, given) = (describe(debt.kind()), describe(given));
            return Err(Refusal::WrongKind { call_id: call.clone(), owed, given });
        }
        match known {
            Some(true) => Ok(Taken::Before),
            None if self.is_late(call) => Err(Refusal::TooLate { call_id: call.clone() }),
            Some(false) => Err(Refusal::AlreadySettled { call_id: call.clone() }),
            None if self.ending().is_some() => Err(self.over()),
            None if self.calls_seen.contains(call) && self.call(call).is_none_or(|call| call.is_settled()) => {
                Err(Refusal::AlreadySettled { call_id: call.clone() })
            }
            None => Err(Refusal::UnknownCall { call_id: call.clone() }),
        }
    }
}

enum Taken {
    New,
    Before,
}

/// A result that no journal could give back.
fn unusable_result(call: &CallId, outcome: &Outcome) -> Option<Refusal> {
    let Outcome::Returned(ToolOutput { structured: Some(value), .. }) = outcome else { return None };
    let problems = format!("is nested deeper than {} levels", json::MAX_DEPTH);
    let refusal = Refusal::Invalid { call_id: call.clone(), what: "the result".into(), problems };
    json::is_deeper_than(value, json::MAX_DEPTH).then_some(refusal)
}

/// A decision that cannot be meant: a reach that a single call, or a denial, cannot have.
fn unusable(call: &CallId, decision: &Decision) -> Option<Refusal> {
    let has_reach = decision.expires_at.is_some() || decision.covers != Default::default();
    let problems = match decision.answer {
        Answer::Deny if decision.scope != Scope::Once || has_reach => {
            "makes no sense with a denial; a denial is of one call"
        }
        Answer::Approve if decision.scope == Scope::Once && has_reach => {
            "is this call alone; an expiry, and what is covered, are for `session` and `always`"
        }
        Answer::Approve | Answer::Deny => return None,
    };
    Some(Refusal::Invalid { call_id: call.clone(), what: "the scope".into(), problems: problems.to_owned() })
}

fn describe(kind: &str) -> String {
    let words = match kind {
        "approval" => "a decision",
        "question" => "an answer to the model's question",
        "input" => "answers to its server's questions",
        "task" => "its server to finish the task",
        _ => "a result from the caller",
    };
    words.into()
}

fn keys(needed: &InputNeeded) -> String {
    needed.questions.keys().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

fn list(ids: &[CallId]) -> String {
    ids.iter().map(CallId::as_str).collect::<Vec<_>>().join(", ")
}
