//! Addresses of servers in recordings: without the values of variables, without headers, and without credentials.

use std::path::PathBuf;

use super::error::TestError;
use crate::config::{AuthSettings, ServerSettings, StdioSettings, TransportSettings, has_secret};
use crate::core::redact::is_telling;
use crate::lab::recording::{HttpAddress, RecordedServer, StdioAddress};

/// The text in place of a credential.
const REDACTED: &str = "[redacted]";

/// The address of a server that is not configured. Arguments with a telling name, such as `--token`, lose their values, and
/// an address or a word that may be a secret is left out.
pub fn recorded_address(settings: &ServerSettings) -> RecordedServer {
    match &settings.transport {
        TransportSettings::Stdio(stdio) => {
            let address = StdioAddress {
                command: portable(&stdio.command),
                args: without_credentials(&stdio.args),
                env: stdio.env.keys().cloned().collect(),
                cwd: stdio.cwd.as_ref().map(|folder| folder.display().to_string()),
            };
            RecordedServer { stdio: Some(address), ..RecordedServer::default() }
        }
        TransportSettings::Http { url, .. } => {
            let url = if has_secret(url) { REDACTED.to_owned() } else { url.clone() };
            RecordedServer { http: Some(HttpAddress { url }), ..RecordedServer::default() }
        }
        TransportSettings::Unavailable { .. } => RecordedServer::default(),
    }
}

/// The command `toolgate` in place of the path of this program, which differs from one machine to another.
fn portable(command: &str) -> String {
    let is_this_program = std::env::current_exe().is_ok_and(|path| path.as_os_str() == command);
    if is_this_program { "toolgate".to_owned() } else { command.to_owned() }
}

fn without_credentials(args: &[String]) -> Vec<String> {
    let is_flag = |arg: &str| arg.starts_with('-') && is_telling(arg);
    let mut hides_next = false;
    let redacted = args.iter().map(|arg| {
        let hidden = std::mem::replace(&mut hides_next, is_flag(arg) && !arg.contains('='));
        let named = arg.split_once(['=', ':']).filter(|(name, _)| is_telling(name) && !name.contains([' ', '/']));
        match named {
            _ if hidden && !arg.starts_with('-') => REDACTED.to_owned(),
            // The separator is one byte.
            Some((name, _)) => format!("{}{REDACTED}", arg.get(..=name.len()).unwrap_or_default()),
            None if has_secret(arg) => REDACTED.to_owned(),
            None => arg.clone(),
        }
    });
    redacted.collect()
}

/// The settings that reach the server of a recording; `None` if it is one of the configuration.
///
/// # Errors
/// `TestError::Invalid` if a variable is not set, or the address lacks a credential that was not recorded.
pub fn server_settings(id: &str, server: &RecordedServer) -> Result<Option<ServerSettings>, TestError> {
    let transport = match (&server.stdio, &server.http) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(TestError::invalid(format!("the server `{id}` has both `stdio` and `http`"))
                .with_remedy("remove one of the two"));
        }
        (Some(address), None) => stdio(id, address)?,
        (None, Some(address)) => {
            complete(id, &address.url)?;
            TransportSettings::Http {
                url: address.url.clone(),
                headers: Default::default(),
                auth: AuthSettings::Headers,
            }
        }
    };
    Ok(Some(ServerSettings::new(transport)))
}

fn stdio(id: &str, address: &StdioAddress) -> Result<TransportSettings, TestError> {
    address.args.iter().try_for_each(|arg| complete(id, arg))?;
    let mut settings = StdioSettings::new(this_program(&address.command), address.args.clone());
    settings.cwd = address.cwd.as_ref().map(PathBuf::from);
    for name in &address.env {
        let value = std::env::var(name).map_err(|_| {
            TestError::invalid(format!("the environment variable `{name}` of the server `{id}` is not set"))
                .with_remedy("set it, or give the server with its command after `--`")
        })?;
        settings = settings.env(name.as_str(), value);
    }
    Ok(TransportSettings::Stdio(settings))
}

fn complete(id: &str, text: &str) -> Result<(), TestError> {
    if !text.contains(REDACTED) {
        return Ok(());
    }
    Err(TestError::invalid(format!("the address of the server `{id}` had a credential, which is not recorded"))
        .with_remedy("give the server on the command line: its command after `--`, or --url"))
}

/// The path of this program for the command `toolgate`, if this program is toolgate.
pub(super) fn this_program(command: &str) -> String {
    match std::env::current_exe() {
        Ok(path) if command == "toolgate" && path.file_stem().is_some_and(|name| name == "toolgate") => {
            path.to_string_lossy().into_owned()
        }
        Ok(_) | Err(_) => command.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_values_of_variables_and_no_credentials() {
        let args = ["server.js", "--token", "abc", "--api-key=def", "--port", "80", "DB_PASSWORD=x"];
        let args =
            args.into_iter().chain(["--header", "Authorization: Bearer x", "postgres://u:pw@h/db", "http://h:8/mcp"]);
        let stdio = StdioSettings::new("node", args).env("SHOP_TOKEN", "hunter2");
        let recorded = recorded_address(&ServerSettings::new(TransportSettings::Stdio(stdio))).stdio.unwrap();
        let expected =
            ["server.js", "--token", REDACTED, "--api-key=[redacted]", "--port", "80", "DB_PASSWORD=[redacted]"];
        let expected = expected.into_iter().chain(["--header", "Authorization:[redacted]", REDACTED, "http://h:8/mcp"]);
        assert_eq!(
            (recorded.args, recorded.env),
            (expected.map(str::to_owned).collect(), vec!["SHOP_TOKEN".to_owned()])
        );
    }

    #[test]
    fn an_address_without_its_credential_is_refused_with_a_remedy() {
        let address = StdioAddress { command: "node".into(), args: vec![REDACTED.into()], ..StdioAddress::default() };
        let server = RecordedServer { stdio: Some(address), ..RecordedServer::default() };
        let error = server_settings("shop", &server).unwrap_err();
        assert!(error.to_string().contains("had a credential"), "{error}");
        assert!(server_settings("shop", &RecordedServer::default()).unwrap().is_none());
    }
}
