//! YAML parsing (JSON is YAML) into types, with errors that name a remedy.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_saphyr::{DuplicateKeyPolicy, Error};

use super::entries::{EntryPath, NullPolicy, Pass, Step};
use super::error::{ConfigError, Fault, Source};
use super::jsonc::without_comments;
use super::parse_fault::{NO_MAPPING, ParseFault, parse_fault};

/// The most faults of one file that are reported.
const MAX_FAULTS: usize = 50;

/// The largest file that is read.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Reads a file as text.
pub(super) fn read(path: &Path) -> Result<Source, Fault> {
    let name = path.display().to_string();
    let failed = |reason: String| Fault::new(format!("`{name}` cannot be read: {reason}"));
    let unreadable = |error: std::io::Error| match error.kind() == ErrorKind::NotFound {
        true => Fault::new(format!("there is no file `{name}`")).with_remedy("check the path"),
        false => failed(error.kind().to_string()).with_remedy("check the path and the permissions of the file"),
    };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(failed("it is a folder".to_owned()).with_remedy("name a file in it"));
    }
    if metadata.len() > MAX_BYTES {
        return Err(failed(format!("it is larger than {} MiB", MAX_BYTES / 1024 / 1024)));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8 text".into()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(Source::new(name, text))
}

/// What the passes over a source found.
pub(super) struct Reading<T> {
    /// The value without the faulty entries; `None` if the source as a whole cannot be read.
    pub(super) value: Option<T>,
    pub(super) faults: Vec<Fault>,
    /// The entries with faults, which the value lacks.
    pub(super) faulty: BTreeSet<EntryPath>,
}

/// Parses the whole source. A key without a value is an error.
pub(super) fn parse<T: DeserializeOwned>(source: &Source) -> Result<T, ConfigError> {
    let is_blank = |line: &str| matches!(line.trim(), "" | "---" | "...") || line.trim_start().starts_with('#');
    if source.text().lines().all(is_blank) {
        return Err(Fault::new("the file is empty").with_remedy("write something into it").at(source, None).into());
    }
    parse_part(source, source.text())
}

/// Parses a part of the source whose lines have the same numbers as in the whole.
pub(super) fn parse_part<T: DeserializeOwned>(source: &Source, text: &str) -> Result<T, ConfigError> {
    read_entries(source, text, NullPolicy::Nowhere).complete()
}

/// Reads the whole source, whose sections may be empty.
pub(super) fn read_sections<T: DeserializeOwned>(source: &Source) -> Reading<T> {
    read_entries(source, source.text(), NullPolicy::Below)
}

impl<T> Reading<T> {
    /// The value, or every fault.
    pub(super) fn complete(self) -> Result<T, ConfigError> {
        ConfigError::check(self.faults)?;
        self.value.ok_or_else(|| Fault::new("the file cannot be read").into())
    }
}

/// Reads in passes, each without the entries in which the passes before it found faults.
fn read_entries<T: DeserializeOwned>(source: &Source, text: &str, blank: NullPolicy) -> Reading<T> {
    let (mut faults, mut faulty) = (Vec::<Fault>::new(), BTreeSet::<EntryPath>::new());
    loop {
        let pass = Pass::new(&faulty);
        let read = read_as(text, DuplicateKeyPolicy::PassThrough, |yaml| pass.read(yaml, blank));
        let path = pass.failed();
        let error = match read {
            Ok(value) => return Reading { value: Some(value), faults, faulty },
            Err(error) => error,
        };
        let ParseFault { fault, beside } = parse_fault(&error, source, &path);
        let is_known = faults.iter().any(|known| known.plain() == fault.plain() || follows(&fault, known));
        if !is_known && !is_consequence(&error, &path, &faulty) {
            faults.push(fault);
        }
        // The parser stops again at an error of the syntax.
        if is_known || path.is_empty() || faults.len() == MAX_FAULTS || !faulty.insert(path) {
            return Reading { value: None, faults, faulty };
        }
        faulty.extend(beside);
    }
}

/// Whether a fault is of the line after another one, whose colon is missing: the parser reads on in that line.
fn follows(fault: &Fault, before: &Fault) -> bool {
    let line = |fault: &Fault| fault.line_and_column().map_or(0, |(line, _)| line);
    fault.message().contains(NO_MAPPING) && line(fault) == line(before) + 1
}

/// Whether a key is missing from a mapping that lacks a faulty entry: that one may be the key, misspelled.
fn is_consequence(error: &Error, path: &[Step], faulty: &BTreeSet<EntryPath>) -> bool {
    let is_missing = matches!(error.without_snippet(), Error::SerdeMissingField { .. });
    is_missing && faulty.iter().any(|inner| inner.len() == path.len() + 1 && inner.starts_with(path))
}

/// Reads a file that was written for another program, which may accept comments in JSON.
pub(super) fn read_foreign(path: &Path) -> Result<Source, Fault> {
    let source = read(path)?;
    Ok(Source::new(source.name(), without_comments(source.text())))
}

/// Parses the whole source of a file that was written for another program: there `null` may be valid.
pub(super) fn parse_foreign<T: DeserializeOwned>(source: &Source) -> Result<T, Fault> {
    read_as(source.text(), DuplicateKeyPolicy::Error, |yaml| T::deserialize(yaml))
        .map_err(|error| parse_fault(&error, source, &[]).fault)
}

fn read_as<T>(
    text: &str,
    duplicate_keys: DuplicateKeyPolicy,
    read: impl for<'de, 'e> FnOnce(serde_saphyr::Deserializer<'de, 'e>) -> Result<T, Error>,
) -> Result<T, Error> {
    // YAML 1.2: `no` and `y` are text, even where a schema lists them; `007` is not a number.
    let options = serde_saphyr::options! {
        with_snippet: false,
        duplicate_keys: duplicate_keys,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, read)
}
