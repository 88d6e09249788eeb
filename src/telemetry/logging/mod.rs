//! Log records for the operator: their destination, format and content.

mod context;
mod sink;
mod stderr;
mod subscriber;

pub use sink::LogSink;
pub use stderr::{Stderr, dropped, flush};
pub use subscriber::{Format, LoggingError, Output, init};
