//! Counters of rules in memory.

use async_trait::async_trait;
use toolgate_core::policy::LimitAmount;
use toolgate_ports::{CountAnswer, CountedUse, RuleCounter, RuleCounters, StoreError};

use super::MemoryStore;

#[async_trait]
impl RuleCounters for MemoryStore {
    async fn count(&self, used: CountedUse) -> Result<CountAnswer, StoreError> {
        let CountedUse { counter, id, amount, max, expired } = used;
        let counters = &mut self.contents().counters;
        // The windows of a rule are neighbours in the map.
        let in_window = |window: String| RuleCounter { window, ..counter.clone() };
        let range = in_window(String::new())..in_window(expired);
        let expired: Vec<RuleCounter> = counters.range(range).map(|(other, _)| other.clone()).collect();
        for other in expired {
            counters.remove(&other);
        }
        let uses = counters.entry(counter).or_default();
        let others = uses.iter().filter(|(other, _)| **other != id);
        let others = others.fold(LimitAmount::default(), |sum, (_, amount)| sum.plus(*amount));
        let own = uses.get(&id).map_or(amount, |before| amount.max(*before));
        if others.plus(own) > max {
            return Ok(CountAnswer::Exceeds(others));
        }
        uses.insert(id, own);
        Ok(CountAnswer::Counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(rule: &str, window: &str, id: &str, expired: &str) -> CountedUse {
        let (policy, rule, window) = ("desk".to_owned(), rule.to_owned(), window.to_owned());
        let counter = RuleCounter { tenant: "acme".into(), policy, rule, window };
        let (amount, max) = (LimitAmount::ONE, LimitAmount::ONE);
        CountedUse { counter, id: id.to_owned(), amount, max, expired: expired.to_owned() }
    }

    #[tokio::test]
    async fn only_expired_windows_of_the_same_rule_are_forgotten() {
        let store = MemoryStore::default();
        for (rule, window) in [("a", "2026-11-28"), ("b", "2026-11-25"), ("b", "2026-11-26"), ("c", "2026-11-25")] {
            assert_eq!(
                store.count(used(rule, window, "1", "")).await.unwrap(),
                CountAnswer::Counted,
                "{rule} {window}"
            );
        }
        store.count(used("b", "2026-11-28", "1", "2026-11-26")).await.unwrap();
        let full = CountAnswer::Exceeds(LimitAmount::ONE);
        for (rule, window, answer) in [
            ("a", "2026-11-28", full),
            ("b", "2026-11-25", CountAnswer::Counted),
            ("b", "2026-11-26", full),
            ("b", "2026-11-28", full),
            ("c", "2026-11-25", full),
        ] {
            assert_eq!(store.count(used(rule, window, "2", "")).await.unwrap(), answer, "{rule} {window}");
        }
    }
}
