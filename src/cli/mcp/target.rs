//! Server selection and connection: a configured server, a command, or a URL.
//!
//! Error messages never repeat confidential values (headers, environment variables).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use secrecy::SecretString;

use crate::app::{self, ToolServers};
use crate::cli::error::CliError;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::list;
use crate::config::{
    self, AuthSettings, ProtocolVersionChoice, ServerSettings, Settings, StdioSettings, TransportSettings,
};
use crate::core::id::ServerId;

/// The remedy for a server that exceeded its start budget.
pub(super) const LONGER_START: &str = "--start-timeout SECONDS extends the time, this once";

/// The default id of a server that is not configured.
pub(super) const NAMELESS: &str = "server";

/// Connection flags for a server that is not configured, and the configuration that holds the configured ones.
#[derive(Args, Debug)]
#[command(next_help_heading = "Server")]
pub(super) struct TargetFlags {
    /// A configured server, by its id
    #[arg(long, value_name = "ID", conflicts_with_all = ["url", "command", "program"])]
    server: Option<String>,

    /// A streamable HTTP server
    #[arg(long, conflicts_with_all = ["command", "program"])]
    url: Option<String>,

    /// The command line of a stdio server, as one argument
    #[arg(long, value_name = "LINE", conflicts_with = "program")]
    command: Option<String>,

    /// The id of a server that is not configured; part of the tool names that a model would see
    #[arg(long, value_name = "ID", default_value = NAMELESS)]
    name: String,

    /// Sends an HTTP header with every request; `${NAME}` is read from the environment (repeatable)
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,

    /// Sets an environment variable of the program, or passes one on (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,

    /// Passes the whole environment on to the program
    #[arg(long)]
    inherit_env: bool,

    /// Runs the program in this folder
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Writes every line of both sides with its time to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    wire: Option<PathBuf>,

    /// How long starting or connecting may take [default: the configured time, or 60 s]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    start_timeout: Option<Duration>,

    /// The protocol version: `2026-07-28` (stateless), `2025-11-25` (sessions; also earlier versions), or `auto`
    /// [default: the configured one, or else what the server supports]
    #[arg(long, value_name = "VERSION", value_parser = protocol_version)]
    protocol_version: Option<ProtocolVersionChoice>,

    #[command(flatten)]
    config: ConfigFlag,

    /// Adds the MCP servers of this file, in the format of Claude Desktop, Cursor or VS Code (repeatable)
    #[arg(long, value_name = "FILE")]
    mcp_config: Vec<PathBuf>,

    /// The command of a stdio server, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    program: Vec<String>,
}

/// The selected server.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) id: ServerId,
    /// The connection settings.
    pub(super) settings: ServerSettings,
    /// The folder with stored credentials; unused for a server that is not configured.
    credentials: PathBuf,
}

pub(in crate::cli) struct ConfiguredServers {
    pub(in crate::cli) servers: BTreeMap<ServerId, ServerSettings>,
    /// The folder with their stored credentials.
    pub(in crate::cli) credentials: PathBuf,
}

impl Target {
    /// Opens the server. It connects on first use.
    pub(super) fn open(&self) -> Result<ToolServers, CliError> {
        let settings = [(self.id.clone(), self.settings.clone())].into();
        Ok(ToolServers::new(&settings, &self.credentials, app::propagation()?))
    }
}

impl TargetFlags {
    /// Whether flags or a command select the server.
    pub(super) fn is_given(&self) -> bool {
        self.server.is_some() || self.url.is_some() || self.command.is_some() || !self.program.is_empty()
    }

    /// The value of `--server`.
    pub(super) fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The same flags without `--server`.
    #[must_use]
    pub(super) fn without_server(self) -> Self {
        Self { server: None, ..self }
    }

    /// The configuration with the servers of `--mcp-config`.
    pub(super) fn settings(&self) -> Result<Settings, CliError> {
        let mut settings = setup::settings(&self.config)?;
        settings.servers.extend(setup::servers_of(&self.mcp_config)?);
        Ok(settings)
    }

    /// The flag of the configuration.
    pub(super) fn config(&self) -> &ConfigFlag {
        &self.config
    }

    /// The value of `--wire`.
    pub(super) fn wire(&self) -> Option<&Path> {
        self.wire.as_deref()
    }

    /// Refuses `--wire` where no flag selects one server.
    pub(super) fn refuse_wire(&self) -> Result<(), CliError> {
        match self.wire {
            None => Ok(()),
            Some(_) => Err(CliError::usage("--wire writes the wire of one server")
                .with_remedy("select it with --server or --url, or give its command after `--`")),
        }
    }

    /// Resolves the server from the flags, or from the positional argument that replaces them.
    pub(super) fn target(&self, word: Option<&str>) -> Result<Target, CliError> {
        if let (true, Some(word)) = (self.is_given(), word) {
            return Err(CliError::usage(format!("the server is given twice: as `{word}` and in another way"))
                .with_remedy("leave one of the two out"));
        }
        let mut target = match (self.ad_hoc(word)?, self.server.as_deref().or(word)) {
            (Some(transport), _) => self.named(transport)?,
            (None, Some(id)) => self.configured(id)?,
            (None, None) => {
                return Err(CliError::usage("no server is named")
                    .with_remedy("name a configured one, give its URL, or its command after `--`"));
            }
        };
        if let Some(timeout) = self.start_timeout {
            target.settings.start_timeout = timeout;
        }
        target.settings.protocol_version = self.protocol_version.unwrap_or(target.settings.protocol_version);
        Ok(target)
    }

    fn ad_hoc(&self, word: Option<&str>) -> Result<Option<TransportSettings>, CliError> {
        let url = self.url.as_deref().or(word.filter(|word| word.contains("://")));
        if let Some(url) = url {
            return self.http(url).map(Some);
        }
        let words = match &self.command {
            Some(line) => shlex::split(line)
                .ok_or_else(|| CliError::usage("--command leaves a quote open").with_remedy("close it, or use `--`"))?,
            None => self.program.clone(),
        };
        let mut words = words.into_iter();
        match words.next() {
            Some(program) => self.stdio(program, words.collect()).map(Some),
            None if self.command.is_some() => Err(CliError::usage("--command is empty").with_remedy("name a program")),
            None => Ok(None),
        }
    }

    fn http(&self, url: &str) -> Result<TransportSettings, CliError> {
        let is_for_programs = !self.env.is_empty() || self.inherit_env || self.cwd.is_some();
        if is_for_programs {
            return Err(CliError::usage(
                "--env, --inherit-env and --cwd are for a server that is started, not for a URL",
            ));
        }
        let headers = self.header.iter().map(|header| read_header(header)).collect::<Result<_, _>>()?;
        let auth = AuthSettings::Headers;
        Ok(TransportSettings::Http { url: expanded(url, "the URL")?, headers, auth })
    }

    fn stdio(&self, command: String, args: Vec<String>) -> Result<TransportSettings, CliError> {
        if !self.header.is_empty() {
            return Err(CliError::usage("--header is for a server at a URL, not for one that is started"));
        }
        let env = self.env.iter().map(|variable| read_variable(variable)).collect::<Result<_, _>>()?;
        let (inherit_env, cwd) = (self.inherit_env, self.cwd.clone());
        let mut transport = TransportSettings::Stdio(StdioSettings { command, args, env, inherit_env, cwd });
        setup::meaning_this_program(&mut transport);
        Ok(transport)
    }

    fn named(&self, transport: TransportSettings) -> Result<Target, CliError> {
        let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(is_safe) {
            return Err(CliError::usage(format!("`{}` cannot be the name of a server", self.name))
                .with_remedy("use 1 to 64 letters, digits, `-` and `_`"));
        }
        let (id, settings) = (ServerId::from(self.name.as_str()), ServerSettings::new(transport));
        Ok(Target { id, settings, credentials: PathBuf::new() })
    }

    fn configured(&self, id: &str) -> Result<Target, CliError> {
        if !self.header.is_empty() || !self.env.is_empty() || self.inherit_env || self.cwd.is_some() {
            return Err(CliError::usage(format!("`{id}` is configured; its configuration says how it is reached"))
                .with_remedy("leave --header, --env, --inherit-env and --cwd out, or give a URL or a command"));
        }
        let ConfiguredServers { servers, credentials } = configured(&self.config, &self.mcp_config)?;
        match servers.get_key_value(&ServerId::from(id)) {
            Some((id, settings)) => Ok(Target { id: id.clone(), settings: settings.clone(), credentials }),
            None => {
                let known = list(servers.keys());
                Err(CliError::not_found(format!("there is no MCP server `{id}`; configured are: {known}"))
                    .with_remedy("a server that is not configured is given as a URL, or as a command after `--`"))
            }
        }
    }
}

/// The servers of the configuration and of these files.
pub(super) fn configured(config: &ConfigFlag, files: &[PathBuf]) -> Result<ConfiguredServers, CliError> {
    let Settings { mut servers, credentials, .. } = setup::settings(config)?;
    servers.extend(setup::servers_of(files)?);
    Ok(ConfiguredServers { servers, credentials })
}

fn read_header(text: &str) -> Result<(String, SecretString), CliError> {
    let parts = text.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    let (name, value) = parts.filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
        CliError::usage("a --header lacks its name or its colon").with_remedy("write --header 'NAME: VALUE'")
    })?;
    Ok((name.to_owned(), expanded(value, &format!("the header `{name}`"))?.into()))
}

fn read_variable(text: &str) -> Result<(String, SecretString), CliError> {
    if let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) {
        return Ok((name.to_owned(), value.into()));
    }
    match setup::environment(text) {
        Some(value) => Ok((text.to_owned(), value.into())),
        None if text.contains('=') => {
            Err(CliError::usage("an --env lacks its name").with_remedy("write --env NAME=VALUE, or --env NAME"))
        }
        None => Err(CliError::usage(format!("the environment variable `{text}` is not set"))
            .with_remedy(format!("set it, or write --env {text}=VALUE"))),
    }
}

fn expanded(text: &str, what: &str) -> Result<String, CliError> {
    config::expanded(text, &setup::environment).map_err(|fault| {
        CliError::usage(format!("{what}: {}", fault.message())).with_remedy(fault.remedy().unwrap_or_default())
    })
}

fn protocol_version(text: &str) -> Result<ProtocolVersionChoice, String> {
    match text {
        "auto" => Ok(ProtocolVersionChoice::Auto),
        "2025-11-25" => Ok(ProtocolVersionChoice::Legacy),
        "2026-07-28" => Ok(ProtocolVersionChoice::Modern),
        _ => Err("write auto, 2025-11-25 or 2026-07-28".into()),
    }
}

/// Parses a flag that is a number of seconds.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().trim_end_matches('s').parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "write a number of seconds greater than 0, for example 2.5".into())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use secrecy::ExposeSecret;

    use super::*;

    #[derive(Parser)]
    struct Line {
        word: Option<String>,
        #[command(flatten)]
        reach: TargetFlags,
    }

    fn target(words: &[&str]) -> Result<Target, CliError> {
        let line = Line::try_parse_from(["mcp"].iter().chain(words)).unwrap();
        line.reach.target(line.word.as_deref())
    }

    fn refused(words: &[&str]) -> String {
        target(words).unwrap_err().to_string()
    }

    #[test]
    fn a_command_follows_two_dashes_or_is_one_argument() {
        for words in [&["--", "node", "a b.js", "--port", "1"][..], &["--command", "node 'a b.js' --port 1"]] {
            let Target { id, settings, .. } = target(words).unwrap();
            let TransportSettings::Stdio(StdioSettings { command, args, .. }) = settings.transport else {
                panic!("no program")
            };
            assert_eq!((id.as_str(), command.as_str()), ("server", "node"));
            assert_eq!(args, ["a b.js", "--port", "1"]);
        }
    }

    #[test]
    fn a_command_line_is_split_like_in_a_shell() {
        for (line, expected) in [
            ("node server.js", &["node", "server.js"][..]),
            ("  a   b\tc ", &["a", "b", "c"]),
            (r#"sh -c 'echo "x y"' ''"#, &["sh", "-c", r#"echo "x y""#, ""]),
            (r#"a"b c"d\ e "\"\n""#, &["ab cd e", r#""\n"#]),
            ("a\\\nb c#d # comment", &["ab", "c#d"]),
        ] {
            let TransportSettings::Stdio(StdioSettings { command, args, .. }) =
                target(&["--command", line]).unwrap().settings.transport
            else {
                panic!("no program")
            };
            assert_eq!([&[command][..], &args].concat(), expected, "{line}");
        }
    }

    #[test]
    fn a_command_line_without_a_word_or_with_an_open_quote_is_rejected() {
        for line in ["a 'b", "a \"b", "a\\"] {
            assert_eq!(refused(&["--command", line]), "--command leaves a quote open", "{line}");
        }
        for line in ["", "# comment"] {
            assert_eq!(refused(&["--command", line]), "--command is empty", "{line}");
        }
    }

    #[test]
    fn a_url_needs_no_flag_and_takes_headers() {
        let words = ["http://localhost/mcp", "--name", "here", "--header", "Authorization:Bearer abc:d"];
        let Target { id, settings, .. } = target(&words).unwrap();
        let TransportSettings::Http { url, headers, .. } = settings.transport else { panic!("no URL") };
        assert_eq!((id.as_str(), url.as_str()), ("here", "http://localhost/mcp"));
        assert_eq!(headers["Authorization"].expose_secret(), "Bearer abc:d");
    }

    #[test]
    fn a_program_gets_variables_by_value_or_by_name() {
        let words = ["--env", "LEVEL=a=b", "--env", "PATH", "--inherit-env", "--", "x"];
        let TransportSettings::Stdio(StdioSettings { env, inherit_env, .. }) =
            target(&words).unwrap().settings.transport
        else {
            panic!("no program")
        };
        assert_eq!((env["LEVEL"].expose_secret(), inherit_env), ("a=b", true));
        assert_eq!(env["PATH"].expose_secret(), std::env::var("PATH").unwrap());
    }

    #[test]
    fn conflicting_flags_are_rejected_without_repeating_secrets() {
        assert!(refused(&["--url", "http://a", "--env", "A=sk-secret"]).contains("not for a URL"));
        assert!(refused(&["--header", "A: sk-secret", "--", "x"]).contains("for a server at a URL"));
        assert_eq!(refused(&["http://a", "--header", "sk-secret"]), "a --header lacks its name or its colon");
        assert_eq!(refused(&["--env", "=sk-secret", "--", "x"]), "an --env lacks its name");
        assert!(refused(&["--env", "TOOLGATE_NO_SUCH", "--", "x"]).contains("`TOOLGATE_NO_SUCH` is not set"));
        assert!(refused(&["http://a", "--header", "A: ${TOOLGATE_NO_SUCH}"]).starts_with("the header `A`: "));
        assert!(refused(&["--name", "a b", "--", "x"]).contains("cannot be the name of a server"));
        assert_eq!(refused(&["--command", "a 'b"]), "--command leaves a quote open");
        assert_eq!(refused(&[]), "no server is named");
        assert!(refused(&["shop", "--", "x"]).starts_with("the server is given twice: as `shop`"));
        assert!(Line::try_parse_from(["mcp", "--url", "http://a", "--", "x"]).is_err());
    }

    #[test]
    fn seconds_are_positive() {
        assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2_500)));
        assert_eq!(seconds("3s"), Ok(Duration::from_secs(3)));
        assert!(["0", "-1", "soon", "inf", "NaN"].iter().all(|text| seconds(text).is_err()));
    }
}
