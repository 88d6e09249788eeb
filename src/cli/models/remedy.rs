//! Remedies for failed model calls.

use crate::core::error::ErrorCode;

const REMEDIES: &[(ErrorCode, &str)] = &[
    (ErrorCode::ProviderAuth, "check the model's `api_key`, and that it belongs to this server"),
    (ErrorCode::ProviderBilling, "check the balance and the limits of the account with the provider"),
    (ErrorCode::ProviderRateLimit, "wait a little and try again"),
    (ErrorCode::ProviderUnavailable, "check the model's `base_url`, and that the server is running"),
    (ErrorCode::ProviderTimeout, "try again, or give the model longer `timeouts`"),
    (ErrorCode::ProviderRejected, "check that the server has this `model`, and that it takes what the message names"),
    (ErrorCode::ProviderInvalidResponse, "check that `base_url` leads to an API of the configured kind"),
    (ErrorCode::OutputTruncated, "raise the model's `max_tokens`"),
];

/// The remedy for an error code, if there is one.
pub(super) fn of(code: ErrorCode) -> Option<&'static str> {
    REMEDIES.iter().find(|(known, _)| *known == code).map(|(_, remedy)| *remedy)
}
