//! Session lookup: by id, by a unique prefix of it, or as the one that was used last.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use clap::Args;

use super::error::CliError;
use super::text::list;
use crate::app::App;
use crate::core::id::{AgentName, SessionId, Tenant};
use crate::ports::{RunFilter, SessionFilter};

/// The number of candidates that an error lists.
const NAMED: usize = 5;

/// The tenant of a session. Session ids are unique within a tenant.
#[derive(Args, Clone, Debug)]
pub(super) struct TenantFlag {
    /// The tenant [default: the one tenant of a gateway without others]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

impl TenantFlag {
    pub(super) fn tenant(&self) -> Tenant {
        self.tenant.as_deref().map_or_else(Tenant::default, Tenant::from)
    }
}

/// Finds the session.
pub(super) async fn find(app: &App, tenant: &Tenant, named: &str) -> Result<SessionId, CliError> {
    if named.is_empty() {
        return Err(CliError::usage("which session? the name is empty")
            .with_remedy("give an id, a unique beginning of one, or `last`"));
    }
    let whole = SessionId::from(named);
    if app.runner.session(tenant, &whole).await?.is_some() {
        return Ok(whole);
    }
    if named == "last" {
        return last(app, tenant).await;
    }
    choose(named, &all(app, tenant).await?)
}

/// The sessions of the agent, the one that was used last first: the newest ones, and those of its newest runs.
pub(super) async fn last_used(
    app: &App,
    tenant: &Tenant,
    agent: Option<&AgentName>,
) -> Result<Vec<SessionId>, CliError> {
    let filter = RunFilter { tenant: Some(tenant.clone()), agent: agent.cloned(), ..RunFilter::default() };
    let runs = app.runner.list(&filter).await?.into_iter().map(|row| (row.updated_at, row.session));
    let filter = SessionFilter { tenant: tenant.clone(), agent: agent.cloned(), ..SessionFilter::default() };
    let sessions = app.runner.sessions(&filter).await?.into_iter().map(|row| (row.last_used_at(), row.id));
    let mut used: Vec<_> = runs.chain(sessions).collect();
    used.sort_by_key(|(at, _)| Reverse(*at));
    let mut found = BTreeSet::new();
    Ok(used.into_iter().map(|(_, session)| session).filter(|session| found.insert(session.clone())).collect())
}

/// The session that was used last.
async fn last(app: &App, tenant: &Tenant) -> Result<SessionId, CliError> {
    let newest = last_used(app, tenant, None).await?.into_iter().next();
    newest.ok_or_else(|| CliError::not_found("there are no runs yet").with_remedy("toolgate run \"…\" starts one"))
}

async fn all(app: &App, tenant: &Tenant) -> Result<Vec<SessionId>, CliError> {
    let mut filter = SessionFilter { tenant: tenant.clone(), ..SessionFilter::default() };
    let mut found = Vec::new();
    loop {
        let page = app.runner.sessions(&filter).await?;
        let Some(last) = page.last() else { return Ok(found) };
        filter.before = Some((last.created_at, last.id.clone()));
        found.extend(page.into_iter().map(|row| row.id));
    }
}

fn choose(named: &str, sessions: &[SessionId]) -> Result<SessionId, CliError> {
    let fits = |id: &&SessionId| id.as_str().starts_with(named);
    let matching: Vec<&SessionId> = sessions.iter().filter(fits).collect();
    match matching.as_slice() {
        [only] => Ok((*only).clone()),
        [] => {
            let newest = list(sessions.iter().take(NAMED));
            let message = format!("there is no session `{named}`; the newest are: {newest}");
            Err(CliError::not_found(message)
                .with_remedy("`toolgate sessions list` lists all; check --config and --tenant"))
        }
        several => {
            let some = list(several.iter().take(NAMED));
            let message = format!("`{named}` is the beginning of {} sessions: {some}", several.len());
            Err(CliError::not_found(message).with_remedy("give more of the id"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unique_beginning_is_enough_and_an_ambiguous_one_lists_candidates() {
        let sessions: Vec<SessionId> = ["chat-ada", "chat-bob", "desk"].into_iter().map(SessionId::from).collect();
        assert_eq!(choose("d", &sessions).unwrap().as_str(), "desk");
        let ambiguous = choose("chat", &sessions).unwrap_err().to_string();
        assert_eq!(ambiguous, "`chat` is the beginning of 2 sessions: chat-ada, chat-bob");
        let unknown = choose("shop", &sessions).unwrap_err().to_string();
        assert_eq!(unknown, "there is no session `shop`; the newest are: chat-ada, chat-bob, desk");
    }
}
