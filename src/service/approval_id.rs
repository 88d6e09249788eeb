//! Approval ids: the run, and the position of the fact that requests the approval.

use std::fmt;

use toolgate_core::id::RunId;

const PREFIX: &str = "appr_";

/// The prefix of run ids, which approval ids do not repeat.
const OF_RUNS: &str = "run_";

/// The place where an approval was requested. A second request for the same call is another approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalId {
    pub run: RunId,
    /// The position of the fact that requests it.
    pub event: u64,
}

impl ApprovalId {
    /// Parses an approval id.
    pub fn parse(id: &str) -> Option<Self> {
        let (run, event) = id.strip_prefix(PREFIX)?.rsplit_once('_')?;
        let place = Self { run: format!("{OF_RUNS}{run}").into(), event: event.parse().ok()? };
        // Each approval has exactly one id: `+7` and `07` are invalid.
        (place.to_string() == id).then_some(place)
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = self.run.as_str();
        write!(f, "{PREFIX}{}_{}", run.strip_prefix(OF_RUNS).unwrap_or(run), self.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_approval_ids_parse() {
        let place = ApprovalId { run: "run_019a_3f".into(), event: 7 };
        assert_eq!(place.to_string(), "appr_019a_3f_7");
        assert_eq!(ApprovalId::parse("appr_019a_3f_7"), Some(place));
        for none in ["", "appr_", "appr_7", "run_019a_7", "appr_019a_+7", "appr_019a_07", "appr_019a_x", "appr_a_-1"] {
            assert_eq!(ApprovalId::parse(none), None, "{none}");
        }
    }
}
