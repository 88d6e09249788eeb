//! Symbolic links in paths, for servers that run on this machine.
//!
//! A server that toolgate starts sees the same files as toolgate, unless its program is known to run it elsewhere (in a
//! container, on another machine). Links are resolved immediately before a call. A program that changes them in between
//! is not detected.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use async_trait::async_trait;

use crate::config::{Settings, TransportSettings};
use crate::core::id::ServerId;
use crate::core::policy::Links;
use crate::mcp::StdioSettings;
use crate::ports::PathResolver;

/// Programs that run another program with different files.
const ELSEWHERE: [&str; 22] = [
    "docker",
    "podman",
    "nerdctl",
    "container",
    "kubectl",
    "oc",
    "ssh",
    "mosh",
    "wsl",
    "wsl.exe",
    "bwrap",
    "firejail",
    "chroot",
    "unshare",
    "nsenter",
    "flatpak",
    "lxc",
    "incus",
    "limactl",
    "vagrant",
    "multipass",
    "systemd-nspawn",
];

/// Resolves paths for the servers that share the files of this process.
pub(super) struct LocalPaths {
    local: BTreeSet<ServerId>,
}

impl LocalPaths {
    pub(super) fn new(settings: &Settings) -> Self {
        let is_local = |transport: &TransportSettings| match transport {
            TransportSettings::Stdio(StdioSettings { command, args, .. }) => {
                !std::iter::once(command).chain(args).any(|word| is_elsewhere(word))
            }
            TransportSettings::Http { .. } | TransportSettings::Unavailable { .. } => false,
        };
        let local = settings.servers.iter().filter(|(_, server)| is_local(&server.transport));
        Self { local: local.map(|(id, _)| id.clone()).collect() }
    }
}

/// Whether a word of a command names such a program, also inside a shell command line.
fn is_elsewhere(word: &str) -> bool {
    let words = word.split(|sign: char| sign.is_whitespace() || matches!(sign, ';' | '&' | '|' | '(' | ')'));
    words.filter_map(|word| word.rsplit('/').next()).any(|name| ELSEWHERE.contains(&name))
}

#[async_trait]
impl PathResolver for LocalPaths {
    async fn resolve(&self, server: &ServerId, paths: &[String]) -> Links {
        if !self.local.contains(server) {
            return Links::Unresolvable(format!(
                "the files of server `{server}` are not those of toolgate; `lexicallyWithin` compares the text of a path alone"
            ));
        }
        let paths = paths.to_vec();
        let resolved = tokio::task::spawn_blocking(move || {
            paths
                .into_iter()
                .map(|path| {
                    let to = resolved(&path);
                    (path, to)
                })
                .collect()
        });
        resolved.await.map_or_else(|_| Links::Unresolvable("resolving them failed".to_owned()), Links::Resolved)
    }
}

/// The target of a path. Folders that do not exist have no links. A link whose target does not exist is rejected,
/// because writing through it creates the target.
fn resolved(path: &str) -> Result<String, String> {
    let mut existing = PathBuf::from(path);
    let mut missing: Vec<OsString> = Vec::new();
    loop {
        match existing.symlink_metadata() {
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let Some(Component::Normal(name)) = existing.components().next_back() else {
                    return Err("`..` follows a folder that does not exist".to_owned());
                };
                missing.push(name.to_owned());
                existing.pop();
            }
            Err(error) => return Err(error.kind().to_string()),
        }
    }
    let mut found = existing.canonicalize().map_err(|error| {
        let kind = error.kind();
        if kind == ErrorKind::NotFound { "it contains a dangling link".to_owned() } else { kind.to_string() }
    })?;
    found.extend(missing.iter().rev());
    text(&found)
}

fn text(path: &Path) -> Result<String, String> {
    path.to_str().map(str::to_owned).ok_or_else(|| "its target is not UTF-8".to_owned())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_as_far_as_a_path_exists() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |path: &str| format!("{}/{path}", root.display());
        fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        symlink(root.join("nowhere"), root.join("dangling")).unwrap();
        symlink(root.join("loop"), root.join("loop")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        for (path, expected) in [
            ("real/deep", Some("real/deep")),
            ("link/deep", Some("real/deep")),
            ("link/new/file", Some("real/new/file")),
            ("link/deep/..", Some("real")),
            ("link/../x", Some("x")),
            ("dangling", None),
            ("dangling/x", None),
            ("loop", None),
            ("loop/x", None),
            ("file/x", None),
            ("new/../x", None),
        ] {
            assert_eq!(resolved(&at(path)).ok(), expected.map(at), "{path}");
        }
    }

    #[test]
    fn a_server_in_a_container_is_not_local() {
        for (word, elsewhere) in [
            ("docker", true),
            ("/usr/bin/ssh", true),
            ("cd /x && docker run y", true),
            ("uvx", false),
            ("mcp-docker-files", false),
        ] {
            assert_eq!(is_elsewhere(word), elsewhere, "{word}");
        }
    }
}
