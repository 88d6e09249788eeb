//! Session records: a caller creates a session before its first run, and changes its title and metadata.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use toolgate_core::chat::{Usage, Usd};
use toolgate_core::id::{AgentName, Principal, RunId, SessionId, Tenant};
use toolgate_core::tool::is_deceptive;
use toolgate_driver::DriveError;
use toolgate_ports::{RunFilter, SessionLimits, SessionRow, SessionSaved, SessionSettings};

use crate::resume_input::require_mode;
use crate::{AgentRunner, RunnerError};

/// How often a claim or change of a session is tried while other writers come and go.
pub(super) const WRITE_ATTEMPTS: usize = 10;

/// The longest title, in bytes.
const MAX_TITLE_BYTES: usize = 256;

/// The largest metadata, in bytes of JSON.
const MAX_METADATA_BYTES: usize = 16 * 1024;

/// A session to create.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its id. Default: a new one.
    pub id: Option<SessionId>,
    pub tenant: Tenant,
    pub agent: AgentName,
    pub principal: Option<Principal>,
    /// Its title, of at most 256 bytes without control, bidirectional and invisible characters. Default: the beginning of the first message.
    pub title: Option<String>,
    /// Metadata of at most 16 KiB as JSON, limits, time of expiry, and permission mode.
    pub settings: SessionSettings,
    /// The authenticated name of the caller.
    pub by: Option<String>,
}

/// A change of a session: a merge patch (RFC 7396).
#[derive(Clone, Debug, Default)]
pub struct SessionChange {
    /// The title. A cleared title is that of the next message.
    pub title: MemberChange<String>,
    /// A merge patch of the metadata.
    pub metadata: MemberChange<Map<String, Value>>,
    /// A merge patch of the limits, which hold from the next run on.
    pub limits: MemberChange<SessionLimitsChange>,
    /// Seconds without use after which the next run begins afresh.
    pub expire_after_s: MemberChange<u64>,
    /// The permission mode of the next runs.
    pub mode: MemberChange<String>,
}

/// A merge patch of the limits of a session.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionLimitsChange {
    /// Replies of models.
    pub max_iterations: MemberChange<u32>,
    /// Input and output tokens.
    pub max_tokens: MemberChange<u64>,
    /// US dollars.
    pub max_cost_usd: MemberChange<Usd>,
    /// Seconds since the session was created.
    pub deadline_s: MemberChange<u64>,
}

impl<T> MemberChange<T> {
    fn apply(self, member: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *member = None,
            Self::Set(value) => *member = Some(value),
        }
    }
}

/// A change of one member by a merge patch.
#[derive(Clone, Debug, Default)]
pub enum MemberChange<T> {
    /// The patch does not have the member.
    #[default]
    Keep,
    /// The member is `null`.
    Clear,
    Set(T),
}

impl<T> MemberChange<T> {
    /// The same change of the converted value.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> MemberChange<U> {
        match self {
            Self::Keep => MemberChange::Keep,
            Self::Clear => MemberChange::Clear,
            Self::Set(value) => MemberChange::Set(convert(value)),
        }
    }
}

/// Reads a present member. `#[serde(default)]` reads an absent one.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for MemberChange<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}

impl SessionChange {
    fn apply(self, row: &mut SessionRow) {
        match self.title {
            MemberChange::Keep => {}
            MemberChange::Clear => row.title.clear(),
            MemberChange::Set(title) => row.title = title,
        }
        let SessionSettings { metadata, limits, expire_after_s, mode } = &mut row.settings;
        match self.metadata {
            MemberChange::Keep => {}
            MemberChange::Clear => metadata.clear(),
            MemberChange::Set(patch) => merge(metadata, patch),
        }
        match self.limits {
            MemberChange::Keep => {}
            MemberChange::Clear => *limits = SessionLimits::default(),
            MemberChange::Set(patch) => {
                patch.max_iterations.apply(&mut limits.max_iterations);
                patch.max_tokens.apply(&mut limits.max_tokens);
                patch.max_cost_usd.apply(&mut limits.max_cost_usd);
                patch.deadline_s.apply(&mut limits.deadline_s);
            }
        }
        self.expire_after_s.apply(expire_after_s);
        self.mode.apply(mode);
    }
}

/// Applies a merge patch to an object.
fn merge(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, value) in patch {
        let before = target.remove(&name);
        if value.is_null() {
            continue;
        }
        let after = if let Value::Object(patch) = value {
            let mut object = if let Some(Value::Object(object)) = before { object } else { Map::new() };
            merge(&mut object, patch);
            Value::Object(object)
        } else {
            value
        };
        target.insert(name, after);
    }
}

impl AgentRunner {
    /// Creates a session without a run.
    pub async fn create_session(&self, new: NewSession) -> Result<SessionRow, RunnerError> {
        let agent = self.agent(&new.agent)?;
        new.settings.mode.as_ref().map_or(Ok(()), |mode| require_mode(&agent, mode))?;
        let id = new.id.unwrap_or_else(|| self.inner.ids.session_id());
        self.check_no_run_of_another_session(&new.tenant, &id).await?;
        if let Some(row) = self.session(&new.tenant, &id).await? {
            check_not_deleted(&row)?;
            return Err(RunnerError::SessionExists(id));
        }
        let now = self.inner.ports.clock.now();
        let row = SessionRow {
            id,
            tenant: new.tenant,
            agent: agent.name.clone(),
            principal: new.principal,
            head: None,
            version: 1,
            runs: 0,
            usage: Usage::default(),
            iterations: 0,
            runtime: None,
            title: new.title.unwrap_or_default(),
            settings: new.settings,
            created_by: new.by,
            authors: Default::default(),
            created_at: now,
            updated_at: now,
            deleted_at: None,
        };
        check_texts(&row)?;
        match self.inner.ports.store.runs.save_session(0, &row).await.map_err(DriveError::from)? {
            SessionSaved::Saved => Ok(row),
            SessionSaved::Changed(_) => Err(RunnerError::SessionExists(row.id)),
        }
    }

    /// Changes title and settings of a session, if it is at the version that the caller saw, where one is given.
    pub async fn change_session(
        &self,
        tenant: &Tenant,
        id: &SessionId,
        change: SessionChange,
        seen: Option<u64>,
    ) -> Result<SessionRow, RunnerError> {
        for _ in 0..WRITE_ATTEMPTS {
            let row = self.known_session(tenant, id).await?;
            check_version(&row, seen)?;
            let mut changed = row.clone();
            change.clone().apply(&mut changed);
            if changed == row {
                return Ok(row);
            }
            check_texts(&changed)?;
            if let Some(mode) = changed.settings.mode.as_ref().filter(|_| changed.settings.mode != row.settings.mode) {
                require_mode(&*self.agent(&row.agent)?, mode)?;
            }
            changed.updated_at = self.inner.ports.clock.now();
            let saved = self.inner.ports.store.runs.save_session(row.version, &changed).await;
            if saved.map_err(DriveError::from)? == SessionSaved::Saved {
                return Ok(SessionRow { version: row.version + 1, ..changed });
            }
        }
        Err(RunnerError::SessionChanging(id.clone()))
    }

    /// The session with this id, unless it was deleted.
    pub(super) async fn known_session(&self, tenant: &Tenant, id: &SessionId) -> Result<SessionRow, RunnerError> {
        let row = self.session(tenant, id).await?.ok_or_else(|| RunnerError::NoSuchSession(id.clone()))?;
        check_not_deleted(&row)?;
        Ok(row)
    }

    /// Refuses a deleted session. There may be no such session.
    pub async fn check_session_not_deleted(&self, tenant: &Tenant, id: &SessionId) -> Result<(), RunnerError> {
        self.session(tenant, id).await?.map_or(Ok(()), |row| check_not_deleted(&row))
    }

    /// Refuses the id of a run that belongs to another session: a session of that id would not have the run's messages.
    pub(super) async fn check_no_run_of_another_session(
        &self,
        tenant: &Tenant,
        id: &SessionId,
    ) -> Result<(), RunnerError> {
        let run = RunId::from(id.as_str());
        let filter = RunFilter {
            run: Some(run.clone()),
            tenant: Some(tenant.clone()),
            purged: true,
            limit: 1,
            ..RunFilter::default()
        };
        match self.list(&filter).await?.pop().filter(|row| row.session != *id) {
            Some(row) => Err(RunnerError::RunOfAnotherSession { run, session: row.session }),
            None => Ok(()),
        }
    }
}

/// Refuses a deleted session.
pub(super) fn check_not_deleted(row: &SessionRow) -> Result<(), RunnerError> {
    match row.deleted_at {
        Some(at) => Err(RunnerError::SessionDeleted { session: row.id.clone(), at }),
        None => Ok(()),
    }
}

/// Refuses a session at another version than the one that the caller saw, where one is given.
pub(super) fn check_version(row: &SessionRow, seen: Option<u64>) -> Result<(), RunnerError> {
    match seen.is_none_or(|seen| seen == row.version) {
        true => Ok(()),
        false => Err(RunnerError::SessionVersion(Box::new(row.clone()))),
    }
}

/// Refuses a title or metadata that break the rules.
fn check_texts(row: &SessionRow) -> Result<(), RunnerError> {
    let invalid = |member, why| Err(RunnerError::InvalidSession { member, why });
    if row.title.len() > MAX_TITLE_BYTES || row.title.chars().any(is_deceptive) {
        let rule = "no control characters, and no characters that are invisible or change the direction of text";
        return invalid("title", format!("a title has at most {MAX_TITLE_BYTES} bytes, {rule}"));
    }
    let size = Value::from(row.settings.metadata.clone()).to_string().len();
    match size > MAX_METADATA_BYTES {
        true => invalid("metadata", format!("metadata has at most {MAX_METADATA_BYTES} bytes as JSON, not {size}")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_changes_members_and_removes_those_that_are_null() {
        let object = |value: Value| serde_json::from_value::<Map<_, _>>(value).unwrap();
        let mut metadata = object(json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]}));
        merge(&mut metadata, object(json!({"a": null, "b": {"c": null, "f": {"g": null}}, "e": {"h": 4}, "i": 5})));
        assert_eq!(Value::from(metadata), json!({"b": {"d": 3, "f": {}}, "e": {"h": 4}, "i": 5}));
    }
}
