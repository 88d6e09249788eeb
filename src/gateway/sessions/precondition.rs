//! `If-Match` (RFC 9110, 13.1.1): a condition on the version of a session that the client saw. What its latest run did
//! meanwhile does not matter to a change of the session.

use axum::http::HeaderMap;
use axum::http::header::IF_MATCH;

use crate::etag;

/// The version that the request requires, if it requires one: the current one if it is among those that the client
/// names, or else one that no session has.
pub(super) fn required(headers: &HeaderMap, current: u64) -> Option<u64> {
    // An empty list matches nothing.
    let known: Vec<&str> = etag::listed(headers, &IF_MATCH).filter(|tag| !tag.is_empty()).collect();
    if known.is_empty() || known.contains(&"*") {
        return None;
    }
    let versions: Vec<u64> = known.iter().filter_map(|tag| version(tag)).collect();
    Some(if versions.contains(&current) { current } else { versions.first().copied().unwrap_or(0) })
}

/// The version of the session in its `ETag`.
fn version(tag: &str) -> Option<u64> {
    let tag = tag.strip_prefix('"')?.strip_suffix('"')?;
    tag.split_once('.').map_or(tag, |(version, _)| version).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_requires_the_current_version_if_it_is_named() {
        let of = |known: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_MATCH, known.parse().unwrap());
            required(&headers, 7)
        };
        for known in ["\"7\"", "\"7.12\"", "\"3.1\", \"7.9\""] {
            assert_eq!(of(known), Some(7), "{known}");
        }
        assert_eq!((of("*"), of("")), (None, None));
        assert_eq!(of("\"6.12\""), Some(6));
        for other in ["W/\"7.12\"", "7", "\"x\""] {
            assert_eq!(of(other), Some(0), "{other}");
        }
    }
}
