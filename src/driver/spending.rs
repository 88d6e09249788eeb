//! Admission of model calls: their worst case against the limits of the run, and the governor.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;
use toolgate_core::chat::Usage;
use toolgate_core::id::ModelName;
use toolgate_core::run::{CallEstimate, Limit};
use toolgate_ports::PlannedCall;

use super::{Driver, Journal};

/// How long a governor may take for a verdict.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(10);

/// A model call that is not made.
pub(super) struct Refusal {
    pub(super) limit: Limit,
    pub(super) reason: String,
    pub(super) estimate: CallEstimate,
}

impl Driver<'_> {
    /// The refusal of the next call of a model, for a turn or for a summary, if it is refused.
    pub(super) async fn refusal(&self, journal: &Journal, model: &ModelName, attempt: u32) -> Option<Refusal> {
        let run = journal.run();
        if self.ports.governor.is_none() && !run.estimates_calls() {
            return None;
        }
        let estimate = self.estimate(journal, model);
        let (limit, reason) = match run.limit_exceeded_by(&estimate) {
            Some(limit) => (limit, format!("the worst case of the next model call exceeds `{}`", limit.name())),
            None => (Limit::Governor, self.governor_refusal(journal, model, attempt, estimate).await?),
        };
        Some(Refusal { limit, reason, estimate })
    }

    /// The governor's reason to refuse a call.
    async fn governor_refusal(
        &self,
        journal: &Journal,
        model: &ModelName,
        attempt: u32,
        estimate: CallEstimate,
    ) -> Option<String> {
        let governor = self.ports.governor.as_ref()?;
        let run = journal.run();
        let started = run.started();
        let call = PlannedCall {
            run: journal.id(),
            tenant: &started.tenant,
            session: &started.session,
            model,
            attempt,
            budget: run.budget(),
            estimate,
        };
        match timeout(VERDICT_TIMEOUT, governor.admit(call)).await {
            Ok(verdict) => verdict.err(),
            Err(_) => Some(format!("the governor gave no verdict within {} s", VERDICT_TIMEOUT.as_secs())),
        }
    }

    /// The worst case of the next call of a model.
    fn estimate(&self, journal: &Journal, name: &ModelName) -> CallEstimate {
        let model = self.model(name);
        let input_tokens = journal.run().size();
        let output_tokens = model.and_then(|model| model.identity().settings.get("max_tokens")).and_then(Value::as_u64);
        let usage = Usage {
            input_tokens: Some(input_tokens),
            output_tokens: Some(output_tokens.unwrap_or(0)),
            ..Usage::default()
        };
        let cost_usd = model.and_then(|model| model.price()).and_then(|price| price.cost(&usage, 0));
        CallEstimate { input_tokens, output_tokens, cost_usd }
    }
}
