//! Reactions to what a server asks in the middle of a call, as a request gives them.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// How one question of a server was taken.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Reaction)]
#[allow(dead_code)] // the core reads it; this describes what it reads
pub(super) struct ReactionDescription {
    /// Yes, no, or neither.
    action: ActionDescription,
    /// The filled-in form; with `accept` of a form only.
    #[schema(value_type = Option<Object>)]
    content: Option<Map<String, Value>>,
}

/// `accept`: it was answered; `decline`: the person said no; `cancel`: the person turned away without a choice.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ReactionAction)]
#[allow(dead_code)] // the core reads it; this describes what it reads
enum ActionDescription {
    Accept,
    Decline,
    Cancel,
}
