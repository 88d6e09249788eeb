//! Grant proposal: a condition between "these arguments" and "any arguments", and what a grant with it would have allowed
//! among past calls.

use super::backtest::{PastCall, PastOutcome};
use crate::policy::{Condition, Subject, Verdict};

/// A condition under which a grant would cover later calls. The call that it was made from meets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantProposal {
    /// Such as `path under /srv/app`.
    pub words: String,
    /// In the language of policies; [`Condition::for_grant`] accepts it.
    pub condition: String,
    pub(super) breadth: Breadth,
}

/// How much a condition leaves open; the first covers the fewest calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Breadth {
    /// One value of an argument, or one command.
    SameValue,
    /// The folder of a file, the first words of a command.
    SomeValues,
    /// A folder above the folder of the call, an amount at most.
    ManyValues,
    /// One of two values.
    HalfOfAll,
}

/// The past calls that required approval and that a condition covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PastCoverage {
    pub calls: usize,
    /// Those of them that a person refused.
    pub refused: usize,
}

impl GrantProposal {
    /// Whether it covers the files of the folder, or commands with the same first words.
    pub fn covers_similar_values(&self) -> bool {
        self.breadth == Breadth::SomeValues
    }

    /// The calls that a grant with this condition would have allowed. Calls that the policy allowed or denied do not count: no
    /// grant changes them.
    pub fn coverage(&self, past: &[PastCall]) -> PastCoverage {
        let Ok(condition) = Condition::for_grant(&self.condition) else { return PastCoverage::default() };
        let covered = past.iter().filter(|call| {
            let (agent, principal, arguments) = (Some(&call.agent), call.principal.as_ref(), Some(&call.arguments));
            let subject = Subject { tool: &call.tool, agent, principal, arguments };
            call.became.verdict() == Verdict::Ask && condition.holds_for(&subject)
        });
        covered.fold(PastCoverage::default(), |PastCoverage { calls, refused }, call| PastCoverage {
            calls: calls + 1,
            refused: refused + usize::from(call.became == PastOutcome::Refused),
        })
    }
}
