//! `/v1/runs/{run}/messages`: what was said in a run, and saying something more.

pub(super) mod list;
pub(super) mod say;
mod view;
