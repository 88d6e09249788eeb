//! What a call was cleared for, next to what would run now.

use jiff::Timestamp;

use super::{Clearance, Run};
use crate::core::id::CallId;
use crate::core::policy::{Judgement, Verdict};
use crate::core::tool::{Difference, Tool};

impl Run {
    /// What is different, for a call that is about to be sent for the first time, from what it was cleared for. `live` is
    /// the tool as it is now, `judged` what the policy says of the call now.
    ///
    /// A person said yes to one definition and one reason to ask; a standing approval holds for one definition. A policy
    /// that has become more lenient takes nothing back.
    pub fn drift(&self, id: &CallId, live: &Tool, judged: &Judgement, at: Timestamp) -> Vec<Difference> {
        let Some(call) = self.call(id).filter(|call| !call.sent) else { return Vec::new() };
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
        found
    }
}

fn in_words(judged: &Judgement) -> String {
    format!("{}: {}", judged.verdict.as_str(), judged.why)
}
