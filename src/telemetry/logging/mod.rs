//! Log records for the person who operates toolgate: where they go, how they look, which there are.

mod place;
mod sink;
mod stderr;
mod subscriber;

pub use sink::LogSink;
pub use stderr::{Stderr, dropped, flush};
pub use subscriber::{Format, LoggingError, Output, init};
