//! SQLite result codes as store errors that name a remedy.

use std::path::Path;

use rusqlite::Error;
use toolgate_ports::StoreError;

/// The error as text: which file, what happened, how to fix it.
pub(super) fn fault(file: &Path, error: &Error) -> StoreError {
    let file = file.display();
    if extended_code(error) == Some(SHARED_MEMORY_SIZE) {
        return StoreError::Full(format!(
            "there is no room for the shared memory file of `{file}` ({error}); free some disk space"
        ));
    }
    match primary_code(error) {
        Some(5 | 6) => unavailable(format!(
            "`{file}` is locked by another process ({error}); stop whatever holds it, a second toolgate or a database shell"
        )),
        Some(8) => unavailable(format!("`{file}` is read-only ({error}); make it and its directory writable")),
        Some(10) => unavailable(format!("`{file}` could not be read or written ({error}); check the disk")),
        Some(13) => StoreError::Full(format!("there is no room for `{file}` to grow ({error}); free some disk space")),
        Some(14) => unavailable(format!(
            "`{file}` cannot be opened ({error}); it must be a file in a directory this user may write to"
        )),
        Some(11) => corrupt(format!("`{file}` is damaged ({error}); restore it from a backup")),
        Some(26) => corrupt(format!("`{file}` is not an SQLite database ({error}); name another file")),
        Some(_) => unavailable(format!("`{file}`: {error}")),
        None => without_code(&file.to_string(), error),
    }
}

/// Whether another connection holds a lock that it may release soon.
pub(super) fn is_busy(error: &Error) -> bool {
    primary_code(error) == Some(5)
}

/// Whether the error comes from the file, its disk or its locks, and not from the data to write.
pub(super) fn is_of_the_file(error: &Error) -> bool {
    match primary_code(error) {
        Some(code) => [5, 6, 8, 10, 11, 13, 14, 26].contains(&code),
        None => false,
    }
}

/// `SQLITE_IOERR_SHMSIZE`: a process that opens the file first allocates its shared memory, which a full disk refuses.
const SHARED_MEMORY_SIZE: i32 = 4874;

/// The result code without its extended bits (<https://www.sqlite.org/rescode.html>).
fn primary_code(error: &Error) -> Option<i32> {
    extended_code(error).map(|code| code & 0xff)
}

fn extended_code(error: &Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}

fn without_code(file: &str, error: &Error) -> StoreError {
    let is_unreadable = matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::InvalidColumnType(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
    );
    let text = format!("`{file}`: {error}");
    if is_unreadable { corrupt(text) } else { unavailable(text) }
}

fn unavailable(why: String) -> StoreError {
    StoreError::Unavailable(why)
}

fn corrupt(what: String) -> StoreError {
    StoreError::Corrupt(what)
}
