//! Tool list cache: the last complete list of a server, or the first part of one while there is none. It survives the
//! server's absence, marked with the reason, so that a run keeps its tools while a process restarts; and it saves
//! repeated requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use toolgate_core::id::ServerId;
use toolgate_core::tool::{LeftOut, McpTool, ServerTools};

use super::backoff::{delay_after, jitter};
use crate::listing::Listing;

/// How long a list counts as current when the server announces no changes. Runs that begin together share one request.
pub(super) const CURRENT: Duration = Duration::from_secs(1);
/// The upper limit for the lifetime of a list, whatever the server states.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The cached state of a server's tools.
#[derive(Debug, Default)]
pub(super) struct ToolListCache(Mutex<CachedTools>);

#[derive(Debug, Default)]
struct CachedTools {
    good: Option<CachedList>,
    /// Why the last request failed, as a whole sentence.
    failure: Option<String>,
    /// The time of the last request, successful or not.
    requested_at: Option<Instant>,
    /// Consecutive failed lists, across connections.
    failed_lists: u32,
    /// The time of the next retry.
    retry: Option<Instant>,
    /// Why a request in flight is overdue, as a whole sentence.
    overdue: Option<String>,
    /// When the last list failed or became overdue.
    list_failed_at: Option<Timestamp>,
    generation: u64,
}

#[derive(Debug)]
struct CachedList {
    listing: Listing,
    current: Freshness,
    /// Why it is only the first part of a list, as a whole sentence.
    incomplete: Option<String>,
}

/// How long a list stays current.
#[derive(Clone, Copy, Debug)]
enum Freshness {
    /// Until the server announces a change, as it promised.
    UntilChanged,
    /// Until the time that the server set (`ttlMs`). Then the list has to be requested again.
    Until(Instant),
    /// Until a time that toolgate assumes, because the server promised nothing.
    Assumed(Instant),
}

impl ToolListCache {
    /// Stores a list that was requested at that time.
    pub(super) fn keep(&self, server: &ServerId, mut listing: Listing, requested_at: Instant, is_announced: bool) {
        let mut cached = self.lock();
        let current = match listing.time_to_live {
            Some(time_to_live) => Freshness::Until(requested_at + time_to_live.clamp(CURRENT, LONGEST)),
            None if is_announced => Freshness::UntilChanged,
            None => Freshness::Assumed(requested_at + CURRENT),
        };
        let outdated = cached.is_outdated();
        let is_other = cached.good.as_ref().is_none_or(|good| good.listing != listing);
        if let (true, Some(good)) = (is_other, &cached.good) {
            let difference = Difference::between(&good.listing.tools, &listing.tools);
            tracing::info!(%server, ?difference, "tools of an MCP server changed");
        }
        // An unchanged list stays the same allocation, so that runs do not compare its tools.
        if let Some(good) = cached.good.as_ref().filter(|good| good.listing.tools == listing.tools) {
            listing.tools = good.listing.tools.clone();
        }
        // The expiry of the old list already counted as one generation. A difference found now needs its own.
        cached.generation += u64::from(outdated) + u64::from(is_other || cached.failure.is_some());
        cached.good = Some(CachedList { listing, current, incomplete: None });
        cached.failure = None;
        cached.requested_at = Some(requested_at);
        (cached.failed_lists, cached.retry, cached.overdue) = (0, None, None);
    }

    /// Records that a list was not completed. It is retried like a failed one. Its first part is used only as long as
    /// no other list is known: a part that differs each time would change the tools of a run with the server's speed.
    pub(super) fn keep_part(&self, listing: Listing, reason: String, requested_at: Instant) {
        let reason = {
            let mut cached = self.lock();
            match &cached.good {
                Some(good) => good.incomplete.clone().unwrap_or(reason),
                None => {
                    let incomplete = Some(reason.clone());
                    cached.good = Some(CachedList { listing, current: Freshness::Assumed(requested_at), incomplete });
                    cached.generation += 1;
                    reason
                }
            }
        };
        self.list_failed(reason, requested_at);
    }

    /// Records that the server is away, so that the last request no longer counts.
    pub(super) fn away(&self, reason: String) {
        let mut cached = self.lock();
        cached.record_failure(reason);
        (cached.requested_at, cached.overdue) = (None, None);
    }

    /// Records that the request at that time failed. It is retried automatically, with growing pauses.
    pub(super) fn list_failed(&self, reason: String, requested_at: Instant) {
        let mut cached = self.lock();
        cached.record_failure(reason);
        (cached.requested_at, cached.overdue) = (Some(requested_at), None);
        cached.list_failed_at = Some(Timestamp::now());
        cached.failed_lists = cached.failed_lists.saturating_add(1);
        cached.retry = Some(Instant::now() + delay_after(cached.failed_lists, jitter()));
    }

    /// Records that a request in flight exceeded the waiting time.
    pub(super) fn mark_overdue(&self, reason: String) {
        let mut cached = self.lock();
        cached.overdue = Some(reason);
        cached.list_failed_at = Some(Timestamp::now());
    }

    /// Why the last list failed, and since when, as a whole sentence.
    pub(super) fn list_failure(&self) -> Option<(String, Timestamp)> {
        let cached = self.lock();
        cached.unlisted().zip(cached.list_failed_at)
    }

    /// Why another wait for the list is useless: a request has already waited for it. A whole sentence.
    pub(super) fn not_worth_waiting(&self) -> Option<String> {
        self.lock().unlisted()
    }

    /// When to retry a failed list.
    pub(super) fn retry(&self) -> Option<Instant> {
        self.lock().retry
    }

    /// Whether there is a list to fall back on.
    pub(super) fn has_any(&self) -> bool {
        self.lock().good.is_some()
    }

    /// Whether the list is current, so that a request is unnecessary.
    pub(super) fn is_current(&self) -> bool {
        let cached = self.lock();
        let is_current = |good: &CachedList| match good.current {
            Freshness::UntilChanged => true,
            Freshness::Until(time) | Freshness::Assumed(time) => Instant::now() < time,
        };
        cached.failure.is_none() && cached.good.as_ref().is_some_and(is_current)
    }

    /// Whether a request was made at that time or later.
    pub(super) fn was_requested_since(&self, time: Instant) -> bool {
        self.lock().requested_at.is_some_and(|requested_at| requested_at >= time)
    }

    /// A number that changes when [`offer`](Self::offer) may return something else.
    pub(super) fn generation(&self) -> u64 {
        let cached = self.lock();
        cached.generation + u64::from(cached.is_outdated())
    }

    /// The server's tools, as far as they are known. `failure` is the error that the caller met just now.
    pub(super) fn offer(&self, server: &ServerId, trusted: bool, failure: Option<String>) -> ServerTools {
        let cached = self.lock();
        let failure = failure.or_else(|| cached.failure.clone());
        let left_out = |(tool, reason)| LeftOut { server: Some(server.clone()), tool, reason };
        let (tools, missing, stale) = match (&cached.good, failure) {
            (Some(good), failure) => {
                (good.listing.tools.clone(), good.listing.left_out.clone(), failure.filter(|why| good.is_stale(why)))
            }
            (None, Some(failure)) => (Arc::default(), vec![(None, failure)], None),
            (None, None) => {
                (Arc::default(), vec![(None, format!("the MCP server `{server}` was not asked yet"))], None)
            }
        };
        let left_out = missing.into_iter().map(left_out).collect();
        ServerTools { server: server.clone(), trusted, endpoint: None, tools, left_out, stale, authorization: None }
    }

    /// Why the last request failed.
    pub(super) fn complaint(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    /// The number of tools, and why they are stale.
    pub(super) fn summary(&self) -> (Option<usize>, Option<String>) {
        let cached = self.lock();
        let Some(good) = &cached.good else { return (None, None) };
        (Some(good.listing.tools.len()), cached.failure.clone().filter(|why| good.is_stale(why)))
    }

    fn lock(&self) -> MutexGuard<'_, CachedTools> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedList {
    /// Whether an error makes the tools stale. That they are only a part is reported among the tools left out.
    fn is_stale(&self, why: &str) -> bool {
        self.incomplete.as_deref() != Some(why)
    }
}

impl CachedTools {
    /// Why the last list failed.
    fn unlisted(&self) -> Option<String> {
        self.overdue.clone().or_else(|| self.failure.clone().filter(|_| self.failed_lists > 0))
    }

    /// Records an error. A different wording does not change the generation.
    fn record_failure(&mut self, reason: String) {
        self.generation += u64::from(self.failure.is_none());
        self.failure = Some(reason);
    }

    /// Whether the lifetime that the server set has expired.
    fn is_outdated(&self) -> bool {
        match self.good.as_ref().map(|good| good.current) {
            Some(Freshness::Until(time)) => time <= Instant::now(),
            Some(Freshness::UntilChanged | Freshness::Assumed(_)) | None => false,
        }
    }
}

/// The difference between two lists, by name.
#[derive(Debug, PartialEq, Eq)]
struct Difference<'a> {
    added: Vec<&'a str>,
    removed: Vec<&'a str>,
    changed: Vec<&'a str>,
}

impl<'a> Difference<'a> {
    fn between(before: &'a [McpTool], after: &'a [McpTool]) -> Self {
        let by_name = |tools: &'a [McpTool]| -> BTreeMap<&'a str, &'a McpTool> {
            tools.iter().map(|tool| (tool.name.as_str(), tool)).collect()
        };
        let (before, after) = (by_name(before), by_name(after));
        let without = |these: &BTreeMap<&'a str, &McpTool>, those: &BTreeMap<&'a str, &McpTool>| {
            these.keys().filter(|name| !those.contains_key(*name)).copied().collect()
        };
        let differs = |(name, tool): (&&'a str, &&McpTool)| {
            before.get(name).is_some_and(|earlier| earlier != tool).then_some(*name)
        };
        Self {
            added: without(&after, &before),
            removed: without(&before, &after),
            changed: after.iter().filter_map(differs).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use toolgate_core::tool::Annotations;

    fn tool(name: &str, description: &str) -> McpTool {
        McpTool {
            name: name.into(),
            description: description.into(),
            input_schema: json!({}),
            output_schema: None,
            annotations: Annotations::default(),
            pinned: None,
        }
    }

    fn listing(names: &[&str], time_to_live: Option<Duration>) -> Listing {
        Listing {
            tools: Arc::new(names.iter().map(|name| tool(name, "")).collect()),
            time_to_live,
            ..Listing::default()
        }
    }

    fn keep(cache: &ToolListCache, listing: Listing, is_announced: bool) {
        cache.keep(&ServerId::from("shop"), listing, Instant::now(), is_announced);
    }

    #[test]
    fn a_difference_names_added_removed_and_changed_tools() {
        let before = [tool("gone", ""), tool("kept", ""), tool("other", "once")];
        let after = [tool("kept", ""), tool("new", ""), tool("other", "now")];
        let expected = Difference { added: vec!["new"], removed: vec!["gone"], changed: vec!["other"] };
        assert_eq!(Difference::between(&before, &after), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn the_generation_moves_with_the_offer_and_only_with_it() {
        let cache = ToolListCache::default();
        let mut seen = vec![cache.generation()];
        let mut moved = |what: &str, expected: bool| {
            let now = cache.generation();
            assert_eq!(Some(&now) != seen.last(), expected, "{what}");
            assert!(seen.iter().all(|before| *before <= now), "it never decreases");
            seen.push(now);
        };
        keep(&cache, listing(&["a"], None), true);
        moved("the first list", true);
        keep(&cache, listing(&["a"], None), true);
        moved("the same list", false);
        keep(&cache, listing(&["a", "b"], None), true);
        moved("another list", true);
        cache.away("away".into());
        moved("it is away", true);
        cache.away("away, in other words".into());
        moved("it is still away", false);
        cache.list_failed("it listed nothing".into(), Instant::now());
        moved("the error changed, the tools did not", false);
        keep(&cache, listing(&["a", "b"], None), true);
        moved("it is back", true);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_current_as_long_as_its_server_says_and_a_moment_if_it_says_nothing() {
        let cache = ToolListCache::default();
        let minute = Duration::from_secs(60);
        keep(&cache, listing(&["a"], None), true);
        tokio::time::advance(minute).await;
        assert!(cache.is_current(), "the server announces changes");

        keep(&cache, listing(&["a"], None), false);
        assert!(cache.is_current());
        let before = cache.generation();
        tokio::time::advance(CURRENT).await;
        assert!(!cache.is_current());
        assert_eq!(cache.generation(), before, "nothing suggests a change");

        keep(&cache, listing(&["a"], Some(minute)), true);
        tokio::time::advance(minute / 2).await;
        assert!(cache.is_current());
        let before = cache.generation();
        tokio::time::advance(minute / 2).await;
        assert!(!cache.is_current(), "its lifetime expired, even with announcements");
        let outdated = cache.generation();
        assert!(outdated > before, "so that runs ask again");
        keep(&cache, listing(&["a"], Some(minute)), true);
        assert!(
            cache.is_current() && cache.generation() == outdated,
            "the tools that runs received meanwhile are still valid"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_after_an_expiry_is_a_generation_of_its_own() {
        let (cache, minute) = (ToolListCache::default(), Duration::from_secs(60));
        keep(&cache, listing(&["a"], Some(minute)), true);
        tokio::time::advance(minute).await;
        let outdated = cache.generation();
        keep(&cache, listing(&["b"], Some(minute)), true);
        assert!(cache.generation() > outdated, "another list");

        tokio::time::advance(minute).await;
        let outdated = cache.generation();
        cache.away("away".into());
        let away = cache.generation();
        assert!(away > outdated);
        keep(&cache, listing(&["b"], Some(minute)), true);
        assert!(cache.generation() > away, "it is back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_of_a_list_is_used_while_no_other_is_known() {
        let (cache, shop) = (ToolListCache::default(), ServerId::from("shop"));
        let part = |names: &[&str], why: &str| cache.keep_part(listing(names, None), why.into(), Instant::now());
        let offered = || {
            let offer = cache.offer(&shop, true, cache.not_worth_waiting());
            (offer.tools.len(), offer.stale)
        };
        part(&["a"], "it was late");
        assert_eq!((offered(), cache.summary()), ((1, None), (Some(1), None)));
        assert_eq!(cache.list_failure().map(|(why, _)| why).as_deref(), Some("it was late"));
        assert!(cache.retry().is_some() && !cache.is_current());
        let before = cache.generation();
        part(&["a", "b"], "it was late again");
        assert_eq!((offered(), cache.generation()), ((1, None), before), "the tools stay");
        keep(&cache, listing(&["a", "b", "c"], None), true);
        assert!(cache.generation() > before);
        assert_eq!((offered(), cache.list_failure()), ((3, None), None));
        part(&["a"], "it was late");
        assert_eq!(offered(), (3, Some("it was late".to_owned())), "the complete list stays");
    }

    #[test]
    fn a_list_is_kept_through_trouble_and_marked() {
        let (cache, shop) = (ToolListCache::default(), ServerId::from("shop"));
        cache.away("the MCP server `shop` is on fire".into());
        let offer = cache.offer(&shop, true, None);
        assert_eq!((offer.tools.len(), offer.stale), (0, None));
        assert_eq!(offer.left_out[0].reason, "the MCP server `shop` is on fire");
        keep(&cache, listing(&["a"], None), true);
        assert_eq!(cache.offer(&shop, true, None).stale, None);
        cache.away("the MCP server `shop` is on fire".into());
        let offer = cache.offer(&shop, true, None);
        assert_eq!((offer.tools.len(), offer.left_out.len(), offer.trusted), (1, 0, true));
        assert_eq!(offer.stale.as_deref(), Some("the MCP server `shop` is on fire"));
    }
}
