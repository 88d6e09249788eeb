//! Limits of rules: counts the use of a call in the store before the call is allowed (decision 0052).

use serde_json::json;
use toolgate_core::id::{CallId, RunId};
use toolgate_core::json;
use toolgate_core::policy::{Judgement, Verdict};
use toolgate_core::run::Run;
use toolgate_ports::{CountAnswer, CountedUse, RuleCounter};

use super::Driver;

impl Driver<'_> {
    /// The judgement of a call once the use of its rule's limit is counted. Beyond the limit, or where nothing can be
    /// counted, the call requires approval. A call that is checked again is counted once.
    pub(super) async fn within_limit(&self, id: &RunId, run: &Run, call: &CallId, judgement: Judgement) -> Judgement {
        let allows = judgement.verdict == Verdict::Allow;
        let (Some(used), Some(rule)) = (judgement.limit.clone().filter(|_| allows), judgement.rule.clone()) else {
            return judgement;
        };
        let Some(counters) = &self.ports.rule_counters else { return judgement.beyond_limit(used.uncounted(&rule)) };
        let (started, now) = (run.started(), self.ports.clock.now());
        let counter = RuleCounter {
            tenant: started.tenant.clone(),
            policy: self.agent.policy_of(&started.spec).name.clone(),
            rule: rule.clone(),
            window: used.limit.per.name_at(now),
        };
        let counted = CountedUse {
            counter,
            id: json::hash(&json!({"run": id, "call": call})),
            amount: used.amount,
            max: used.limit.max,
            expired: used.limit.per.oldest_kept(now),
        };
        match counters.count(counted).await {
            Ok(CountAnswer::Counted) => judgement,
            Ok(CountAnswer::Exceeds(others)) => judgement.beyond_limit(used.exceeded(&rule, others)),
            Err(error) => {
                tracing::warn!(%rule, %error, "failed to count use of rule; the call requires approval");
                judgement.beyond_limit(used.uncounted(&rule))
            }
        }
    }
}
