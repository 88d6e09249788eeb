//! Opening the file: permissions, the SQLite version, the schema.

use std::io;
use std::path::{Path, absolute};
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteLockingMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection, SqlSafeStr};
use tokio::time::Instant;
use toolgate_ports::StoreError;

use super::fault::{fault, is_busy};

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);
const READER_TIMEOUT: Duration = Duration::from_secs(10);

/// The version of the schema.
const SCHEMA: i64 = 5;

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

/// The options of the writing connection.
pub(super) fn options(path: &Path, durability: Durability) -> Result<SqliteConnectOptions, StoreError> {
    // SQLite interprets names such as `:memory:` and `file:...`; it does not interpret an absolute path.
    let path = absolute(path).map_err(|error| cannot_create(path, &error))?;
    create_private(&path).map_err(|error| cannot_create(&path, &error))?;
    let synchronous = match durability {
        Durability::PowerCut => SqliteSynchronous::Full,
        Durability::ProcessCrash => SqliteSynchronous::Normal,
    };
    let options = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous);
    // The few statements repeat all the time, and their parameters hold private content.
    Ok(options.disable_statement_logging())
}

/// A pool of reading connections, opened on first use.
pub(super) fn readers(writing: &SqliteConnectOptions, connections: u32) -> SqlitePool {
    let options = SqliteConnectOptions::new()
        .filename(writing.get_filename())
        .busy_timeout(BUSY_TIMEOUT)
        .read_only(true)
        .disable_statement_logging();
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(READER_TIMEOUT)
        .test_before_acquire(false)
        .connect_lazy_with(options)
}

/// The writing connection, with the schema of this version of toolgate.
pub(super) async fn connect_and_migrate(options: &SqliteConnectOptions) -> Result<SqliteConnection, StoreError> {
    let mut connection = connect(options).await.map_err(|error| fault(options.get_filename(), &error))?;
    let migrated = match assert_version(&mut connection).await {
        Ok(()) => migrate(&mut connection).await.map_err(|error| refused(options.get_filename(), error)),
        Err(error) => Err(error),
    };
    match migrated {
        Ok(()) => Ok(connection),
        Err(error) => {
            drop(connection.close().await);
            Err(error)
        }
    }
}

/// A pool of one connection for a disk without room for the shared memory of several: it locks the file for itself. The
/// schema must be of this version.
pub(super) async fn exclusive(path: &Path) -> Result<SqlitePool, StoreError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .locking_mode(SqliteLockingMode::Exclusive)
        .disable_statement_logging();
    let pool = SqlitePoolOptions::new().max_connections(1).acquire_timeout(READER_TIMEOUT).connect_lazy_with(options);
    let applied = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations").fetch_one(&pool).await;
    let applied: Option<i64> = applied.map_err(|error| fault(path, &error))?;
    match applied == Some(SCHEMA) {
        true => Ok(pool),
        false => Err(StoreError::Full(format!(
            "`{}` has an earlier schema, which cannot be migrated; free some disk space",
            path.display()
        ))),
    }
}

/// Switching a new file to write-ahead logging ignores the busy timeout, so this retries.
async fn connect(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match options.connect().await {
            Err(error) if is_busy(&error) && Instant::now() < deadline => tokio::time::sleep(PAUSE).await,
            outcome => return outcome,
        }
    }
}

async fn assert_version(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let version: String = sqlx::query_scalar("SELECT sqlite_version()")
        .fetch_one(connection)
        .await
        .map_err(|error| StoreError::Unavailable(format!("SQLite does not report its version: {error}")))?;
    if is_sound(&version) {
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

async fn migrate(connection: &mut SqliteConnection) -> Result<(), MigrateError> {
    let schema = include_str!("schema/0001_schema.sql").into_sql_str();
    let session = include_str!("schema/0002_session.sql").into_sql_str();
    let usage = include_str!("schema/0003_usage.sql").into_sql_str();
    let result = include_str!("schema/0004_result.sql").into_sql_str();
    let trigger = include_str!("schema/0005_trigger.sql").into_sql_str();
    let migrations = vec![
        Migration::new(1, "schema".into(), MigrationType::Simple, schema, false),
        Migration::new(2, "session".into(), MigrationType::Simple, session, false),
        Migration::new(3, "usage".into(), MigrationType::Simple, usage, false),
        Migration::new(4, "result".into(), MigrationType::Simple, result, false),
        Migration::new(SCHEMA, "trigger".into(), MigrationType::Simple, trigger, false),
    ];
    let mut migrator = Migrator::with_migrations(migrations);
    // Compares checksums first: a file of a build before the first release has more migrations, but is not newer.
    migrator.set_ignore_missing(true);
    // One process migrates. The others wait, then find the schema up to date.
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    // Not `run`: its bound keeps the future from being `Send` (rust-lang/rust#100013).
    migrator.run_direct(None, &mut *transaction, false).await?;
    let applied: Option<i64> =
        sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations").fetch_one(&mut *transaction).await?;
    match applied {
        Some(newer) if newer > SCHEMA => Err(MigrateError::VersionMissing(newer)),
        Some(_) | None => Ok(transaction.commit().await?),
    }
}

fn refused(file: &Path, error: MigrateError) -> StoreError {
    let name = file.display();
    if let MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) = &error {
        return fault(file, error);
    }
    if let MigrateError::VersionMissing(version) = error {
        return StoreError::Corrupt(format!(
            "a newer toolgate wrote `{name}` (its schema has version {version}); use that one, or name another file"
        ));
    }
    if let MigrateError::VersionMismatch(_) = error {
        return StoreError::Corrupt(format!(
            "an earlier build of toolgate wrote `{name}`, and this one cannot read it; read it with that build, and name \
             another file here"
        ));
    }
    StoreError::Corrupt(format!("the schema of `{name}` is not one of toolgate's: {error}; name another file"))
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
