//! Stop reason: the member with which an answer says why the model stopped (`finish_reason`, `stop_reason`,
//! `finishReason`, `status`). Tool calls decide the next step, but an answer without calls has to say that it is
//! complete: proxies end streams whose upstream was interrupted with a reason of `null`, and parsers of servers lose the
//! call that a reason announces.

use serde::{Deserialize, Deserializer};
use toolgate_core::chat::Stop;

use super::Fault;

/// The reasons that announce a call.
const ANNOUNCES_CALL: [&str; 3] = ["tool_calls", "tool_use", "function_call"];

/// The stop reason of an answer so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct StopReason {
    #[serde(deserialize_with = "member")]
    member: Member,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Member {
    #[default]
    Absent,
    Null,
    Reason(String),
}

/// Reads the member where it is present. Some servers have an empty text in place of `null`.
fn member<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Member, D::Error> {
    let reason = Option::<String>::deserialize(deserializer)?.filter(|reason| !reason.is_empty());
    Ok(reason.map_or(Member::Null, Member::Reason))
}

impl StopReason {
    /// The member without a reason.
    pub(crate) const NULL: Self = Self { member: Member::Null };

    /// The reason, if the server states one.
    pub(crate) fn stated(&self) -> Option<&str> {
        if let Member::Reason(reason) = &self.member { Some(reason) } else { None }
    }

    /// Adds the member of the next piece: a stated reason stays unless another one is stated.
    pub(crate) fn note(&mut self, next: Self) {
        match (&self.member, &next.member) {
            (_, Member::Absent) | (Member::Reason(_), Member::Null) => {}
            (_, Member::Null | Member::Reason(_)) => *self = next,
        }
    }

    /// The stop of an answer without calls that was neither cut nor withheld. `name` is the member's name. A server that
    /// has the member and leaves it empty was interrupted; one that does not have it states no reason.
    pub(crate) fn without_calls(&self, name: &'static str) -> Result<Stop, Fault> {
        match &self.member {
            Member::Reason(reason) if ANNOUNCES_CALL.contains(&reason.as_str()) => {
                Err(Fault::MissingCall(reason.clone()))
            }
            Member::Reason(_) => Ok(Stop::End),
            Member::Null => Err(Fault::NoStopReason(name)),
            Member::Absent => Ok(Stop::Unknown),
        }
    }
}
