//! Limits of rules: counts the uses of a call in the store before the call is allowed (decision 0052).

use serde_json::json;
use toolgate_core::id::{CallId, RunId};
use toolgate_core::json;
use toolgate_core::policy::{Judgement, LimitUse, Verdict};
use toolgate_core::run::Run;
use toolgate_ports::{CountAnswer, CountedUse, RuleCounter, RuleCounters};

use super::Driver;

impl Driver<'_> {
    /// The judgement of a call once its uses of the limits of all rules that allow it are counted. Beyond one of them, or where
    /// nothing can be counted, the call requires approval. A call that is checked again is counted once.
    pub(super) async fn within_limit(&self, id: &RunId, run: &Run, call: &CallId, judgement: Judgement) -> Judgement {
        let Some(first) = judgement.limits.first().filter(|_| judgement.verdict == Verdict::Allow) else {
            return judgement;
        };
        let Some(counters) = &self.ports.rule_counters else {
            let reason = first.uncounted();
            return judgement.beyond_limit(reason);
        };
        let (started, now) = (run.started(), self.ports.clock.now());
        let policy = &self.agent.policy_of(&started.spec).name;
        let use_id = json::hash(&json!({"run": id, "call": call}));
        let counted = |used: &LimitUse| CountedUse {
            counter: RuleCounter {
                tenant: started.tenant.clone(),
                policy: policy.clone(),
                rule: used.rule.clone(),
                window: used.limit.per.name_at(now),
            },
            id: use_id.clone(),
            amount: used.amount,
            max: used.limit.max,
            expired: used.limit.per.oldest_kept(now),
        };
        match refusal(counters.as_ref(), &judgement.limits, counted).await {
            None => judgement,
            Some(reason) => judgement.beyond_limit(reason),
        }
    }
}

/// Counts uses until one is refused, and returns why it is. A use that was counted before the refused one stays counted, so
/// the shortest windows are first: the next window forgets it soonest.
async fn refusal(
    counters: &dyn RuleCounters,
    uses: &[LimitUse],
    counted: impl Fn(&LimitUse) -> CountedUse,
) -> Option<String> {
    let mut uses: Vec<&LimitUse> = uses.iter().collect();
    uses.sort_by_key(|used| used.limit.per);
    for used in uses {
        match counters.count(counted(used)).await {
            Ok(CountAnswer::Counted) => {}
            Ok(CountAnswer::Exceeds(others)) => return Some(used.exceeded(others)),
            Err(error) => {
                tracing::warn!(rule = %used.rule, %error, "failed to count use of rule; the call requires approval");
                return Some(used.uncounted());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use toolgate_core::policy::{LimitAmount, LimitWindow, RuleLimit};
    use toolgate_ports::StoreError;

    use super::*;

    /// Counters of which one is full. Records the rules that it was asked about.
    struct Counters {
        full: &'static str,
        asked: Mutex<Vec<String>>,
    }

    #[async_trait]
    impl RuleCounters for Counters {
        async fn count(&self, used: CountedUse) -> Result<CountAnswer, StoreError> {
            let is_full = used.counter.rule == self.full;
            self.asked.lock().unwrap().push(used.counter.rule);
            Ok(if is_full { CountAnswer::Exceeds(used.max) } else { CountAnswer::Counted })
        }
    }

    fn used(rule: &str, per: LimitWindow) -> LimitUse {
        let limit = RuleLimit { per, max: LimitAmount::ONE, sum: Vec::new() };
        LimitUse { rule: rule.to_owned(), limit, amount: LimitAmount::ONE }
    }

    fn counted(used: &LimitUse) -> CountedUse {
        let counter = RuleCounter {
            tenant: "acme".into(),
            policy: "desk".to_owned(),
            rule: used.rule.clone(),
            window: String::new(),
        };
        CountedUse { counter, id: String::new(), amount: used.amount, max: used.limit.max, expired: String::new() }
    }

    #[tokio::test]
    async fn a_call_is_allowed_if_every_limit_has_room() {
        let uses = [used("daily", LimitWindow::Day), used("hourly", LimitWindow::Hour)];
        for (full, asked, reason) in [
            ("", &["hourly", "daily"][..], None),
            ("daily", &["hourly", "daily"], Some("rule `daily` allows 1 call a day, and has allowed 1")),
            ("hourly", &["hourly"], Some("rule `hourly` allows 1 call an hour, and has allowed 1")),
        ] {
            let counters = Counters { full, asked: Mutex::default() };
            assert_eq!(refusal(&counters, &uses, counted).await.as_deref(), reason);
            assert_eq!(*counters.asked.lock().unwrap(), asked);
        }
    }
}
