//! Probes: what the check sends, and what it concludes from the answers. Each probe is a file.

pub(super) mod http;
pub(super) mod lists;
pub(super) mod requests;
pub(super) mod shutdown;
pub(super) mod start;
pub(super) mod versions;
