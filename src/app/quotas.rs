//! Daily quotas of the settings, as the store compares them.

use std::collections::BTreeMap;

use crate::config::{self, QuotaSettings, Settings};
use crate::ports::{Quota, Quotas};

/// The daily quotas of the settings.
pub(super) fn quotas(settings: &Settings) -> Quotas {
    let quota = |&config::Quota { runs, tokens, cost_usd }: &config::Quota| Quota { runs, tokens, cost_usd };
    let of = |written: &BTreeMap<String, config::Quota>| {
        written.iter().map(|(name, written)| (name.clone(), quota(written))).collect()
    };
    let QuotaSettings { tenants, keys } = &settings.gateway.quotas;
    Quotas { tenants: of(tenants), callers: of(keys) }
}
