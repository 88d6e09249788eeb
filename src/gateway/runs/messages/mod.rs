//! `/v1/runs/{run}/messages`: lists and adds messages.

pub(super) mod list;
pub(super) mod say;
mod view;
