//! Interpretation of handshake answers: the era of a server. Pure.

use rmcp::model::{ErrorCode, ErrorData, Implementation, ProtocolVersion, ServerCapabilities, ServerPeerInfo};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Era, NegotiationResult};
use crate::answer::wrong_result_type;
use crate::fault;
use crate::measure::excerpt;

/// The meaning of the answer to `server/discover`.
#[derive(Debug, PartialEq)]
pub(super) enum Discovered {
    /// The server supports our modern revision.
    Modern(Box<NegotiationResult>),
    /// The server expects another request at our revision.
    AskAgain,
    /// The server does not support the modern era, according to this answer; its reason.
    NotModern(String),
    /// The server supports the modern era, but no common revision.
    Insists(String),
}

/// Reads the answer to `server/discover`.
pub(super) fn discovered(answer: Result<Value, ErrorData>) -> Discovered {
    match answer {
        Ok(result) => match strings(result.get("supportedVersions")) {
            Some(versions) => offered(&versions, &result),
            // A server that acknowledges every request does not know this method.
            None => Discovered::NotModern(format!("answered `server/discover` with {}", excerpt(&result))),
        },
        Err(error) if error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => {
            let versions = error.data.as_ref().and_then(|data| strings(data.get("supported"))).unwrap_or_default();
            match common(&versions) {
                Some(Era::Modern) => Discovered::AskAgain,
                Some(Era::Legacy) => Discovered::NotModern(refusal(&error)),
                None => Discovered::Insists(nothing_common(&versions)),
            }
        }
        Err(error)
            if matches!(error.code, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY | ErrorCode::HEADER_MISMATCH) =>
        {
            Discovered::Insists(refusal(&error))
        }
        Err(error) => Discovered::NotModern(refusal(&error)),
    }
}

/// Reads the answer to `initialize`. The error states what is wrong with it.
pub(super) fn initialized(answer: Result<Value, ErrorData>) -> Result<NegotiationResult, String> {
    let result = answer.map_err(|error| refusal(&error))?;
    let Some(version) = part::<ProtocolVersion>(&result, "protocolVersion") else {
        return Err(format!("it answered `initialize` without a `protocolVersion`: {}", excerpt(&result)));
    };
    // `initialize` announces the revisions that have a handshake, and no other.
    match ProtocolVersion::KNOWN_VERSIONS.contains(&version) && Era::from_version(&version) == Era::Legacy {
        true => Ok(NegotiationResult { era: Era::Legacy, peer: peer(version, &result) }),
        false => Err(format!(
            "it answered `initialize` with a revision that was not announced: {}",
            nothing_common(&[version.to_string()])
        )),
    }
}

/// The refusal of `initialize`, if only servers of the modern era refuse in this way.
pub(super) fn refused_as_modern(answer: &Result<Value, ErrorData>) -> Option<String> {
    let error = answer.as_ref().err()?;
    let known_to_modern = [
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
        ErrorCode::HEADER_MISMATCH,
    ];
    known_to_modern.contains(&error.code).then(|| refusal(error))
}

fn refusal(error: &ErrorData) -> String {
    fault::refusal(&error.message, error.code.0)
}

fn offered(versions: &[String], result: &Value) -> Discovered {
    match common(versions) {
        Some(Era::Modern) => {
            if let Some(wrong) = wrong_result_type(result) {
                return Discovered::Insists(format!("it answered `server/discover` with an invalid result: {wrong}"));
            }
            let peer = peer(Era::Modern.revision(), result);
            Discovered::Modern(Box::new(NegotiationResult { era: Era::Modern, peer }))
        }
        Some(Era::Legacy) => Discovered::NotModern(format!("offers only {}", versions.join(", "))),
        None => Discovered::Insists(nothing_common(versions)),
    }
}

/// The preferred era with a common revision.
fn common(versions: &[String]) -> Option<Era> {
    let known = versions
        .iter()
        .filter_map(|version| ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| known.as_str() == version.as_str()));
    let eras: Vec<Era> = known.map(Era::from_version).collect();
    [Era::Modern, Era::Legacy].into_iter().find(|era| eras.contains(era))
}

fn nothing_common(versions: &[String]) -> String {
    let ours: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
    let theirs = if versions.is_empty() { "no revision it names".to_owned() } else { versions.join(", ") };
    format!("it speaks {theirs} of the protocol, toolgate {}; update one of the two", ours.join(", "))
}

/// The server's description of itself. Unreadable members are left out: no call depends on them.
fn peer(version: ProtocolVersion, result: &Value) -> ServerPeerInfo {
    let capabilities = part::<ServerCapabilities>(result, "capabilities").unwrap_or_default();
    let mut peer = ServerPeerInfo::new(version, capabilities);
    peer.server_info = part::<Implementation>(result, "serverInfo").or_else(|| {
        result.get("_meta").and_then(|meta| part::<Implementation>(meta, "io.modelcontextprotocol/serverInfo"))
    });
    peer.instructions = part(result, "instructions");
    peer
}

fn part<T: DeserializeOwned>(object: &Value, name: &str) -> Option<T> {
    serde_json::from_value(object.get(name)?.clone()).ok()
}

fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    value?.as_array().map(|items| items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(code: i32, data: Option<Value>) -> Result<Value, ErrorData> {
        Err(ErrorData::new(ErrorCode(code), "no", data))
    }

    #[test]
    fn a_discovery_that_offers_our_revision_is_modern_whatever_else_it_offers() {
        let answer = json!({
            "supportedVersions": ["2099-01-01", "2026-07-28", "2025-11-25"],
            "capabilities": {"tools": {"listChanged": true}, "new": 1},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "till", "version": "3"}},
        });
        let Discovered::Modern(agreed) = discovered(Ok(answer)) else { panic!("modern") };
        assert_eq!((agreed.era, agreed.peer.protocol_version.as_str()), (Era::Modern, "2026-07-28"));
        assert_eq!(agreed.peer.server_info.map(|itself| itself.name), Some("till".into()));
        assert_eq!(agreed.peer.capabilities.tools.and_then(|tools| tools.list_changed), Some(true));
    }

    #[test]
    fn every_error_that_is_not_of_the_modern_era_means_a_legacy_server() {
        for answer in [
            error(-32601, None),
            error(-32602, None),
            error(0, None),
            Ok(json!({})),
            Ok(json!([])),
            Ok(json!({"supportedVersions": ["2025-06-18"]})),
            error(-32022, Some(json!({"supported": ["2025-11-25"]}))),
        ] {
            assert!(matches!(discovered(answer.clone()), Discovered::NotModern(_)), "{answer:?}");
        }
    }

    #[test]
    fn a_modern_server_that_refuses_is_not_taken_for_a_legacy_one() {
        assert_eq!(discovered(error(-32022, Some(json!({"supported": ["2026-07-28"]})))), Discovered::AskAgain);
        let future = "it speaks 2027-01-01 of the protocol, toolgate 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, \
                      2026-07-28; update one of the two";
        assert_eq!(
            discovered(error(-32022, Some(json!({"supported": ["2027-01-01"]})))),
            Discovered::Insists(future.into())
        );
        assert_eq!(discovered(Ok(json!({"supportedVersions": ["2027-01-01"]}))), Discovered::Insists(future.into()));
        assert_eq!(discovered(error(-32021, None)), Discovered::Insists("no (JSON-RPC error -32021)".into()));
    }

    #[test]
    fn a_discovery_of_an_unknown_type_is_invalid_where_the_modern_era_is_spoken() {
        let answer = |kind: Value| Ok(json!({"supportedVersions": ["2026-07-28"], "resultType": kind}));
        for kind in [json!("complete"), Value::Null] {
            assert!(matches!(discovered(answer(kind.clone())), Discovered::Modern(_)), "{kind}");
        }
        for kind in [json!("later"), json!("input_required"), json!(7)] {
            let Discovered::Insists(why) = discovered(answer(kind.clone())) else { panic!("{kind}") };
            assert!(why.ends_with(&format!("its `resultType` is {kind}, which toolgate does not know")), "{why}");
        }
        let legacy = Ok(json!({"supportedVersions": ["2025-06-18"], "resultType": "later"}));
        assert!(matches!(discovered(legacy), Discovered::NotModern(_)));
    }

    #[test]
    fn an_initialization_needs_a_revision_and_nothing_else() {
        let agreed = initialized(Ok(json!({"protocolVersion": "2025-03-26", "capabilities": 7}))).expect("agreed");
        assert_eq!((agreed.era, agreed.peer.protocol_version.as_str()), (Era::Legacy, "2025-03-26"));
        let wrong = initialized(Ok(json!({"hello": 1}))).expect_err("refused");
        assert_eq!(wrong, r#"it answered `initialize` without a `protocolVersion`: {"hello":1}"#);
        for unannounced in ["2099-01-01", "2026-07-28", ""] {
            let refused = initialized(Ok(json!({"protocolVersion": unannounced}))).expect_err("refused");
            assert!(refused.contains("was not announced: it speaks"), "{refused}");
        }
        assert_eq!(initialized(error(-32600, None)).expect_err("refused"), "no (JSON-RPC error -32600)");
        for (code, is_modern) in [(-32020, true), (-32021, true), (-32022, true), (-32600, false), (-32601, false)] {
            assert_eq!(refused_as_modern(&error(code, None)).is_some(), is_modern, "{code}");
        }
    }
}
