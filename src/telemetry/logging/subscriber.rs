//! The process-wide `tracing` subscriber: writes to stderr, as text for people or as JSON for collectors.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::{LevelFilter, ParseError};
use tracing_subscriber::util::TryInitError;

use super::export_layer::{ExportFilter, ExportLayer};
use super::stderr::{self, LogLines};

/// The format of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One line of text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// How records reach standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Directly: each log call waits for the reader.
    Direct,
    /// Through a bounded queue: log calls never wait, and lines that do not fit are dropped and counted
    /// ([`dropped`](super::dropped)).
    Queued,
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The filter cannot be parsed.
    #[error(
        "the log filter `{filter}` cannot be read: {source}. Set `log` or RUST_LOG to something like `info,toolgate=debug`."
    )]
    Filter {
        /// The filter as written.
        filter: String,
        source: ParseError,
    },
    /// A word of the setting is no level. As a directive it would log everything that the module of this name reports.
    #[error(
        "`log` has `{word}`, which is no level: use off, error, warn, info, debug or trace, or `{word}=debug` for a module"
    )]
    Level {
        /// The word as written.
        word: String,
    },
    /// The writer thread cannot be started.
    #[error("no thread can be started to write the log: {0}")]
    Thread(#[from] std::io::Error),
    /// The process already has a subscriber.
    #[error("logging is set up already: {0}")]
    Taken(#[from] TryInitError),
}

/// Sets up logging to stderr, once per process. `RUST_LOG` overrides `level` (a filter such as `warn`), and
/// `TOOLGATE_LOG_FORMAT` (`json` or `text`) overrides `format`. `env` looks a variable up.
///
/// # Errors
/// The filter cannot be parsed, or the process already has a subscriber.
pub fn init(
    level: &str,
    format: Format,
    output: Output,
    env: impl Fn(&str) -> Option<String>,
) -> Result<(), LoggingError> {
    use tracing_subscriber::Layer as _;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;

    let filter = filter(env("RUST_LOG").as_deref(), level)?;
    if output == Output::Queued {
        stderr::detach()?;
    }
    let builder = tracing_subscriber::fmt::layer()
        .with_writer(|| LogLines)
        // A record that cannot be written is lost. Reporting that on the same stream would panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal() && env("NO_COLOR").is_none_or(|value| value.is_empty()));
    // A person reads the lines of a command between those of its own output.
    let is_read_along = output == Output::Direct && std::io::stderr().is_terminal() && env("RUST_LOG").is_none();
    let on_stderr = match chosen_format(env("TOOLGATE_LOG_FORMAT").as_deref(), format) {
        Format::Text if is_read_along => builder.without_time().with_target(false).with_filter(filter).boxed(),
        Format::Text => builder.with_filter(filter).boxed(),
        Format::Json => builder.json().flatten_event(true).with_filter(filter).boxed(),
    };
    tracing_subscriber::registry().with(on_stderr).with(ExportLayer.with_filter(ExportFilter)).try_init()?;
    Ok(())
}

/// Whether the log filter of a configuration can be read.
pub fn check_filter(level: &str) -> Result<(), LoggingError> {
    filter(None, level).map(drop)
}

/// The filter. Verbose libraries log only warnings unless the operator names them.
fn filter(rust_log: Option<&str>, level: &str) -> Result<EnvFilter, LoggingError> {
    // Errors of the worker of `rmcp` are part of the reason why a server is not available.
    const QUIET: &str = "h2=warn,hyper=warn,hyper_util=warn,reqwest=warn,rmcp=warn,rmcp::transport::worker=off";
    let filter = match rust_log.map(str::trim).filter(|filter| !filter.is_empty()) {
        Some(filter) => format!("{QUIET},{filter}"),
        None => {
            check_words(level)?;
            format!("{QUIET},{level}")
        }
    };
    EnvFilter::try_new(&filter).map_err(|source| LoggingError::Filter { filter, source })
}

/// Whether each word of the setting `log` is a level or a directive. In RUST_LOG a word alone is a module, by its convention.
fn check_words(level: &str) -> Result<(), LoggingError> {
    let is_clear = |word: &&str| word.is_empty() || word.contains(['=', '[']) || word.parse::<LevelFilter>().is_ok();
    match level.split(',').map(str::trim).find(|word| !is_clear(word)) {
        Some(word) => Err(LoggingError::Level { word: word.to_owned() }),
        None => Ok(()),
    }
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
    fn rust_log_wins_and_libraries_log_warnings_until_named() {
        let shown = |rust_log, level| filter(rust_log, level).expect("a filter").to_string();
        assert!(shown(None, "warn").contains("rmcp=warn") && shown(None, "warn").ends_with("warn"));
        assert!(shown(Some("rmcp=trace"), "warn").contains("rmcp=trace"));
        assert!(!shown(Some("rmcp=trace"), "warn").contains("rmcp=warn"));
    }

    #[test]
    fn an_invalid_filter_is_rejected_by_name() {
        let refused = filter(Some("toolgate=loud"), "warn").expect_err("refused");
        assert!(refused.to_string().contains("toolgate=loud"), "{refused}");
        let refused = filter(None, "toolgate=info, warm").expect_err("refused");
        assert!(refused.to_string().contains("`log` has `warm`, which is no level"), "{refused}");
        let readable = ["INFO", "0", "off", "warn,toolgate=info", "toolgate[run{id=1}]=debug", "[run]", "", "warn,"];
        let unread: Vec<_> = readable.iter().filter_map(|level| filter(None, level).err()).collect();
        assert!(unread.is_empty(), "{unread:?}");
        assert!(filter(Some("hyper"), "warn").is_ok(), "a module alone, by the convention of RUST_LOG");
    }

    #[test]
    fn a_filter_for_toolgate_covers_each_crate() {
        use tracing::{Level, enabled};
        use tracing_subscriber::layer::SubscriberExt as _;

        let filter = filter(None, "warn,toolgate=info").expect("a filter");
        tracing::subscriber::with_default(tracing_subscriber::registry().with(filter), || {
            assert!(enabled!(target: "toolgate_mcp::call", Level::INFO));
            assert!(enabled!(target: "toolgate::run", Level::INFO));
            assert!(!enabled!(target: "another", Level::INFO));
        });
    }

    #[test]
    fn the_variable_chooses_the_format() {
        assert_eq!(chosen_format(Some("json"), Format::Text), Format::Json);
        assert_eq!(chosen_format(Some("text"), Format::Json), Format::Text);
        assert_eq!(chosen_format(Some("xml"), Format::Json), Format::Json);
        assert_eq!(chosen_format(None, Format::Text), Format::Text);
    }
}
