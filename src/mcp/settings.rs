//! Settings of a server: its transport and its time limits. Plain data, which the composition root makes from the
//! configuration; secrets stay in redacting types.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;
use serde_json::json;
use toolgate_core::json;
use toolgate_core::tool::{self, Endpoint};
use toolgate_core::trace::Propagation;
pub use toolgate_settings::mcp::{ProtocolVersionChoice, Recheck, Start, StdioSettings};

use super::auth::OAuthSettings;
use super::http::egress::Egress;
use super::in_process::InProcess;
use super::pinned::PinnedTools;

/// One configured server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// How to reach it.
    pub transport: Transport,
    /// The time limit from spawning or dialling to the list of tools; default 60 s, because installers run in it.
    pub start_timeout: Duration,
    /// How long a call may be silent; progress resets the time; default 60 s.
    pub call_timeout: Duration,
    /// How long a call may take in total, including progress and waiting for a slot; default 600 s.
    pub total_timeout: Duration,
    /// Whether the operator trusts its annotations; default no.
    pub trusted: bool,
    /// The number of concurrent calls; default 16. Further calls wait.
    pub max_concurrency: usize,
    /// The number of tools of its list that are used; default 10,000.
    pub max_tools: usize,
    /// When it is started; default: by [`Servers::start`](super::Servers::start), with all others.
    pub start: Start,
    /// The protocol version to use; default: detected.
    pub protocol_version: ProtocolVersionChoice,
    /// Whether it may ask a question in the middle of a call; default yes.
    pub elicitation: bool,
    /// Before which calls its tools are listed again; default: calls that were approved after the last list.
    pub recheck: Recheck,
    /// Which parts of a caller's trace context are sent with requests; default all (SEP-414).
    pub propagation: Propagation,
    /// Arguments that the operator sets; default none.
    pub pinned: PinnedTools,
}

/// The ways to reach a server.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A child process that speaks on stdin and stdout.
    Stdio(StdioSettings),
    /// A streamable HTTP endpoint.
    Http(HttpSettings),
    /// A handler in this process.
    InProcess(InProcess),
    /// None: the settings lack something. The reason completes the sentence "the MCP server `x` ...".
    Unavailable(String),
}

/// A server that is dialled.
#[derive(Clone, Debug, Default)]
pub struct HttpSettings {
    pub url: String,
    /// The headers of every request.
    pub headers: BTreeMap<String, SecretString>,
    /// The OAuth settings, where the headers do not grant access.
    pub oauth: Option<OAuthSettings>,
    /// Who controls the address; default the operator, who may place a server anywhere.
    pub egress: Egress,
}

impl Transport {
    /// The identity of an endpoint: another program, other arguments or another address are another server, whatever
    /// its id. Variables and headers are not part of it, so that a new token changes nothing. The description contains
    /// no secret.
    pub(super) fn endpoint(&self) -> Option<Endpoint> {
        let (way, described) = match self {
            Self::Stdio(stdio) => {
                (json!({"command": stdio.command, "args": stdio.args, "cwd": stdio.cwd}), program_in_words(stdio))
            }
            Self::Http(http) => (json!({"url": http.url}), http.in_words()),
            Self::InProcess(_) | Self::Unavailable(_) => return None,
        };
        Some(Endpoint { fingerprint: json::hash(&way), description: described })
    }
}

impl Transport {
    /// The transport that carries its messages. Of an address only host and port.
    pub(super) fn carrier(&self) -> tool::Transport {
        match self {
            Self::Stdio(_) | Self::InProcess(_) | Self::Unavailable(_) => tool::Transport::Pipe,
            Self::Http(http) => {
                let url = Url::parse(&http.url).ok();
                let address = url.as_ref().and_then(|url| url.host_str()).map(str::to_owned);
                tool::Transport::Http { address, port: url.and_then(|url| url.port_or_known_default()) }
            }
        }
    }
}

/// Any of the arguments may be a token.
fn program_in_words(stdio: &StdioSettings) -> String {
    let arguments = match stdio.args.len() {
        0 => "without arguments".to_owned(),
        count => format!("{count} arguments ({})", json::hash(&json!(stdio.args))),
    };
    let directory = stdio.cwd.as_ref().map(|cwd| format!(", directory {}", cwd.display())).unwrap_or_default();
    format!("program {}, {arguments}{directory}", stdio.command)
}

impl HttpSettings {
    /// An endpoint without headers or OAuth.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<SecretString>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// User, query and fragment may be tokens.
    fn in_words(&self) -> String {
        let Ok(mut url) = Url::parse(&self.url) else { return "an address that cannot be read".to_owned() };
        let is_whole = url.username().is_empty() && url.password().is_none();
        let is_whole = is_whole && url.query().is_none() && url.fragment().is_none();
        // The setters fail only for an address that can have neither a user nor a password.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        if is_whole { url.into() } else { format!("{url} (user, query and fragment are not shown)") }
    }
}

impl ServerSettings {
    /// The transport with every other setting at its default.
    pub fn new(transport: Transport) -> Self {
        Self {
            transport,
            start_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(60),
            total_timeout: Duration::from_secs(600),
            trusted: false,
            max_concurrency: 16,
            max_tools: 10_000,
            start: Start::Eager,
            protocol_version: ProtocolVersionChoice::Auto,
            elicitation: true,
            recheck: Recheck::default(),
            propagation: Propagation::ALL,
            pinned: PinnedTools::default(),
        }
    }

    /// A child process with arguments, every other setting at its default.
    pub fn stdio<A: Into<String>>(command: impl Into<String>, args: impl IntoIterator<Item = A>) -> Self {
        StdioSettings::new(command, args).into()
    }

    /// An HTTP endpoint, every other setting at its default.
    pub fn http(url: impl Into<String>) -> Self {
        HttpSettings::new(url).into()
    }
}

impl From<StdioSettings> for ServerSettings {
    fn from(stdio: StdioSettings) -> Self {
        Self::new(Transport::Stdio(stdio))
    }
}

impl From<HttpSettings> for ServerSettings {
    fn from(http: HttpSettings) -> Self {
        Self::new(Transport::Http(http))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(settings: &ServerSettings) -> String {
        settings.transport.endpoint().map(|endpoint| endpoint.description).expect("an endpoint")
    }

    #[test]
    fn an_endpoint_is_described_without_its_secrets() {
        let stdio = described(&ServerSettings::stdio("npx", ["-y", "--token=hunter2"]));
        assert!(stdio.starts_with("program npx, 2 arguments (sha256:") && !stdio.contains("hunter2"), "{stdio}");
        assert_eq!(described(&ServerSettings::stdio("desk", [""; 0])), "program desk, without arguments");
        assert_eq!(described(&ServerSettings::http("https://mcp.example/v1")), "https://mcp.example/v1");
        let http = described(&ServerSettings::http("https://ann:hunter2@mcp.example/v1?key=hunter2#hunter2"));
        assert_eq!(http, "https://mcp.example/v1 (user, query and fragment are not shown)");
        assert_eq!(described(&ServerSettings::http("hunter2")), "an address that cannot be read");
    }

    #[test]
    fn of_an_address_the_record_of_a_call_has_host_and_port_alone() {
        let carrier = |url: &str| ServerSettings::http(url).transport.carrier();
        let at = |address: &str, port| tool::Transport::Http { address: Some(address.into()), port: Some(port) };
        assert_eq!(carrier("https://ann:hunter2@mcp.example/v1?key=hunter2"), at("mcp.example", 443));
        assert_eq!(carrier("http://127.0.0.1:8080/mcp"), at("127.0.0.1", 8080));
        assert_eq!(carrier("hunter2"), tool::Transport::Http { address: None, port: None });
        assert_eq!(ServerSettings::stdio("desk", [""; 0]).transport.carrier(), tool::Transport::Pipe);
    }

    #[test]
    fn a_hidden_part_of_an_endpoint_still_counts_as_a_difference() {
        let hash = |url: &str| ServerSettings::http(url).transport.endpoint().expect("an endpoint").fingerprint;
        assert_ne!(hash("https://mcp.example/?tenant=a"), hash("https://mcp.example/?tenant=b"));
    }
}
