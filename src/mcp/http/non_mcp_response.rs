//! HTTP answers that are not MCP, described for users who check whether the address is wrong or the server broken. The
//! SDK reports some details only in a text. Parsing that text improves the message and decides whether the server
//! refused or failed; it never causes a retry.

use std::fmt;

use http::StatusCode;

use crate::measure::shortened;

/// The message for an HTTP 401.
pub(super) const UNAUTHORIZED: &str =
    "it answered HTTP 401 and wants credentials; give them in the server's `headers`, or set its `auth`";
/// The message for an HTTP 403 with a challenge.
pub(super) const FORBIDDEN: &str = "it answered HTTP 403, the credentials in the server's `headers` do not suffice";

/// The longest quote of a server.
const LONGEST: usize = 160;

/// An answer that is not MCP. Its text follows "it answered with ", and ends with a remedy where one is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NonMcpResponse {
    /// An error status with its message.
    Status { status: u16, body: String, retry_after: Option<String> },
    /// A success with another content type.
    Content(Option<String>),
    /// JSON that is not JSON-RPC, as its text.
    Json(String),
    /// A JSON content type with an invalid body.
    NotJson(String),
    /// An error that the SDK describes.
    Other(String),
}

impl NonMcpResponse {
    /// A status, with the known part of the body.
    pub(super) fn status(status: u16, body: &str, retry_after: Option<&str>) -> Self {
        Self::Status { status, body: quote(body), retry_after: retry_after.map(str::to_owned) }
    }

    /// An unsupported content type.
    pub(super) fn content(kind: Option<&str>) -> Self {
        Self::Content(kind.map(quote))
    }

    /// Parses an error text of the SDK.
    pub(super) fn read(text: &str) -> Self {
        if let Some((status, body)) = text.strip_prefix("HTTP ").and_then(|rest| rest.split_once(": "))
            && let Some(Ok(status)) = status.get(..3).map(str::parse)
        {
            return Self::status(status, body, None);
        }
        Self::Other(quote(text))
    }

    /// The answer without a remedy.
    pub(super) fn described(&self) -> String {
        let whole = self.to_string();
        match self {
            Self::Status { status, .. } => whole.strip_suffix(remedy(*status)).unwrap_or(&whole).to_owned(),
            Self::Content(_) | Self::Json(_) | Self::NotJson(_) | Self::Other(_) => whole,
        }
    }

    /// Whether the server refuses the request, rather than fails.
    pub(super) fn is_a_refusal(&self) -> bool {
        matches!(self, Self::Status { status: 400..=499, .. })
    }
}

impl std::error::Error for NonMcpResponse {}

impl fmt::Display for NonMcpResponse {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { status, body, retry_after } => {
                let known = StatusCode::from_u16(*status).ok();
                let reason = known.and_then(|status| status.canonical_reason()).unwrap_or_default();
                write!(to, "{}", format!("HTTP {status} {reason}").trim_end())?;
                if !body.is_empty() && body != reason {
                    write!(to, " ({body})")?;
                }
                match retry_after.as_deref().map(|after| (after, after.parse::<u64>())) {
                    Some((_, Ok(seconds))) => write!(to, ", and wants to be left alone for {seconds} s")?,
                    Some((date, Err(_))) => write!(to, ", and wants to be left alone until {}", quote(date))?,
                    None => {}
                }
                write!(to, "{}", remedy(*status))
            }
            Self::Content(Some(kind)) if kind.starts_with("text/html") => {
                write!(to, "a web page ({kind}); is the server's `url` right?")
            }
            Self::Content(Some(kind)) => write!(
                to,
                "`{kind}`, which is neither JSON nor an event stream; is the server's `url` right? If it is, its author \
                 has to correct the content type"
            ),
            Self::Content(None) => write!(to, "something without a content type; is the server's `url` right?"),
            Self::Json(json) => {
                write!(to, "JSON that is no JSON-RPC message: {}; is the server's `url` right?", shortened(json))
            }
            Self::NotJson(why) => {
                write!(to, "what it calls JSON and is none: {}; is the server's `url` right?", shortened(why))
            }
            Self::Other(text) => to.write_str(text),
        }
    }
}

/// The remedy for a status, as the end of a sentence.
fn remedy(status: u16) -> &'static str {
    match status {
        200..=299 => " without an answer; a request is answered with JSON or an event stream",
        300..=399 => "; it wants to be asked elsewhere: give the address where it ends up as the server's `url`",
        401 | 403 => "; are the credentials in the server's `headers` right, and may this machine use it?",
        404 | 410 => "; is the path in the server's `url` right? Many servers answer at `/mcp`",
        405 => {
            "; is the path in the server's `url` right? The older transport HTTP+SSE is not spoken here: look for the \
             streamable HTTP endpoint"
        }
        429 => "; call it less often, or lower its `max_concurrency`",
        502..=504 => "; what stands in front of it cannot reach it, or it is overloaded",
        500..=599 => "; its own log says why",
        _ => "",
    }
}

/// A quote in one line. A web page is not quoted.
fn quote(words: &str) -> String {
    let words = words.trim();
    if words.starts_with('<') && words.ends_with('>') && words != "<empty>" {
        return String::new();
    }
    let spaced: String = words.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let line = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_not_mcp_is_described_with_a_remedy() {
        for (answer, expected) in [
            (
                NonMcpResponse::content(Some("text/html; charset=utf-8")),
                "a web page (text/html; charset=utf-8); is the server's `url` right?",
            ),
            (NonMcpResponse::content(None), "something without a content type; is the server's `url` right?"),
            (
                NonMcpResponse::read("HTTP 404 Not Found: <!doctype html>\n<h1>nope</h1>\n"),
                "HTTP 404 Not Found; is the path in the server's `url` right? Many servers answer at `/mcp`",
            ),
            (
                NonMcpResponse::read("HTTP 400 Bad Request: Invalid Host header"),
                "HTTP 400 Bad Request (Invalid Host header)",
            ),
            (
                NonMcpResponse::status(429, "", Some("12")),
                "HTTP 429 Too Many Requests, and wants to be left alone for 12 s; call it less often, or lower its \
                 `max_concurrency`",
            ),
            (NonMcpResponse::status(599, "", None), "HTTP 599; its own log says why"),
            (
                NonMcpResponse::Json("{\"a\":1}".into()),
                "JSON that is no JSON-RPC message: {\"a\":1}; is the server's `url` right?",
            ),
            (
                NonMcpResponse::NotJson("it is empty".into()),
                "what it calls JSON and is none: it is empty; is the server's `url` right?",
            ),
            (
                NonMcpResponse::status(202, "", None),
                "HTTP 202 Accepted without an answer; a request is answered with JSON or an event stream",
            ),
        ] {
            assert_eq!(answer.to_string(), expected);
        }
    }

    #[test]
    fn the_words_of_a_stranger_stay_in_a_line() {
        assert_eq!(quote(" one\n\u{1b}[31mtwo "), "one [31mtwo");
        assert_eq!(quote(&"x".repeat(500)).len(), LONGEST + "...".len());
    }
}
