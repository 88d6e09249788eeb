//! Authenticator: the port for one kind of credentials, the bearer token of a request (RFC 6750), and the answer to invalid
//! credentials.

use async_trait::async_trait;
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use toolgate_core::error::ErrorCode;
use toolgate_service::Caller;

use crate::problem::Problem;

/// An authenticator for one kind of credentials.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// Authenticates a request. `None` if it has credentials of another kind, or none.
    ///
    /// # Errors
    /// A problem if the credentials are of this kind and are not valid.
    async fn authenticate(&self, request: &Parts) -> Result<Option<Caller>, Problem>;
}

/// The bearer token of a request. `None` if there is none, or more than one.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (shown.next(), shown.next()) else { return None };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

/// The answer to missing or invalid credentials. It does not say why they are invalid.
pub(super) fn unauthorized(shows_something: bool) -> Problem {
    let (detail, challenge) = match shows_something {
        true => {
            ("these credentials are not valid; send a valid key", r#"Bearer realm="toolgate", error="invalid_token""#)
        }
        false => ("send a key: `Authorization: Bearer tg_…`", r#"Bearer realm="toolgate""#),
    };
    let problem = Problem::new(ErrorCode::Unauthorized, detail);
    problem.header(WWW_AUTHENTICATE, axum::http::HeaderValue::from_static(challenge))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_bearer_token_is_accepted() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(of(&["Bearer tg_x"]).as_deref(), Some("tg_x"));
        assert_eq!(of(&["bearer  tg_x "]).as_deref(), Some("tg_x"));
        for none in [&[][..], &["Basic eDp5"], &["Bearer"], &["Bearer "], &["tg_x"], &["Bearer a", "Bearer b"]] {
            assert_eq!(of(none), None, "{none:?}");
        }
    }
}
