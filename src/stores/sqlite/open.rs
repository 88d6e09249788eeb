//! Opening the file: permissions, the SQLite version, the schema.

use std::io;
use std::path::{Path, PathBuf, absolute};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Error, OpenFlags, TransactionBehavior};
use toolgate_ports::StoreError;

use super::fault::{fault, is_busy};
use super::query::query;

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// The steps of the schema. A file records in its `user_version` how many of them it has.
const STEPS: [&str; 15] = [
    include_str!("schema/0001_schema.sql"),
    include_str!("schema/0002_session.sql"),
    include_str!("schema/0003_usage.sql"),
    include_str!("schema/0004_result.sql"),
    include_str!("schema/0005_trigger.sql"),
    include_str!("schema/0006_rule_counter.sql"),
    include_str!("schema/0007_incomplete.sql"),
    include_str!("schema/0008_run_filters.sql"),
    include_str!("schema/0009_event_log.sql"),
    include_str!("schema/0010_stream_ticket.sql"),
    include_str!("schema/0011_span_mark.sql"),
    include_str!("schema/0012_run_webhook.sql"),
    include_str!("schema/0013_quota.sql"),
    include_str!("schema/0014_file.sql"),
    include_str!("schema/0015_feedback.sql"),
];
/// The version of the schema: the number of its steps.
pub(super) const SCHEMA: i64 = STEPS.len() as i64;
/// The statements that a connection keeps prepared: more than a store has.
const PREPARED: usize = 128;

/// The first release in which a reset of the write-ahead log cannot corrupt the database.
const OLDEST_SQLITE: [u32; 3] = [3, 51, 3];

/// What an acknowledged append survives. With either setting no append is ever half-written, and a killed process loses
/// no acknowledged append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power cut or a crash of the operating system: every commit waits for the disk (`synchronous = FULL`).
    #[default]
    PowerCut,
    /// The end of the process, however sudden (`synchronous = NORMAL`). A power cut may lose the last commits; the
    /// journals are then shorter but consistent. Several times faster where `fsync` is slow.
    ProcessCrash,
}

/// How connections to a file are opened.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) file: PathBuf,
    pub(super) busy_timeout: Duration,
    pub(super) durability: Durability,
    pub(super) read_only: bool,
    /// Whether the connection locks the file for itself, because the disk has no room for the shared memory of several.
    pub(super) is_exclusive: bool,
    /// The largest size of the file, for tests of a full disk.
    #[cfg(test)]
    pub(super) max_pages: Option<u32>,
}

impl Options {
    /// Those of the writing connection. Creates the file if it is missing.
    pub(super) fn new(path: &Path, durability: Durability) -> Result<Self, StoreError> {
        // SQLite interprets names such as `:memory:` and `file:...`; it does not interpret an absolute path.
        let file = absolute(path).map_err(|error| cannot_create(path, &error))?;
        create_private(&file).map_err(|error| cannot_create(&file, &error))?;
        Ok(Self {
            file,
            busy_timeout: BUSY_TIMEOUT,
            durability,
            read_only: false,
            is_exclusive: false,
            #[cfg(test)]
            max_pages: None,
        })
    }

    /// Those of a connection that locks the file for itself.
    pub(super) fn exclusive(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { is_exclusive: true, ..Self::new(path, Durability::default())? })
    }

    /// Those of reading connections.
    pub(super) fn reading(&self) -> Self {
        Self { busy_timeout: BUSY_TIMEOUT, read_only: true, ..self.clone() }
    }
}

/// A connection.
pub(super) fn connect(options: &Options) -> Result<Connection, Error> {
    let access = if options.read_only { OpenFlags::SQLITE_OPEN_READ_ONLY } else { OpenFlags::SQLITE_OPEN_READ_WRITE };
    let db = Connection::open_with_flags(&options.file, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.busy_timeout(options.busy_timeout)?;
    db.set_prepared_statement_cache_capacity(PREPARED);
    if options.is_exclusive {
        db.pragma_update(None, "locking_mode", "exclusive")?;
    } else if !options.read_only {
        db.pragma_update(None, "journal_mode", "wal")?;
        let synchronous = match options.durability {
            Durability::PowerCut => "full",
            Durability::ProcessCrash => "normal",
        };
        db.pragma_update(None, "synchronous", synchronous)?;
        #[cfg(test)]
        if let Some(pages) = options.max_pages {
            db.pragma_update(None, "max_page_count", pages)?;
        }
    }
    Ok(db)
}

/// The writing connection, with the schema of this version of toolgate.
pub(super) fn connect_and_migrate(options: &Options) -> Result<Connection, StoreError> {
    assert_version(rusqlite::version())?;
    let mut db = connect_patiently(options).map_err(|error| fault(&options.file, &error))?;
    migrate(&mut db, &options.file)?;
    Ok(db)
}

/// Switching a new file to write-ahead logging ignores the busy timeout, so this retries.
fn connect_patiently(options: &Options) -> Result<Connection, Error> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connect(options) {
            Err(error) if is_busy(&error) && Instant::now() < deadline => std::thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
}

fn assert_version(version: &str) -> Result<(), StoreError> {
    if is_sound(version) {
        return Ok(());
    }
    let [major, minor, patch] = OLDEST_SQLITE;
    Err(StoreError::Unavailable(format!(
        "this toolgate was built with SQLite {version}, and needs {major}.{minor}.{patch} or newer, which no longer \
         damages databases in write-ahead mode; build it with the bundled SQLite"
    )))
}

/// Whether this version of SQLite is safe with a write-ahead log.
pub(super) fn is_sound(version: &str) -> bool {
    let numbers: Vec<u32> = version.split('.').map_while(|part| part.parse().ok()).collect();
    numbers.as_slice() >= OLDEST_SQLITE.as_slice()
}

fn migrate(db: &mut Connection, file: &Path) -> Result<(), StoreError> {
    let name = file.display();
    let failed = |error: Error| fault(file, &error);
    if version(db).map_err(failed)? == SCHEMA {
        return Ok(());
    }
    // One process migrates. The others wait, then find the schema up to date.
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let applied = version(&transaction).map_err(failed)?;
    if applied > SCHEMA {
        return Err(StoreError::Corrupt(format!(
            "a newer toolgate wrote `{name}` (its schema has version {applied}); use that one, or name another file"
        )));
    }
    if applied == 0 {
        let table = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name <> '_sqlx_migrations' LIMIT 1";
        match query(table).optional::<(String,)>(&transaction).map_err(failed)? {
            None => {}
            Some((known,)) if known == "_sqlx_migrations" => {
                return Err(StoreError::Corrupt(format!(
                    "an earlier build of toolgate wrote `{name}`, and this one cannot read it; read it with that build, \
                     and name another file here"
                )));
            }
            Some((table,)) => {
                return Err(StoreError::Corrupt(format!(
                    "`{name}` is a database of another program: it has a table `{table}`; name another file"
                )));
            }
        }
    }
    for step in STEPS.iter().skip(usize::try_from(applied).unwrap_or_default()) {
        transaction.execute_batch(step).map_err(failed)?;
    }
    transaction.pragma_update(None, "user_version", SCHEMA).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// How many steps of the schema the file has.
pub(super) fn version(db: &Connection) -> Result<i64, Error> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn cannot_create(path: &Path, error: &io::Error) -> StoreError {
    if error.kind() == io::ErrorKind::StorageFull {
        return StoreError::Full(format!("`{}` cannot be created ({error}); free some disk space", path.display()));
    }
    StoreError::Unavailable(format!(
        "`{}` cannot be created ({error}); name a file in a directory this user may write to",
        path.display()
    ))
}

/// Creates the file and its directory if they are missing, readable by the current user only, because journals hold
/// conversations. The write-ahead log inherits the mode of the file.
fn create_private(path: &Path) -> io::Result<()> {
    let mut directory = std::fs::DirBuilder::new();
    let mut file = std::fs::OpenOptions::new();
    directory.recursive(true);
    file.create_new(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        directory.mode(0o700);
        file.mode(0o600);
    }
    if let Some(parent) = path.parent() {
        directory.create(parent)?;
    }
    match file.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}
