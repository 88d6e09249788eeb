//! What a call was cleared for, next to what would run now. Looked at whenever a call is about to leave: to be sent, to be
//! sent again, or to be handed to whoever answers it outside.

use jiff::Timestamp;

use super::turn::{Answered, Call, CallState};
use super::{Clearance, Run};
use crate::core::id::CallId;
use crate::core::policy::{Judgement, Verdict};
use crate::core::tool::{Difference, Tool};

/// Why a person is asked about a call that may have taken effect, whatever the policy says.
const IN_DOUBT: &str = "it was sent before, and may already have taken effect; approve to send it again, deny to tell the \
                        model that the outcome is unknown";

/// Why a person is asked about a call that is not what it was cleared for, whatever the policy says.
const DRIFTED: &str = "it is not what it was cleared for any more; look at what changed before you allow it";

impl Run {
    /// What is different, for a call that is about to leave, from what it was cleared for. `live` is the tool as it is now,
    /// `judged` what the policy says of the call now.
    ///
    /// A person said yes to one definition and one reason to ask; a standing approval holds for one definition. A policy
    /// that has become more lenient takes nothing back. What a server is told about a task that is under way there starts
    /// nothing, and is not compared.
    pub fn drift(&self, id: &CallId, live: &Tool, judged: &Judgement, at: Timestamp) -> Vec<Difference> {
        let Some(call) = self.call(id).filter(|call| call.task().is_none()) else { return Vec::new() };
        let (Some(tool), Some(clearance)) = (&call.tool, &call.clearance) else { return Vec::new() };
        let policy = |was: &str| Difference::new("policy", was, &in_words(judged));
        let mut found = Vec::new();
        match clearance {
            Clearance::Policy => {
                // A call that nobody approved and whose tool changed is told so to the model, which made it for another one.
                if judged.verdict != Verdict::Allow && live.hash == tool.hash {
                    found.push(policy("allow"));
                }
            }
            Clearance::Grant(grant) => {
                found.extend(tool.differences(live));
                if judged.verdict == Verdict::Deny {
                    found.push(policy("ask"));
                }
                let holds = self.granted.iter().any(|g| g.grant == *grant && g.covers(call.arguments(), Some(at)));
                if !holds {
                    found.push(Difference::new("standing approval", "in force", "expired"));
                }
            }
            Clearance::Person { rule, why } => {
                found.extend(tool.differences(live));
                let same_reason = judged.rule == *rule && judged.why == *why;
                let other_reason = judged.verdict == Verdict::Ask && !same_reason && found.is_empty();
                if judged.verdict == Verdict::Deny || other_reason {
                    found.push(policy(&format!("ask: {why}")));
                }
                let bound = self.decisions.get(id).and_then(|decision| decision.binding.as_ref());
                if bound.is_some_and(|bound| bound.arguments != call.arguments().hash()) {
                    found.push(Difference::new("arguments", "what was approved", "something else"));
                }
            }
        }
        if (call.is_repeated_freely() || call.restarts_freely()) && !live.is_repeatable() {
            found.push(Difference::new("repeating it", "harmless", "not known to be harmless"));
        }
        found
    }
}

impl Call {
    /// Why a person has to be asked about the call even where the policy would let it run: it was sent before, or it is not
    /// what it was cleared for. So nothing that drifted is cleared again without a person, and a tool that changes whenever
    /// it is looked at is asked about once, and not looked at for ever.
    pub fn caution(&self) -> Option<&'static str> {
        match (self.sent, self.drift.is_empty()) {
            (true, _) => Some(IN_DOUBT),
            (false, false) => Some(DRIFTED),
            (false, true) => None,
        }
    }

    /// Whether a person said yes to a call that is answered outside, so that it is to be handed over if it is still what
    /// they said yes to.
    pub fn is_approved(&self) -> bool {
        self.state == CallState::Selected && matches!(self.clearance, Some(Clearance::Person { .. }))
    }

    /// Whether the call may have run and is simply made again, because repeating it is harmless (law 4). Not if something
    /// about it is different by now.
    pub(super) fn is_repeated_freely(&self) -> bool {
        let is_repeatable = self.tool.as_ref().is_some_and(|tool| tool.is_repeatable());
        self.is_in_doubt() && is_repeatable && self.drift.is_empty()
    }

    /// Whether the call had begun when it was cancelled and is sent on with answers, without a yes to that, because
    /// repeating it is harmless.
    fn restarts_freely(&self) -> bool {
        let without_a_yes = |answered: &Answered| answered.needed.interrupted && !answered.given.repeat;
        self.state == CallState::Cleared && self.answered.as_ref().is_some_and(without_a_yes)
    }

    /// Whether it may have run, and somebody has to say what becomes of it.
    pub(super) fn is_doubtful(&self) -> bool {
        self.is_in_doubt() && !self.is_repeated_freely()
    }
}

fn in_words(judged: &Judgement) -> String {
    format!("{}: {}", judged.verdict.as_str(), judged.why)
}
