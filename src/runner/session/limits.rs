//! Limits of a session: the budget of all of its runs together.
//!
//! A session has one live run, so the limits of that run are the reservation: a run that begins gets at most what the
//! runs before it left. Its index row has what it really used.

use jiff::Timestamp;
use toolgate_core::chat::{Usage, Usd};
use toolgate_core::run::{Limits, Run, Started, TighterLimits};
use toolgate_ports::{SessionLimits, SessionRow, SessionSettings};

use crate::{AgentRunner, RunnerError};

/// Usage of some runs of a session.
pub(super) struct Spent {
    usage: Usage,
    iterations: u64,
}

impl Spent {
    /// Of all runs, before the next one begins.
    pub(super) fn by_all(row: &SessionRow) -> Self {
        Self { usage: row.total_usage(), iterations: row.total_iterations() }
    }

    /// Of the runs before the head, while the head is live.
    pub(super) fn before_head(row: &SessionRow) -> Self {
        Self { usage: row.usage, iterations: row.iterations }
    }
}

impl AgentRunner {
    /// The limits of a copy of a run, within what the runs of the source's session left, and the settings of a session of
    /// its own. A fork is no way around the limits, so its session gets what is left of them.
    pub(crate) async fn within_session_of(
        &self,
        source: &Started,
        limits: &Limits,
    ) -> Result<(Limits, SessionSettings), RunnerError> {
        let Some(row) = self.session(&source.tenant, &source.session).await? else {
            return Ok((limits.clone(), SessionSettings::default()));
        };
        let (spent, now) = (Spent::by_all(&row), self.inner.ports.clock.now());
        let own = within_session(limits, &row, &spent, now)?;
        let limits = left(&row, &spent, now)?;
        Ok((own, SessionSettings { limits, metadata: Default::default(), ..row.settings }))
    }

    /// Refuses limits of a live run that are wider than what the other runs of its session left.
    pub(crate) async fn check_raised_limits(
        &self,
        run: &Run,
        began: Timestamp,
        raised: &TighterLimits,
    ) -> Result<(), RunnerError> {
        // A session limit that was lowered since holds from the session's next run on.
        if *raised == TighterLimits::default() {
            return Ok(());
        }
        let started = run.started();
        let Some(row) = self.session(&started.tenant, &started.session).await? else { return Ok(()) };
        let left = left(&row, &Spent::before_head(&row), began)?;
        // Only the session's limits are checked here.
        let unlimited = Limits {
            max_tool_interactions: u32::MAX,
            max_iterations: u32::MAX,
            max_corrections: u32::MAX,
            max_attempts: u32::MAX,
            max_result_bytes: u64::MAX,
            ..Limits::default()
        };
        let wider = |limit| RunnerError::WiderThanSession { session: row.id.clone(), limit };
        unlimited.with(&left.into()).tightened(raised).map(drop).map_err(wider)
    }
}

/// The limits of a run, within what other runs of the session left.
pub(super) fn within_session(
    limits: &Limits,
    row: &SessionRow,
    spent: &Spent,
    now: Timestamp,
) -> Result<Limits, RunnerError> {
    // The run's own hard limits enforce those of the session, which the core does not know (decision 0044).
    Ok(limits.with(&left(row, spent, now)?.into()).within(limits))
}

/// What is left of the limits of a session; an error if one of them is used up.
pub(super) fn left(row: &SessionRow, spent: &Spent, now: Timestamp) -> Result<SessionLimits, RunnerError> {
    let SessionLimits { max_iterations, max_tokens, max_cost_usd, deadline_s } = row.settings.limits;
    let left_of = |limit, max: Option<u64>, used: u64| match max {
        Some(max) if max <= used => Err(used_up(row, limit, &max)),
        max => Ok(max.map(|max| max - used)),
    };
    let iterations = left_of("max_iterations", max_iterations.map(u64::from), spent.iterations)?;
    let tokens = left_of("max_tokens", max_tokens, spent.usage.total_tokens().unwrap_or(0))?;
    let age = u64::try_from(now.duration_since(row.created_at).as_secs()).unwrap_or(0);
    let deadline_s = left_of("deadline_s", deadline_s, age)?;
    let cost = spent.usage.cost_usd.unwrap_or_default();
    if let Some(max) = max_cost_usd.filter(|max| *max <= cost) {
        return Err(used_up(row, "max_cost_usd", &max));
    }
    Ok(SessionLimits {
        max_iterations: iterations.map(|left| u32::try_from(left).unwrap_or(u32::MAX)),
        max_tokens: tokens,
        max_cost_usd: max_cost_usd.map(|max: Usd| max - cost),
        deadline_s,
    })
}

fn used_up(row: &SessionRow, limit: &'static str, max: &dyn std::fmt::Display) -> RunnerError {
    RunnerError::SessionLimit { session: row.id.clone(), limit, max: max.to_string() }
}
