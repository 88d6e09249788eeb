//! Options of a check: which server, how long to wait, and which tools may be called.

use std::fs::File;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use toolgate_core::redact::{Secrets, SecretsBuilder, Style, is_telling};
use toolgate_settings::mcp::{ProtocolVersionChoice, StdioSettings};

/// The server to check.
#[derive(Clone, Debug)]
pub enum CheckTarget {
    /// A command that is started several times.
    Stdio(StdioSettings),
    /// A server at a URL, with the headers of every request.
    Http { url: String, headers: Vec<(String, SecretString)> },
}

impl CheckTarget {
    /// The command or the URL, as reports show it. Of a URL the query, which may have secrets, is left out.
    pub fn in_words(&self) -> String {
        match self {
            Self::Stdio(StdioSettings { command, args, .. }) => {
                let words: Vec<&str> = [command.as_str()].into_iter().chain(args.iter().map(String::as_str)).collect();
                words.join(" ")
            }
            Self::Http { url, .. } => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
        }
    }

    /// Values that no report and no wire log may show.
    pub(crate) fn secrets(&self) -> Secrets {
        let mut secrets = SecretsBuilder::default();
        match self {
            Self::Stdio(settings) => {
                for (name, value) in &settings.env {
                    secrets.named(name, value.expose_secret());
                }
                // A variable whose name or value is not Unicode is no reason to end.
                let inherited = std::env::vars_os().filter(|_| settings.inherit_env);
                for (name, value) in inherited.map(|(name, value)| (name.into_string(), value)) {
                    if let Ok(name) = name
                        && is_telling(&name)
                    {
                        secrets.named(&name, &value.to_string_lossy());
                    }
                }
            }
            Self::Http { url, headers } => {
                secrets.address(url);
                headers.iter().for_each(|(_, value)| secrets.credential(value.expose_secret()));
            }
        }
        secrets.build(Style::MESSAGE)
    }
}

/// The tools that may be called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Calls {
    /// None: the check only lists tools.
    #[default]
    Never,
    /// Tools that declare themselves read-only.
    ReadOnly,
    /// All tools, whatever they do.
    All,
    /// These tools, by the server's names for them.
    Only(Vec<String>),
}

/// Time limits, and what counts as slow.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For the first answer of a new process or connection.
    pub start: Duration,
    /// For every other request.
    pub request: Duration,
    /// For a call of a tool.
    pub call: Duration,
    /// For an exit, after stdin ended and again after SIGTERM.
    pub exit: Duration,
    /// The first answer is slow after this time. The shortest limit of a well-known client is 10 s.
    pub slow_start: Duration,
    /// A list is slow after this time.
    pub slow_list: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            start: seconds(60),
            request: seconds(5),
            call: seconds(20),
            exit: seconds(2),
            slow_start: seconds(8),
            slow_list: seconds(2),
        }
    }
}

/// What to check, and how.
#[derive(Debug)]
pub struct CheckOptions {
    pub target: CheckTarget,
    /// A name for the server in reports, before its command or URL.
    pub name: Option<String>,
    /// The protocol versions that are probed: all, those with sessions, or the stateless one.
    pub versions: ProtocolVersionChoice,
    pub calls: Calls,
    pub limits: Limits,
    /// Receives every line in both directions with its time.
    pub wire: Option<File>,
}

impl CheckOptions {
    /// A check of this server that calls no tool.
    pub fn new(target: CheckTarget) -> Self {
        let versions = ProtocolVersionChoice::Auto;
        Self { target, name: None, versions, calls: Calls::Never, limits: Limits::default(), wire: None }
    }
}
