//! Trace context propagation: `OTEL_PROPAGATORS` for the whole program, the settings for one server or model. Only this
//! module reads the variable; senders receive the result.

use super::error::AppError;
use crate::core::trace::Propagation;

const VARIABLE: &str = "OTEL_PROPAGATORS";

/// The formats that the environment enables.
pub fn propagation() -> Result<Propagation, AppError> {
    let propagators = std::env::var(VARIABLE).unwrap_or_default();
    Propagation::parse(&propagators).map_err(|unknown| AppError::Telemetry(format!("{VARIABLE}: {unknown}")))
}
