//! Answers to elicitation requests, in a request body.

use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The answer to one elicitation request.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ElicitationResponse)]
#[allow(dead_code)] // the core reads it; this describes what it reads
pub(super) struct ReactionDescription {
    /// The person's action.
    action: ActionDescription,
    /// The completed form; only with `accept`, and only for a form.
    #[schema(value_type = Option<Object>)]
    content: Option<Map<String, Value>>,
}

/// `accept`: the person answered; `decline`: the person refused; `cancel`: the person closed the request without a
/// choice.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ReactionAction)]
#[allow(dead_code)] // the core reads it; this describes what it reads
enum ActionDescription {
    Accept,
    Decline,
    Cancel,
}
