//! Changes of files below given paths, found by polling their times and sizes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The interval between two looks at the files.
const POLL: Duration = Duration::from_millis(300);

/// The most files that are watched.
const MOST_FILES: usize = 20_000;

/// Folders that build tools, test tools and package managers write to.
const LEFT_OUT: [&str; 9] = [
    ".git",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".toolgate",
    ".venv",
    "__pycache__",
    "node_modules",
    "target",
];

/// The state of each file at the last look.
type Snapshot = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// A watch over files and folders.
pub(super) struct Changes {
    /// Files that only their author writes.
    authored: Vec<PathBuf>,
    paths: Vec<PathBuf>,
    /// Files that the command itself writes.
    written: Vec<PathBuf>,
    seen: Snapshot,
}

impl Changes {
    /// A watch that begins now, over `authored` files and further `paths`, without the files that the command writes.
    pub(super) fn new<'a>(
        authored: &[PathBuf],
        paths: &[PathBuf],
        written: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Self {
        let absolute = |path: &PathBuf| std::path::absolute(path).ok();
        let authored: Vec<PathBuf> = authored.iter().filter_map(absolute).collect();
        let written: Vec<PathBuf> = written.into_iter().filter_map(absolute).collect();
        let paths: Vec<PathBuf> = authored.iter().cloned().chain(paths.iter().filter_map(absolute)).collect();
        let seen = snapshot(&paths, &written);
        Self { authored, paths, written, seen }
    }

    /// Takes what changed until now as seen, except the authored files: a server writes to its own folders while it runs,
    /// and every run would cause the next one.
    pub(super) fn skip_changes_of_run(&mut self) {
        let mut now = snapshot(&self.paths, &self.written);
        now.retain(|path, _| !self.authored.contains(path));
        let authored = self.seen.iter().filter(|(path, _)| self.authored.contains(path));
        now.extend(authored.map(|(path, state)| (path.clone(), *state)));
        self.seen = now;
    }

    /// Waits for the next change since the last look.
    pub(super) async fn next(&mut self) {
        loop {
            let now = snapshot(&self.paths, &self.written);
            if now != self.seen {
                self.seen = now;
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

fn snapshot(paths: &[PathBuf], left_out: &[PathBuf]) -> Snapshot {
    let mut found = Snapshot::new();
    paths.iter().for_each(|path| collect(path, &mut found));
    found.retain(|path, _| !left_out.contains(path));
    found
}

fn collect(path: &Path, found: &mut Snapshot) {
    let is_left_out = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| LEFT_OUT.contains(&name));
    let Ok(metadata) = std::fs::metadata(path) else { return };
    if is_left_out || found.len() >= MOST_FILES {
        return;
    }
    if metadata.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        return entries.for_each(|entry| collect(&entry.path(), found));
    }
    found.insert(path.to_owned(), (metadata.modified().ok(), metadata.len()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_and_a_new_file_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        std::fs::write(&file, "1").unwrap();
        let paths = vec![folder.path().to_owned()];
        let first = snapshot(&paths, &[]);
        assert_eq!(first, snapshot(&paths, &[]));
        std::fs::write(&file, "12").unwrap();
        let second = snapshot(&paths, &[]);
        assert_ne!(first, second);
        std::fs::create_dir(folder.path().join("target")).unwrap();
        std::fs::write(folder.path().join("target/b.txt"), "").unwrap();
        assert_eq!(second, snapshot(&paths, &[]));
    }
    #[tokio::test]
    async fn changes_of_a_run_are_skipped_unless_they_are_in_scenario_files() {
        let folder = tempfile::tempdir().unwrap();
        let (scenario, data) = (folder.path().join("s.yaml"), folder.path().join("notes.db"));
        std::fs::write(&scenario, "1").unwrap();
        let mut changes = Changes::new(std::slice::from_ref(&scenario), &[folder.path().to_owned()], []);
        let is_quiet = async |changes: &mut Changes| tokio::time::timeout(POLL / 2, changes.next()).await.is_err();
        std::fs::write(&data, "12").unwrap();
        changes.skip_changes_of_run();
        assert!(is_quiet(&mut changes).await);
        std::fs::write(&scenario, "12").unwrap();
        changes.skip_changes_of_run();
        assert!(!is_quiet(&mut changes).await);
        std::fs::write(&data, "123").unwrap();
        assert!(!is_quiet(&mut changes).await);
    }
}
