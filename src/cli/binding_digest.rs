//! Binding digests: the digest with which a decision names the call that was shown, so that the decision cannot apply
//! to a changed call. People type a prefix of a digest; the service completes it, and the runner compares whole digests.

use super::error::CliError;
use crate::core::id::{CallId, RunId};
use crate::core::run::{Answer, PendingItem, Resume};
use crate::service::binding_digest;

/// The minimum number of hexadecimal digits of a prefix.
const FEWEST: usize = 12;
/// The number of digits in a command that the user can copy.
const OFFERED: usize = 16;
const PREFIX: &str = "sha256:";

/// A digest, or a prefix of one, as the user typed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DigestPrefix(String);

/// A digest with its call, `CALL_ID=DIGEST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallDigest {
    pub(super) call: CallId,
    /// The digest of the call as shown.
    pub(super) digest: DigestPrefix,
}

impl DigestPrefix {
    /// The digest in the runner's form.
    pub(super) fn into_digest(self) -> String {
        format!("{PREFIX}{}", self.0)
    }
}

/// Parses a digest from a flag.
pub(super) fn digest(text: &str) -> Result<DigestPrefix, String> {
    let digits = text.strip_prefix(PREFIX).unwrap_or(text);
    if digits.len() < FEWEST || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err(format!("give at least the first {FEWEST} hexadecimal digits of the digest"));
    }
    Ok(DigestPrefix(digits.to_ascii_lowercase()))
}

/// Parses a call and a digest from a flag.
pub(super) fn at_call(text: &str) -> Result<CallDigest, String> {
    // An id may contain any character, a digest only hexadecimal digits.
    match text.rsplit_once('=') {
        Some((call, typed)) if !call.is_empty() => Ok(CallDigest { call: call.into(), digest: digest(typed)? }),
        Some(_) | None => Err("write CALL_ID=DIGEST".into()),
    }
}

/// The short digest of a pending item, for a command that the user can copy.
pub(super) fn short(run: &RunId, item: &PendingItem) -> Option<String> {
    let digest = binding_digest(run, item)?;
    Some(digest.strip_prefix(PREFIX).unwrap_or(&digest).chars().take(OFFERED).collect())
}

/// Binds the decisions about these calls to the digests that the user saw.
pub(super) fn bind(resume: &mut Resume, digest: &[CallDigest]) -> Result<(), CliError> {
    for CallDigest { call, digest: shown } in digest {
        let mut answers = resume.answers.iter_mut().filter(|(answered, _)| answered == call);
        let Some((_, Answer::Decision { digest, .. })) = answers.find(|(_, answer)| answer.decision().is_some()) else {
            let message = format!("--digest {call}: there is no decision about the call");
            return Err(CliError::usage(message).with_remedy(format!("add --approve {call} or --deny {call}")));
        };
        *digest = Some(shown.clone().into_digest());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_digits_name_a_digest_with_or_without_the_prefix() {
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
