//! Errors of a server of the legacy era that does not know the session of a request.
//!
//! Over HTTP a status says so. Behind a wrapper that restarts its server, over stdio, only an error can: the SDKs refuse
//! every request before `initialize`. Such a request was certainly not executed.

/// Phrases of the SDKs for a request before `initialize`, in lower case.
const UNINITIALIZED: [&str; 2] = ["request before initialization", "is invalid during session initialization"];
/// Whole messages with the same meaning.
const UNINITIALIZED_MESSAGES: [&str; 3] =
    ["server not initialized", "session not initialized", "bad request: server not initialized"];
/// Whole messages about an unknown session.
const UNKNOWN_MESSAGES: [&str; 7] = [
    "session not found",
    "session expired",
    "session terminated",
    "session has been terminated",
    "invalid session id",
    "unknown session",
    "no valid session id provided",
];

/// Whether a message says that a request came before `initialize`.
pub(super) fn is_uninitialized(message: &str) -> bool {
    let message = plain(message);
    UNINITIALIZED.iter().any(|words| message.contains(words)) || UNINITIALIZED_MESSAGES.contains(&message.as_str())
}

/// Whether the message of an error is about an unknown session and nothing else. A tool can say the same, so it does not
/// prove that the request was not executed.
pub(super) fn is_unknown(message: &str) -> bool {
    let message = plain(message);
    let message = message.strip_prefix("bad request: ").or(message.strip_prefix("not found: ")).unwrap_or(&message);
    UNKNOWN_MESSAGES.contains(&message)
}

fn plain(message: &str) -> String {
    message.trim().trim_end_matches('.').to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_lack_of_a_handshake_is_distinguished_from_that_of_a_tool() {
        for (message, is_lost) in [
            ("Received request before initialization was complete", true),
            ("method \"tools/call\" is invalid during session initialization", true),
            ("Server not initialized", true),
            ("the database server is not initialized", false),
            ("Invalid request parameters", false),
        ] {
            assert_eq!(is_uninitialized(message), is_lost, "{message}");
        }
        assert!(is_unknown("Session not found.") && is_unknown("Bad Request: No valid session ID provided"));
        assert!(!is_unknown("the checkout session was not found"));
    }
}
