//! `toolgate mcp login`: OAuth login to a server, so that runs need no login of their own.

use std::io::IsTerminal;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::super::error::CliError;
use super::super::exit::Exit;
use super::super::output::Output;
use super::super::setup::{self, ConfigFlag};
use super::super::text::list;
use crate::app::{self, AccessError, Login};
use crate::core::id::ServerId;

const EXAMPLES: &str = "\
Examples:
  toolgate mcp login crm
  toolgate mcp login crm --scope contacts:write    requests an additional scope
  toolgate mcp login crm --no-browser              only shows the address to open

Tokens are stored in .toolgate/credentials/tokens.json and refreshed when they expire.";

/// Log in to a server that requires OAuth
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct LogIn {
    /// The server
    #[arg(value_name = "NAME")]
    server: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// Requests this scope too (repeatable)
    #[arg(long, value_name = "SCOPE", value_delimiter = ' ')]
    scope: Vec<String>,

    /// Only shows the address to open
    #[arg(long)]
    no_browser: bool,

    /// How long to wait for the user to finish the login, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,

    /// Prints a line of JSON at the end
    #[arg(long)]
    pub(super) json: bool,
}

/// The result line.
#[derive(Serialize)]
struct LoggedIn<'a> {
    server: &'a ServerId,
    #[serde(flatten)]
    login: &'a Login,
}

impl LogIn {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let settings = setup::settings(&self.config)?;
        let server = ServerId::from(self.server.as_str());
        if !settings.servers.contains_key(&server) {
            let known = list(settings.servers.keys());
            return Err(CliError::not_found(format!("there is no MCP server `{server}`; configured are: {known}"))
                .with_remedy("add it under `servers`; credentials are stored only for a configured server"));
        }
        let opens = !self.no_browser && !self.json && std::io::stderr().is_terminal();
        let show = move |page: &str| {
            Output::of_process().note(format!("Open this address in a browser of this machine:\n\n  {page}\n"));
            if opens {
                open_in_browser(page);
            }
        };
        let timeout = Duration::from_secs(self.timeout);
        let login = app::login(&settings, &server, &self.scope, timeout, show).await?;
        match self.json {
            true => out.json(&LoggedIn { server: &server, login: &login }),
            false => out.line(success_message(&server, &login)),
        }
        Ok(Exit::Done)
    }
}

fn success_message(server: &ServerId, login: &Login) -> String {
    let scopes = match login.scopes.as_slice() {
        [] => String::new(),
        scopes => format!(" for {}", list(scopes)),
    };
    let lasting = match (&login.expires_at, login.renewable) {
        (_, true) => "; it is refreshed when it expires".to_owned(),
        (Some(end), false) => format!("; it expires at {end}, and cannot be refreshed"),
        (None, false) => String::new(),
    };
    format!("logged in to {server}: {} granted access{scopes}{lasting}", login.issuer)
}

impl From<AccessError> for CliError {
    fn from(error: AccessError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// Opens the page if there is a desktop. The terminal shows the address too, so a failure here has no effect.
fn open_in_browser(page: &str) {
    let Some(program) = desktop_opener() else { return };
    let opening =
        Command::new(program).arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Ok(mut child) = opening {
        // The command ends at once or together with the browser. The login does not wait for it.
        std::thread::spawn(move || child.wait());
    }
}

#[cfg(target_os = "macos")]
fn desktop_opener() -> Option<&'static str> {
    Some("open")
}

/// Without a display, the command would start a browser in the terminal and take the terminal over.
#[cfg(not(target_os = "macos"))]
fn desktop_opener() -> Option<&'static str> {
    let has_display = ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    has_display.then_some("xdg-open")
}
