//! Raw wire of a server: bytes and lines as they were, below any SDK. Each mistake becomes a finding where it is read.

pub(crate) mod answer;
pub(super) mod connection;
pub(crate) mod http;
pub(super) mod inbox;
pub(super) mod json;
pub(super) mod lines;
pub(crate) mod log;
pub(super) mod memory;
pub(super) mod param_headers;
pub(crate) mod process;
