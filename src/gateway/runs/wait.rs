//! Wait preference of a request for a run: `Prefer` (RFC 7240).

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use toolgate_runner::{Execution, IdleRun, RunnerError};
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::GatewaySettings;
use crate::completion::ClientGone;
use crate::problem::Problem;
use crate::state::Gateway;

/// How long a request prefers to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitPreference {
    /// How long it waits until the run is pending or has ended; `None` to respond at once.
    longest: Option<Duration>,
    /// Whether the request names it.
    is_requested: bool,
}

impl FromRequestParts<Gateway> for WaitPreference {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, Infallible> {
        Ok(Self::from_headers(&parts.headers, gateway.settings()))
    }
}

impl IntoParams for WaitPreference {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let meaning =
            "`wait=SECONDS`: how long to wait until the run is pending or has ended; `respond-async`: do not wait";
        let text = ObjectBuilder::new().schema_type(Type::String);
        let header = ParameterBuilder::new().name("Prefer").parameter_in(ParameterIn::Header);
        vec![header.description(Some(meaning)).schema(Some(text)).build()]
    }
}

impl WaitPreference {
    /// The preference in `Prefer: respond-async` or `Prefer: wait=SECONDS`. Unknown preferences are ignored, as the RFC
    /// requires.
    pub(crate) fn from_headers(headers: &HeaderMap, settings: &GatewaySettings) -> Self {
        let given = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        let mut preferred = Self { longest: Some(settings.default_wait), is_requested: false };
        for preference in given.flat_map(|value| value.split(',')).map(str::trim) {
            let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
            if name.trim().eq_ignore_ascii_case("respond-async") {
                return Self { longest: None, is_requested: true };
            }
            if name.trim().eq_ignore_ascii_case("wait")
                && let Ok(seconds) = value.trim().parse().map(Duration::from_secs)
            {
                preferred = Self { longest: Some(seconds.min(settings.longest_wait)), is_requested: true };
            }
        }
        preferred
    }

    /// `Preference-Applied` (RFC 7240, section 3) of a response that honours a named preference, with the time after the
    /// server's limit.
    pub(crate) fn applied(self) -> Option<(HeaderName, HeaderValue)> {
        let preference = match self.longest {
            Some(longest) => HeaderValue::from_str(&format!("wait={}", longest.as_secs())).ok()?,
            None => HeaderValue::from_static("respond-async"),
        };
        self.is_requested.then_some((HeaderName::from_static("preference-applied"), preference))
    }

    /// Waits until the run is pending or has ended, and returns it. `None`: the time passed, or the client disconnected.
    /// The run continues either way.
    pub(crate) async fn wait(self, execution: Execution, gone: &ClientGone) -> Result<Option<IdleRun>, Problem> {
        let Some(longest) = self.longest else { return Ok(None) };
        let rested = tokio::select! {
            rested = tokio::time::timeout(longest, execution.idle_or_elicitation()) => rested,
            () = gone.closed() => return Ok(None),
        };
        match rested {
            // The execution was begun, and continues in another process.
            Ok(Some(Err(RunnerError::Released(_) | RunnerError::DrivenElsewhere { .. }))) => Ok(None),
            Ok(Some(rested)) => rested.map(Some).map_err(Problem::from),
            // The time passed, or the call is kept open for an answer that the client may have.
            Ok(None) | Err(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_waits_as_preferred_within_the_servers_limit() {
        let settings = GatewaySettings::default();
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("prefer", value.parse().unwrap());
            WaitPreference::from_headers(&headers, &settings)
        };
        let applied = |preference: WaitPreference| preference.applied().map(|(_, value)| value);
        let usual = WaitPreference::from_headers(&HeaderMap::new(), &settings);
        assert_eq!((usual.longest, applied(usual)), (Some(settings.default_wait), None));
        for (value, longest, expected) in [
            ("wait=5", Some(Duration::from_secs(5)), Some("wait=5".to_owned())),
            ("handling=lenient, wait = 7", Some(Duration::from_secs(7)), Some("wait=7".to_owned())),
            ("wait=100000", Some(settings.longest_wait), Some(format!("wait={}", settings.longest_wait.as_secs()))),
            ("wait=soon", Some(settings.default_wait), None),
            ("respond-async, wait=10", None, Some("respond-async".to_owned())),
        ] {
            let preference = of(value);
            let expected = expected.map(|value| HeaderValue::from_str(&value).unwrap());
            assert_eq!((preference.longest, applied(preference)), (longest, expected), "{value}");
        }
    }
}
