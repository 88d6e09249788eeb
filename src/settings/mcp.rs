//! Settings of an MCP server that a configuration and an application share.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;

/// Variables that every program may have.
const HARMLESS: &[&str] = &["PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "SHELL"];
/// Paths of certificate bundles, and the hosts that are reached without a proxy: programs of a company's network need
/// them, and they contain no secrets.
const NETWORK: &[&str] = &[
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NO_PROXY",
    "no_proxy",
];
/// Whether every program gets this environment variable, unless it gets all of them.
pub fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || NETWORK.contains(&name) || name.starts_with("LC_")
}

/// A server that is started as a child process.
#[derive(Clone, Debug, Default)]
pub struct StdioSettings {
    /// The program, by path or by name in `PATH`.
    pub command: String,
    pub args: Vec<String>,
    /// Environment variables besides the harmless few that every program needs (`PATH`, `HOME`, locale and the like).
    pub env: BTreeMap<String, SecretString>,
    /// Whether it inherits the whole environment of toolgate; default no, because that contains other secrets.
    pub inherit_env: bool,
    /// Its working directory; default: that of toolgate.
    pub cwd: Option<PathBuf>,
}

impl StdioSettings {
    /// A program with arguments, in toolgate's directory, with the harmless variables only.
    pub fn new<A: Into<String>>(command: impl Into<String>, args: impl IntoIterator<Item = A>) -> Self {
        Self { command: command.into(), args: args.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<SecretString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }
}

/// The value of an argument that the operator sets.
#[derive(Clone)]
pub enum PinnedValue {
    /// A value that people may see. It is part of the tool's definition: with another value, approvals of the tool do not
    /// hold.
    Plain(Value),
    Secret(SecretString),
}

impl fmt::Debug for PinnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PinnedValue")
    }
}

/// Protocol version of an MCP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "McpProtocolVersion")]
pub enum ProtocolVersionChoice {
    /// Detected, with one additional request at the first connection.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// 2025-11-25 or an earlier version: the protocol with sessions.
    #[serde(rename = "2025-11-25")]
    Legacy,
    /// 2026-07-28: the stateless protocol.
    #[serde(rename = "2026-07-28")]
    Modern,
}

/// Before which calls toolgate refreshes a server's list of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RecheckTools")]
pub enum Recheck {
    /// Before calls that an approver approved or a grant covers since the last refresh.
    #[default]
    Approved,
    /// Before every call.
    Always,
    /// Before no call.
    Never,
}

/// When to start a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "McpStart")]
pub enum Start {
    /// At startup of a long-running command.
    Eager,
    /// On first use.
    Lazy,
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Debug)]
pub enum ClientProof {
    Secret(SecretString),
    /// With a signed assertion (`private_key_jwt`).
    PrivateKey {
        pem: SecretString,
        /// The signature algorithm.
        algorithm: SigningAlgorithm,
    },
}

/// Signature algorithm of client assertions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum SigningAlgorithm {
    /// RSA with SHA-256.
    #[default]
    Rs256,
    /// RSA with SHA-384.
    Rs384,
    /// RSA with SHA-512.
    Rs512,
    /// ECDSA on P-256.
    Es256,
    /// ECDSA on P-384.
    Es384,
}
