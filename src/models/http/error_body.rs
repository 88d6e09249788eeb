//! Error body of a provider, reduced to its known fields.

use serde_json::Value;

const MAX_WORD_CHARS: usize = 64;

/// The content of an error body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    /// `code`, `type`, `status` and the reasons of Google's `details`, if they are plain identifiers.
    pub(crate) words: Vec<String>,
    /// The `code`, if it is an identifier and not a number.
    pub(super) code: Option<String>,
    /// The HTTP status, or a `code` that is one.
    pub(crate) status: Option<u16>,
    pub(crate) text: Option<String>,
    /// The delay that the body requests (Google's `RetryInfo`), in milliseconds.
    pub(super) delay_ms: Option<u64>,
}

impl ErrorBody {
    /// Reads a body of any known form: `{error: {…}}` or `{error: "…"}`, FastAPI's `{detail}`, the plain `{message,
    /// type, code}` of other servers, or one of these in an array.
    pub(super) fn of_body(body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let body = body.get(0).unwrap_or(&body);
        if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
            return Some(Self::of_error(error));
        }
        if let Some(detail) = body.get("detail") {
            return Some(Self { text: fastapi_text(detail), ..Self::default() });
        }
        body.get("message").and_then(Value::as_str).map(|_| Self::of_error(body))
    }

    /// Reads the error itself: an object, or a plain string.
    pub(crate) fn of_error(error: &Value) -> Self {
        if let Some(text) = error.as_str() {
            return Self { text: Some(text.to_owned()), ..Self::default() };
        }
        let code = error.get("code");
        let details = error.get("details").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let reasons = details.iter().map(|detail| detail.get("reason"));
        let words = [code, error.get("type"), error.get("status")].into_iter().chain(reasons);
        let words = words.flatten().filter_map(Value::as_str);
        let status = code.and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
        let coded = code.and_then(Value::as_str).filter(|code| is_identifier(code) && code.parse::<u64>().is_err());
        Self {
            words: words.filter(|word| is_identifier(word)).map(str::to_owned).collect(),
            code: coded.map(str::to_owned),
            status: status.and_then(|status| u16::try_from(status).ok()).filter(|status| (400..600).contains(status)),
            text: error.get("message").and_then(Value::as_str).map(str::to_owned),
            delay_ms: details.iter().find_map(|detail| seconds_ms(detail.get("retryDelay")?.as_str()?)),
        }
    }

    /// Whether the error has this word.
    pub(crate) fn says(&self, word: &str) -> bool {
        self.words.iter().any(|said| said == word)
    }
}

fn is_identifier(word: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !word.is_empty() && word.len() <= MAX_WORD_CHARS && word.bytes().all(is_plain)
}

/// FastAPI's first problem, with location and text. It also holds the input, which is not repeated.
fn fastapi_text(detail: &Value) -> Option<String> {
    if let Some(text) = detail.as_str() {
        return Some(text.to_owned());
    }
    let first = detail.get(0)?;
    let step_text = |step: &Value| step.as_str().map_or_else(|| step.to_string(), str::to_owned);
    let place: Vec<String> = first.get("loc")?.as_array()?.iter().map(step_text).collect();
    Some(format!("{}: {}", place.join("."), first.get("msg").and_then(Value::as_str).unwrap_or_default()))
}

/// A duration in protobuf's form: `17s`, `0.5s`.
fn seconds_ms(text: &str) -> Option<u64> {
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    // The cast saturates.
    (seconds >= 0.0).then(|| (seconds * 1000.0).ceil() as u64)
}
