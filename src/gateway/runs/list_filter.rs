//! Query parameters of the list of runs, and the filter that they are.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::id::{AgentName, Principal, RunId, SessionId};
use toolgate_core::run::{Status, TriggerKind};
use toolgate_ports::{MetadataValue, RunFilter};
use utoipa::{IntoParams, ToSchema};

use super::view::StatusView;
use crate::closed_sets::TriggerView;
use crate::pagination::invalid_parameter;
use crate::problem::Problem;

/// The largest number of members in the filter of metadata.
const MAX_MEMBERS: usize = 8;
/// The longest text that a filter compares with, in bytes.
const MAX_TEXT_BYTES: usize = 256;

/// Filters of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Only runs with one of these statuses, separated by commas.
    #[param(value_type = Vec<StatusView>, required = false, style = Form, explode = false, inline, example = "failed,expired")]
    status: Option<String>,
    /// Only runs of this agent.
    #[param(value_type = Option<String>)]
    agent: Option<AgentName>,
    /// Only runs of this session.
    #[param(value_type = Option<String>)]
    session_id: Option<SessionId>,
    /// Only runs on behalf of this principal.
    #[param(value_type = Option<String>)]
    principal: Option<Principal>,
    /// Only runs with this trigger.
    #[param(value_type = Option<TriggerView>, inline)]
    trigger: Option<TriggerKind>,
    /// Only runs that this schedule started.
    schedule: Option<String>,
    /// Only runs whose metadata has all of these members: a JSON object with 1 to 8 members, whose values are texts,
    /// integers or booleans.
    #[param(example = r#"{"ticket": 9}"#)]
    metadata: Option<String>,
    /// Only runs whose title contains this text of 1 to 256 bytes, whatever the case of the letters A to Z.
    #[param(min_length = 1)]
    title: Option<String>,
    /// Only runs that were created at this time (RFC 3339) or later.
    #[param(value_type = Option<String>, format = DateTime)]
    created_after: Option<String>,
    /// Only runs that were created before this time (RFC 3339).
    #[param(value_type = Option<String>, format = DateTime)]
    created_before: Option<String>,
    /// `desc`, which is the default: newest first; `asc`: oldest first.
    #[serde(default)]
    #[param(inline)]
    pub(super) order: RequestedOrder,
    /// The number of runs to return: 1 to 100. Default: 20.
    #[param(minimum = 1, maximum = 100)]
    pub(super) limit: Option<usize>,
    /// A cursor: runs after this one in the order of the list. Pass the `last_id` of the previous page.
    #[param(value_type = Option<String>)]
    pub(super) after: Option<RunId>,
    /// A cursor: the runs just before this one in the order of the list. Pass the `first_id` of the next page. Not with
    /// `after`.
    #[param(value_type = Option<String>)]
    pub(super) before: Option<RunId>,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequestedOrder {
    /// Newest first.
    #[default]
    Desc,
    /// Oldest first.
    Asc,
}

impl ListParams {
    /// The filter, without its order and cursors.
    pub(super) fn filter(self) -> Result<RunFilter, Problem> {
        Ok(RunFilter {
            statuses: statuses(self.status.as_deref())?,
            agent: self.agent,
            session: self.session_id,
            principal: self.principal,
            trigger: self.trigger,
            schedule: self.schedule,
            metadata: members(self.metadata.as_deref())?,
            title: self.title.map(title).transpose()?,
            created_from: time("created_after", self.created_after.as_deref())?,
            created_before: time("created_before", self.created_before.as_deref())?,
            ..RunFilter::default()
        })
    }
}

/// The statuses in a list with commas, each once.
fn statuses(list: Option<&str>) -> Result<Vec<Status>, Problem> {
    let mut statuses = Vec::new();
    for word in list.iter().flat_map(|list| list.split(',')) {
        let Some(status) = Status::parse(word) else {
            let known = Status::ALL.map(Status::as_str).join(", ");
            return Err(invalid_parameter("status", format!("has the unknown status `{word}`; known are {known}")));
        };
        if !statuses.contains(&status) {
            statuses.push(status);
        }
    }
    Ok(statuses)
}

fn members(json: Option<&str>) -> Result<BTreeMap<String, MetadataValue>, Problem> {
    let Some(json) = json else { return Ok(BTreeMap::new()) };
    let invalid = |detail: &str| invalid_parameter("metadata", detail);
    let object: Map<String, Value> =
        serde_json::from_str(json).map_err(|error| invalid(&format!("is not a JSON object: {error}")))?;
    if object.is_empty() || object.len() > MAX_MEMBERS {
        return Err(invalid(&format!("must have 1 to {MAX_MEMBERS} members")));
    }
    let member = |(name, value): (String, Value)| {
        let comparable = match value {
            Value::String(text) => Some(text).filter(|text| text.len() <= MAX_TEXT_BYTES).map(MetadataValue::Text),
            Value::Bool(flag) => Some(MetadataValue::Bool(flag)),
            Value::Number(number) => number.as_i64().map(MetadataValue::Integer),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        let Some(comparable) = comparable else {
            let rule = format!("use a text of at most {MAX_TEXT_BYTES} bytes, an integer or a boolean");
            return Err(invalid(&format!("has an invalid value for `{name}`: {rule}")));
        };
        Ok((name, comparable))
    };
    object.into_iter().map(member).collect()
}

fn title(text: String) -> Result<String, Problem> {
    match (1..=MAX_TEXT_BYTES).contains(&text.len()) {
        true => Ok(text),
        false => Err(invalid_parameter("title", format!("must have 1 to {MAX_TEXT_BYTES} bytes"))),
    }
}

fn time(name: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let parse = |text: &str| {
        text.parse()
            .map_err(|_| invalid_parameter(name, format!("must be a time such as 2026-03-02T09:14:07Z, not `{text}`")))
    };
    text.map(parse).transpose()
}
