//! Traffic of a server besides its answers, counted by method. The error of a request without an answer names a flood.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

use super::measure::shortened;

/// The number of messages within one request that count as a flood.
const FLOOD: u64 = 100;
/// How many methods are counted separately. A server may use a new method for each message.
const MAX_METHODS: usize = 32;
/// The longest message that is counted, in bytes. Floods consist of short messages, and a counted message is parsed
/// twice.
const LOOKED_AT: usize = 16 * 1024;
const OTHERS: &str = "others";

/// The counters of one connection. Clones share the same counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic(Arc<Mutex<Counts>>);

/// The number of messages of each method.
pub(super) type Counts = BTreeMap<String, u64>;

#[derive(Deserialize)]
struct Head {
    method: Option<String>,
}

impl Traffic {
    /// Counts a message, which may be an answer.
    pub(super) fn record(&self, message: &[u8]) {
        if message.len() > LOOKED_AT {
            return;
        }
        if let Ok(Head { method: Some(method) }) = serde_json::from_slice(message) {
            let mut counts = self.counts();
            let is_known = counts.len() < MAX_METHODS || counts.contains_key(&method);
            *counts.entry(if is_known { method } else { OTHERS.to_owned() }).or_default() += 1;
        }
    }

    /// The current counters.
    pub(super) fn so_far(&self) -> Counts {
        self.counts().clone()
    }

    /// The flood since then, if there was one, for a sentence "it gave no answer; ...".
    pub(super) fn flood_since(&self, before: &Counts) -> Option<String> {
        let counts = self.counts();
        let since = |(method, count): (&String, &u64)| count - before.get(method).copied().unwrap_or_default();
        let total: u64 = counts.iter().map(since).sum();
        let most = counts.iter().max_by_key(|row| since(*row)).filter(|_| total >= FLOOD)?;
        Some(format!("meanwhile it sent {total} other messages, {} of them `{}`", since(most), shortened(most.0)))
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(traffic: &Traffic, method: &str, times: u64) {
        let message = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        (0..times).for_each(|_| traffic.record(message.as_bytes()));
    }

    #[test]
    fn a_flood_is_named_by_its_most_frequent_method() {
        let traffic = Traffic::default();
        hear(&traffic, "ping", 5000);
        let before = traffic.so_far();
        hear(&traffic, "ping", 10);
        hear(&traffic, "notifications/message", FLOOD - 11);
        traffic.record(br#"{"jsonrpc":"2.0","id":1,"result":{"method":"ping"}}"#);
        assert_eq!(traffic.flood_since(&before), None, "fewer messages are not a flood");
        hear(&traffic, "ping", 1);
        let description = "meanwhile it sent 100 other messages, 89 of them `notifications/message`";
        assert_eq!(traffic.flood_since(&before).as_deref(), Some(description));
    }

    #[test]
    fn methods_without_number_are_counted_together() {
        let traffic = Traffic::default();
        (0..2000).for_each(|number| hear(&traffic, &format!("m{number}"), 1));
        assert_eq!(traffic.so_far().len(), MAX_METHODS + 1);
        let flood = traffic.flood_since(&Counts::new()).expect("a flood");
        assert!(flood.ends_with("`others`"), "{flood}");
    }
}
