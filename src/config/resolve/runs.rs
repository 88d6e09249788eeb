//! Resolves the limits of concurrent and queued runs.

use crate::gateway::RunsSettings;
use crate::resolver::Resolver;
use crate::spanned::Located;
use crate::written::Runs;

const MAX_ACTIVE: usize = 256;
const MAX_QUEUED: usize = 10_000;

pub(super) fn resolve(written: Option<&Located<Runs>>, scope: &mut Resolver<'_>) -> RunsSettings {
    let unwritten = Runs::default();
    let written = written.map_or(&unwritten, Located::value);
    let max_active = scope.at_least_one(written.max_active.as_ref(), MAX_ACTIVE);
    RunsSettings {
        max_active,
        max_active_per_tenant: scope.at_least_one(written.max_active_per_tenant.as_ref(), max_active),
        max_queued: written.max_queued.as_ref().map_or(MAX_QUEUED, |queued| *queued.value()),
    }
}
