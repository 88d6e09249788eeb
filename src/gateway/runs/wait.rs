//! Wait preference of a request for a run: `Prefer` (RFC 7240).

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
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
pub(crate) enum WaitPreference {
    /// Respond at once.
    None,
    /// Wait until the run is pending or has ended, but no longer than this.
    UpTo(Duration),
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
        let mut preferred = Self::UpTo(settings.default_wait);
        for preference in given.flat_map(|value| value.split(',')).map(str::trim) {
            let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
            if name.trim().eq_ignore_ascii_case("respond-async") {
                return Self::None;
            }
            if name.trim().eq_ignore_ascii_case("wait")
                && let Ok(seconds) = value.trim().parse().map(Duration::from_secs)
            {
                preferred = Self::UpTo(seconds.min(settings.longest_wait));
            }
        }
        preferred
    }

    /// Waits until the run is pending or has ended, and returns it. `None`: the time passed, or the client disconnected.
    /// The run continues either way.
    pub(crate) async fn wait(self, execution: Execution, gone: &ClientGone) -> Result<Option<IdleRun>, Problem> {
        let Self::UpTo(longest) = self else { return Ok(None) };
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
        assert_eq!(
            WaitPreference::from_headers(&HeaderMap::new(), &settings),
            WaitPreference::UpTo(settings.default_wait)
        );
        assert_eq!(of("wait=5"), WaitPreference::UpTo(Duration::from_secs(5)));
        assert_eq!(of("handling=lenient, wait = 7"), WaitPreference::UpTo(Duration::from_secs(7)));
        assert_eq!(of("wait=100000"), WaitPreference::UpTo(settings.longest_wait));
        assert_eq!(of("wait=soon"), WaitPreference::UpTo(settings.default_wait));
        assert_eq!(of("respond-async, wait=10"), WaitPreference::None);
    }
}
