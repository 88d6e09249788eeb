//! Which parts of a trace context cross the borders of this program: `OTEL_PROPAGATORS` for all of them, the settings for
//! one server or model. Read here alone; whoever sends is told the result.

use super::AppError;
use crate::config::TraceContext;
use crate::core::trace::Propagation;

const VARIABLE: &str = "OTEL_PROPAGATORS";

/// What the environment lets in and out.
pub fn propagation() -> Result<Propagation, AppError> {
    let propagators = std::env::var(VARIABLE).unwrap_or_default();
    Propagation::parse(&propagators).map_err(|unknown| AppError::Telemetry(format!("{VARIABLE}: {unknown}")))
}

/// What a setting lets out.
pub(super) fn allowed(by: TraceContext) -> Propagation {
    match by {
        TraceContext::None => Propagation::NOTHING,
        TraceContext::Traceparent => Propagation::TRACE_CONTEXT,
        TraceContext::All => Propagation::ALL,
    }
}
