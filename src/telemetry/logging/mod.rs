//! Log records for the operator: their destination, format and content.

mod context;
mod export_layer;
mod run_files;
mod sink;
mod stderr;
mod subscriber;

pub use export_layer::export_to;
pub use run_files::RunLogFiles;
pub use sink::LogSink;
pub use stderr::{Stderr, dropped, erasure, flush, redact, show_above_prompt, temporary_rows};
pub use subscriber::{Format, LoggingError, Output, check_filter, init};
