//! File permissions: warnings about store and credential files that other users can read. These files contain
//! conversations, tool results and tokens.

use std::path::{Path, PathBuf};

use crate::config::{Settings, StoreSettings};

/// A warning with its remedy for each such file.
pub(super) fn exposed_files(settings: &Settings) -> Vec<String> {
    let warning = |path: &PathBuf| {
        let mode = exposed_mode(path)?;
        let path = path.display();
        Some(format!("{path} can be read by other users (mode {mode:04o}); run `chmod 600 {path}`"))
    };
    sensitive(settings).iter().filter_map(warning).collect()
}

fn sensitive(settings: &Settings) -> Vec<PathBuf> {
    let mut files = vec![settings.credentials.clone()];
    if let StoreSettings::Sqlite { path, .. } = &settings.store {
        // SQLite keeps its write-ahead log and shared memory in files next to the store.
        files.extend(["", "-wal", "-shm"].map(|suffix| {
            let mut file = path.clone().into_os_string();
            file.push(suffix);
            PathBuf::from(file)
        }));
    }
    files
}

#[cfg(unix)]
fn exposed_mode(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

#[cfg(not(unix))]
fn exposed_mode(_path: &Path) -> Option<u32> {
    None
}
