//! Findings about what is here to configure: keys, model servers, and servers of editors.

use super::finding::{Finding, Section, Verdict};
use crate::cli::surroundings::{self, Surroundings};
use crate::cli::text::{block, count, list};

/// What `toolgate init` would find.
pub(super) async fn found() -> Vec<Finding> {
    let section = Section::Environment;
    let Surroundings { keys, model_servers, mcp_files } = surroundings::look().await;
    let mut findings = vec![match keys.is_empty() {
        true => section.finding(Verdict::Note, "keys", "no variable with a key of a provider is set"),
        false => section.finding(Verdict::Ok, "keys", format!("set: {}", list(&keys))),
    }];
    findings.extend(model_servers.iter().map(|server| {
        let message = format!("at {}, the default port of {}", server.base_url, server.program);
        section.finding(Verdict::Ok, "model server", format!("{} {message}", count(server.models.len(), "model")))
    }));
    if model_servers.is_empty() {
        findings.push(section.finding(Verdict::Note, "model server", "not at a default port of this machine"));
    }
    findings.extend(mcp_files.iter().map(|file| match &file.servers {
        Ok(servers) => section.finding(
            Verdict::Ok,
            "MCP servers",
            format!("{}: {}", file.name(), list(servers.iter().map(|server| &server.id))),
        ),
        Err(error) => {
            section.finding(Verdict::Warning, "MCP servers", format!("cannot be read: {}", block(&error.plain())))
        }
    }));
    findings
}
