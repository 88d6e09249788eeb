//! Metrics of model turns. Each attempt is a separate operation: the pause before a retry belongs to no attempt.

use jiff::Timestamp;
use toolgate_core::chat::{Reply, Usage, Usd};
use toolgate_core::error::Failure;
use toolgate_core::id::ModelName;
use toolgate_core::run::ToolAccess;

use super::{Meter, seconds};
use crate::metrics::measurement::Measurement;
use crate::metrics::names::{self, Metric};
use crate::spans::IdentityOf;

/// The attempt at a model that is in progress or was made last.
#[derive(Clone, Debug)]
pub(super) struct ModelCall {
    pub(super) model: ModelName,
    pub(super) at: Timestamp,
}

impl Meter {
    pub(super) fn model_called(&self, model: &ModelName, attempt: u32, tool_access: ToolAccess) -> Vec<Measurement> {
        let mut measured = Vec::new();
        if tool_access == ToolAccess::BudgetExhausted && !self.has_no_budget {
            measured.push(self.one(Metric::BudgetExhausted));
        }
        let before = self.asked.as_ref().filter(|asked| attempt > 1 && asked.model != *model);
        if let Some(before) = before {
            let fallback = Measurement::one(Metric::ModelFallbacks).name(names::MODEL, model.as_str());
            measured.push(fallback.name(names::INSTEAD_OF, before.model.as_str()));
        }
        measured
    }

    pub(super) fn model_replied(&self, reply: &Reply, at: Timestamp, identity_of: &IdentityOf) -> Vec<Measurement> {
        let Some(asked) = &self.asked else { return Vec::new() };
        let operation = |metric| match &reply.model {
            Some(model) => operation(metric, asked, identity_of).name(names::RESPONSE_MODEL, model),
            None => operation(metric, asked, identity_of),
        };
        let mut measured = vec![
            Measurement { value: seconds(asked.at, at), ..operation(Metric::ModelDuration) },
            attempt(asked, "ok"),
        ];
        if let Some(first) = reply.first_token_ms {
            measured.push(Measurement { value: first as f64 / 1000.0, ..operation(Metric::TimeToFirstChunk) });
        }
        measured.extend(self.usage(asked, &reply.usage, operation));
        measured
    }

    pub(super) fn model_failed(
        &self,
        error: &Failure,
        usage: &Usage,
        at: Timestamp,
        identity_of: &IdentityOf,
    ) -> Vec<Measurement> {
        let Some(asked) = &self.asked else { return Vec::new() };
        let code = error.code.as_str();
        let operation = |metric| operation(metric, asked, identity_of);
        let took = Measurement { value: seconds(asked.at, at), ..operation(Metric::ModelDuration) };
        let mut measured = vec![took.fixed(names::ERROR_TYPE, code), attempt(asked, code)];
        measured.extend(self.usage(asked, usage, operation));
        measured
    }

    /// Token counts and cost. A count that the provider does not report is left out instead of recorded as zero.
    fn usage(
        &self,
        asked: &ModelCall,
        usage: &Usage,
        operation: impl Fn(Metric) -> Measurement,
    ) -> impl Iterator<Item = Measurement> {
        let model = |metric| self.one(metric).name(names::MODEL, asked.model.as_str());
        let tokens = [
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cache_read", usage.cache_read_tokens),
            ("cache_write", usage.cache_write_tokens),
            ("reasoning", usage.reasoning_tokens),
        ];
        let mut measured = Vec::new();
        for (kind, count) in tokens {
            let Some(count) = count else { continue };
            let typed = |of: Measurement| Measurement { value: count as f64, ..of }.fixed(names::TOKEN_TYPE, kind);
            if matches!(kind, "input" | "output") {
                measured.push(typed(operation(Metric::TokenUsage)));
            }
            measured.push(typed(model(Metric::Tokens)));
        }
        if let Some(cost) = usage.cost_usd.filter(|cost| *cost > Usd::ZERO) {
            measured.push(Measurement { value: cost.dollars(), ..model(Metric::Cost) });
        }
        measured.into_iter()
    }
}

/// The GenAI attributes of the model that was called.
fn operation(metric: Metric, asked: &ModelCall, identity_of: &IdentityOf) -> Measurement {
    let measurement = Measurement::one(metric).fixed(names::OPERATION, "chat");
    match identity_of(&asked.model) {
        Some(identity) => {
            measurement.name(names::PROVIDER, &identity.provider).name(names::REQUEST_MODEL, &identity.model)
        }
        None => measurement.fixed(names::PROVIDER, "_other").name(names::REQUEST_MODEL, asked.model.as_str()),
    }
}

fn attempt(asked: &ModelCall, outcome: &'static str) -> Measurement {
    Measurement::one(Metric::ModelAttempts).name(names::MODEL, asked.model.as_str()).fixed(names::OUTCOME, outcome)
}
