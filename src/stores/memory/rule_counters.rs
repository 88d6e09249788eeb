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
        let is_same = |other: &RuleCounter| RuleCounter { window: counter.window.clone(), ..other.clone() } == counter;
        counters.retain(|other, _| other.window >= expired || !is_same(other));
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
