//! Log records for the person who operates toolgate: where they go, how they look, which there are.

mod place;
mod sink;
mod subscriber;

pub use sink::LogSink;
pub use subscriber::{Format, LoggingError, init};
