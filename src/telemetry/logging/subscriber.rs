//! The one subscriber of the process: to stderr, as text for people or as JSON for collectors.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::TryInitError;

use super::stderr::{self, Stderr};

/// How records look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object per line.
    Json,
}

/// How records reach standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// At once: whatever logs waits for the reader.
    Direct,
    /// Through a bounded queue: nothing waits, and lines that do not fit are dropped and counted ([`dropped`](super::dropped)).
    Queued,
}

/// Why there are no log records.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The filter cannot be read.
    #[error(
        "the log filter `{filter}` cannot be read: {source}. Set RUST_LOG to something like `info,toolgate=debug`."
    )]
    Filter {
        /// As it was given.
        filter: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// No thread can be started to write them.
    #[error("no thread can be started to write the log: {0}")]
    Thread(#[from] std::io::Error),
    /// The process has a subscriber already.
    #[error("logging is set up already: {0}")]
    Taken(#[from] TryInitError),
}

/// Sets up logging to stderr, once per process. `RUST_LOG` wins over `level` (a filter such as `warn`), and
/// `TOOLGATE_LOG_FORMAT` (`json` or `text`) over `format`; `env` looks a variable up.
///
/// # Errors
/// The filter cannot be read, or the process logs already.
pub fn init(
    level: &str,
    format: Format,
    output: Output,
    env: impl Fn(&str) -> Option<String>,
) -> Result<(), LoggingError> {
    use tracing_subscriber::util::SubscriberInitExt as _;

    let filter = filter(env("RUST_LOG").as_deref(), level)?;
    if output == Output::Queued {
        stderr::detach()?;
    }
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Stderr)
        // A record that cannot be written is lost. Saying so where it could not be written would be a panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    match chosen_format(env("TOOLGATE_LOG_FORMAT").as_deref(), format) {
        Format::Text => builder.finish().try_init()?,
        Format::Json => builder.json().flatten_event(true).finish().try_init()?,
    }
    Ok(())
}

/// What is shown. Libraries that talk a lot are quiet unless the operator names them.
fn filter(rust_log: Option<&str>, level: &str) -> Result<EnvFilter, LoggingError> {
    const QUIET: &str = "h2=warn,hyper=warn,hyper_util=warn,reqwest=warn,rmcp=warn,sqlx=warn";
    let filter = match rust_log.map(str::trim).filter(|filter| !filter.is_empty()) {
        Some(filter) => format!("{QUIET},{filter}"),
        None => format!("{QUIET},{level}"),
    };
    EnvFilter::try_new(&filter).map_err(|source| LoggingError::Filter { filter, source })
}

fn chosen_format(env: Option<&str>, configured: Format) -> Format {
    match env.map(str::trim) {
        Some("json") => Format::Json,
        Some("text") => Format::Text,
        Some(_) | None => configured,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_log_wins_and_libraries_stay_quiet_until_named() {
        let shown = |rust_log, level| filter(rust_log, level).expect("a filter").to_string();
        assert!(shown(None, "warn").contains("rmcp=warn") && shown(None, "warn").ends_with("warn"));
        assert!(shown(Some("rmcp=trace"), "warn").contains("rmcp=trace"));
        assert!(!shown(Some("rmcp=trace"), "warn").contains("rmcp=warn"));
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_refused_by_name() {
        let refused = filter(Some("toolgate=loud"), "warn").expect_err("refused");
        assert!(refused.to_string().contains("toolgate=loud"), "{refused}");
    }

    #[test]
    fn the_variable_chooses_the_format() {
        assert_eq!(chosen_format(Some("json"), Format::Text), Format::Json);
        assert_eq!(chosen_format(Some("text"), Format::Json), Format::Text);
        assert_eq!(chosen_format(Some("xml"), Format::Json), Format::Json);
        assert_eq!(chosen_format(None, Format::Text), Format::Text);
    }
}
