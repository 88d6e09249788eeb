//! How long a list may be kept, and for whom, as servers of the modern era say with it (SEP-2549).

use std::time::Duration;

use serde_json::Value;

/// What a server says of a list. Servers of the legacy era say nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Freshness {
    /// For how long the list is as good as new.
    pub(super) ttl: Option<Duration>,
    /// Whether it is the same for everybody. Where nothing is said it is not.
    pub(super) is_public: bool,
}

impl Freshness {
    /// What a page says.
    pub(super) fn of(page: &Value) -> Self {
        Self {
            ttl: page.get("ttlMs").and_then(Value::as_u64).map(Duration::from_millis),
            is_public: page.get("cacheScope").and_then(Value::as_str) == Some("public"),
        }
    }

    /// What holds for a list of which this is another page.
    #[must_use]
    pub(super) fn and(self, page: Self) -> Self {
        let ttl = match (self.ttl, page.ttl) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (None, _) | (_, None) => None,
        };
        Self { ttl, is_public: self.is_public && page.is_public }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_as_fresh_as_its_stalest_page_and_public_only_as_a_whole() {
        let page = |ttl: u64, scope: &str| Freshness::of(&json!({"ttlMs": ttl, "cacheScope": scope}));
        let seconds = |ttl: u64, is_public: bool| Freshness { ttl: Some(Duration::from_secs(ttl)), is_public };
        assert_eq!(page(5000, "public").and(page(1000, "public")), seconds(1, true));
        assert_eq!(page(1000, "public").and(page(5000, "private")), seconds(1, false));
        assert_eq!(page(1000, "public").and(Freshness::of(&json!({}))), Freshness::default());
    }
}
