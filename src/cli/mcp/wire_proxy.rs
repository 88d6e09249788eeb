//! `--wire FILE` of the commands that use the MCP client of toolgate: the fault proxy, without a fault, writes the wire.

use std::fs::{File, OpenOptions};
use std::path::Path;

use super::check::check_target;
use super::target::{Target, TargetFlags};
use crate::cli::error::CliError;
use crate::config::{ServerSettings, StdioSettings, TransportSettings};
use crate::core::error::ErrorCode;
use crate::core::id::ServerId;
use crate::lab::check::CheckTarget;
use crate::lab::fault_proxy::{self, ProxyOptions};

/// The server that the flags select. With `--wire` it is reached through a proxy that writes the wire.
pub(super) fn target(reach: &TargetFlags, word: Option<&str>) -> Result<Target, CliError> {
    let mut target = reach.target(word)?;
    if let Some(file) = reach.wire() {
        create(file)?;
        insert_proxy(&target.id, &mut target.settings, file)?;
    }
    Ok(target)
}

/// Empties the wire file, to which each proxy appends.
pub(super) fn create(file: &Path) -> Result<(), CliError> {
    File::create(file).map(drop).map_err(|error| CliError::file("the wire file", file, &error))
}

/// Puts the proxy before a server. A command becomes one of `toolgate mcp break`, which starts it; a URL becomes that of a
/// listener of this process.
pub(super) fn insert_proxy(id: &ServerId, server: &mut ServerSettings, file: &Path) -> Result<(), CliError> {
    let unwritable = |error: std::io::Error| CliError::file("the wire file", file, &error);
    match check_target(id, server, "--wire")? {
        CheckTarget::Stdio(settings) => {
            // The server may have another working directory.
            let file = std::path::absolute(file).map_err(unwritable)?;
            server.transport = TransportSettings::Stdio(behind_proxy(settings, &file)?);
        }
        CheckTarget::Http { url, headers } => {
            let wire = OpenOptions::new().append(true).open(file).map_err(unwritable)?;
            let options = ProxyOptions { wire: Some(wire), ..ProxyOptions::default() };
            let internal = |error: std::io::Error| CliError::new(ErrorCode::Internal, error.to_string());
            let (listener, own) = fault_proxy::listen(0).map_err(internal)?;
            tokio::spawn(async move {
                let served = fault_proxy::serve(listener, &url, &headers, options, std::future::pending()).await;
                if let Err(error) = served {
                    tracing::error!(%error, "failed to serve the wire proxy");
                }
            });
            if let TransportSettings::Http { url, .. } = &mut server.transport {
                *url = own;
            }
        }
    }
    Ok(())
}

/// The command of a proxy that starts this server. Its environment has all variables of the server, and the names of
/// those whose values are secrets.
fn behind_proxy(settings: StdioSettings, file: &Path) -> Result<StdioSettings, CliError> {
    let myself = std::env::current_exe().map_err(|error| CliError::new(ErrorCode::Internal, error.to_string()))?;
    let file = file.display().to_string();
    let mut args: Vec<String> = ["mcp", "break", "--wire", &file, "--inherit-env"].map(String::from).into();
    args.extend(settings.env.keys().map(|name| format!("--env={name}")));
    args.push("--".into());
    args.push(settings.command.clone());
    args.extend(settings.args.iter().cloned());
    Ok(StdioSettings { command: myself.to_string_lossy().into_owned(), args, ..settings })
}
