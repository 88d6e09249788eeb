//! The digests by which a decision says what it is about: what was shown, and nothing that came in its place. People type
//! the beginning of one, the runner compares whole ones.

use crate::core::id::{CallId, RunId};
use crate::core::run::{Debt, Resume};

/// How many hexadecimal digits name a digest.
const FEWEST: usize = 12;
/// How many of them a command has that is offered for copying.
const OFFERED: usize = 16;
const PREFIX: &str = "sha256:";

/// A digest, or the beginning of one, as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen(String);

/// The same for a call that is named with it, `CALL_ID=DIGEST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeenAt {
    /// The call.
    pub(super) call: CallId,
    /// What was seen there.
    pub(super) seen: Seen,
}

impl Seen {
    /// As the runner takes it.
    pub(super) fn into_digest(self) -> String {
        format!("{PREFIX}{}", self.0)
    }
}

/// A digest from a flag.
pub(super) fn digest(text: &str) -> Result<Seen, String> {
    let digits = text.strip_prefix(PREFIX).unwrap_or(text);
    if digits.len() < FEWEST || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err(format!("give at least the first {FEWEST} hexadecimal digits of the digest"));
    }
    Ok(Seen(digits.to_ascii_lowercase()))
}

/// A call and a digest from a flag.
pub(super) fn at_call(text: &str) -> Result<SeenAt, String> {
    // Ids may have anything in them, a digest has not.
    match text.rsplit_once('=') {
        Some((call, seen)) if !call.is_empty() => Ok(SeenAt { call: call.into(), seen: digest(seen)? }),
        Some(_) | None => Err("write CALL_ID=DIGEST".into()),
    }
}

/// What is typed where a decision is offered: enough of the digest of what waits.
pub(super) fn short(run: &RunId, debt: &Debt) -> Option<String> {
    let digest = debt.binding()?.digest(run, debt.call_id());
    Some(digest.strip_prefix(PREFIX).unwrap_or(&digest).chars().take(OFFERED).collect())
}

/// Completes the beginnings that name what waits now. What names anything else is left, for the runner to refuse.
pub(super) fn complete(resume: &mut Resume, run: &RunId, waiting: &[Debt]) {
    for (call, seen) in &mut resume.seen {
        let debt = waiting.iter().find(|debt| debt.call_id() == call);
        let in_force = debt.and_then(Debt::binding).map(|binding| binding.digest(run, call));
        if let Some(whole) = in_force.filter(|whole| whole.starts_with(seen.as_str())) {
            *seen = whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_digits_name_a_digest_with_or_without_what_stands_before_them() {
        let whole = digest("sha256:0123456789ABCDEF").unwrap().into_digest();
        assert_eq!(whole, "sha256:0123456789abcdef");
        assert_eq!(digest("0123456789ab").unwrap().into_digest(), "sha256:0123456789ab");
        for text in ["", "sha256:", "0123456789a", "sha256:0123456789a", "0123456789xy", "sha256:9f86\u{2026}"] {
            assert!(digest(text).unwrap_err().contains("first 12"), "{text}");
        }
        assert_eq!(at_call("a=b=0123456789ab").unwrap().call.as_str(), "a=b");
        assert!(at_call("=0123456789ab").is_err() && at_call("0123456789ab").is_err());
    }
}
