//! Resolution context of one file: its variables, its paths, and the errors found so far.
//!
//! Every method returns a usable value even after an error, so that one pass finds all errors. The settings are
//! discarded if there is any.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;
use serde_json::Value;
use toolgate_core::pattern::{NamePattern, Pattern};
use toolgate_core::tool::result::MIN_RESULT_BYTES;

use super::entries::{EntryPath, Step};
use super::error::{ConfigError, Fault, Source};
use super::expand::{self, Env, ExpandError};
use super::mask::masked;
use super::places::{AdapterSetting, Places};
use super::spanned::{Located, Location, Text};
use super::suggest;

const LONGEST_SECONDS: f64 = 30.0 * 24.0 * 3600.0;

/// The kinds of objects that have a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Model,
    Server,
    Policy,
    Agent,
    Variant,
}

impl Kind {
    /// The word for one of them, and their section in the file.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Model => ("model", "models"),
            Self::Server => ("server", "servers"),
            Self::Policy => ("policy", "policies"),
            Self::Agent => ("agent", "agents"),
            Self::Variant => ("variant", "variants"),
        }
    }
}

/// A file and its context.
pub(super) struct Resolver<'a> {
    pub(super) source: Source,
    /// The base folder of relative paths.
    pub(super) folder: PathBuf,
    pub(super) env: Env<'a>,
    /// The object that is being read, for errors that do not show it.
    subject: Option<String>,
    /// Whether the object that is being read lacks entries with faults.
    is_incomplete: bool,
    faults: Vec<Fault>,
    /// The entries with faults of their form, which the written configuration lacks.
    faulty: BTreeSet<EntryPath>,
    pub(super) places: Places,
    /// A sentence with the place and the remedy of each variable that has no braces.
    pub(super) bare_variables: BTreeSet<String>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(source: Source, folder: &Path, env: Env<'a>) -> Self {
        Self {
            source,
            folder: folder.to_owned(),
            env,
            subject: None,
            is_incomplete: false,
            faults: Vec::new(),
            faulty: BTreeSet::new(),
            places: Places::default(),
            bare_variables: BTreeSet::new(),
        }
    }

    /// The same after faults of the form were found, with the entries that the written configuration lacks.
    pub(super) fn after_faults(self, faults: Vec<Fault>, faulty: BTreeSet<EntryPath>) -> Self {
        Self { faults, faulty, ..self }
    }

    /// A context for another file that this one refers to.
    pub(super) fn of_file(&self, source: Source) -> Self {
        Self { faulty: self.faulty.clone(), ..Self::new(source, &self.folder, self.env) }
    }

    /// Reads an object, and names it as the subject of its errors.
    pub(super) fn about<T>(&mut self, kind: Kind, name: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let (one, section) = kind.words();
        self.subject = Some(format!("{one} `{name}`"));
        let answer = self.within(&[section, name], read);
        self.subject = None;
        answer
    }

    /// Reads the part of the file at this path. If it lacks entries with faults, what else is wrong may follow from that, and
    /// is not reported: only errors in the text of single values are.
    pub(super) fn within<T>(&mut self, path: &[&str], read: impl FnOnce(&mut Self) -> T) -> T {
        let leads_here = |faulty: &EntryPath| faulty.iter().zip(path).all(|(step, key)| is_key(step, key));
        let before = self.is_incomplete;
        self.is_incomplete |= self.faulty.iter().any(leads_here);
        let answer = read(self);
        self.is_incomplete = before;
        answer
    }

    /// Whether the written configuration may lack an object with this name, because its entry or its section has a fault.
    pub(super) fn lacks(&self, kind: Kind, name: &str) -> bool {
        let (_, section) = kind.words();
        self.faulty.iter().any(|faulty| match (kind, &faulty[..]) {
            // Any agent may have it.
            (Kind::Variant, [first, ..]) => is_key(first, Kind::Agent.words().1),
            (_, [first]) => is_key(first, section),
            (_, [first, second]) => is_key(first, section) && (is_key(second, name) || *second == Step::Again),
            (_, [] | [_, _, _, ..]) => false,
        })
    }

    /// Records an error in this file, unless it may be a consequence of another one.
    pub(super) fn fault(&mut self, fault: Fault, place: Option<Location>) {
        if !self.is_incomplete {
            self.value_fault(fault, place);
        }
    }

    /// Records an error in the text of a value, which is one whatever else is missing.
    pub(super) fn value_fault(&mut self, fault: Fault, place: Option<Location>) {
        self.faults.push(fault.at(&self.source, place));
    }

    /// Remembers the place of a setting, for an error that its adapter finds.
    pub(super) fn remember(&mut self, setting: AdapterSetting, place: Option<Location>) {
        self.places.insert(setting, &self.source, place);
    }

    /// Adds the errors and places of another file.
    pub(super) fn absorb(&mut self, other: Resolver<'_>) {
        self.faults.extend(other.faults);
        self.places.extend(other.places);
        self.bare_variables.extend(other.bare_variables);
    }

    /// Adds the errors of a file that this one refers to at that location.
    pub(super) fn absorb_error(&mut self, error: &ConfigError, place: Option<Location>) {
        for fault in error.faults().cloned() {
            match fault.file() {
                Some(_) => self.faults.push(fault),
                // The file could not be read at all, so the reference is wrong.
                None => self.unreadable(fault, place),
            }
        }
    }

    /// Records that a file this one refers to cannot be read.
    pub(super) fn unreadable(&mut self, fault: Fault, place: Option<Location>) {
        self.value_fault(fault.with_further_remedy("it is relative to the configuration file"), place);
    }

    /// The value, or an error if any was recorded: this file's errors first, those of each file from top to bottom.
    pub(super) fn finish<T>(mut self, value: T) -> Result<T, ConfigError> {
        let own = self.source.name();
        let order = |fault: &Fault| {
            let (file, place) = (fault.file().map(str::to_owned), fault.line_and_column());
            (file.as_deref() != Some(own), file, place.is_none(), place)
        };
        self.faults.sort_by_cached_key(order);
        ConfigError::check(self.faults).map(|()| value)
    }

    /// The text with its variables expanded.
    pub(super) fn text(&mut self, text: &Text) -> String {
        self.expanded(text.value(), text.place())
    }

    /// The same of a word of a command. One with spaces may be a script, whose shell expands variables itself.
    pub(super) fn word(&mut self, text: &Text) -> String {
        match text.value().contains(' ') {
            true => self.expanded_braces(text.value(), text.place()),
            false => self.text(text),
        }
    }

    fn expanded(&mut self, text: &str, place: Option<Location>) -> String {
        if let Some(name) = expand::bare_variable(text) {
            let fault = Fault::new(format!("`${name}` is text, because variables have braces"));
            let fault = fault.with_remedy(format!("write `${{{name}}}`")).at(&self.source, place);
            self.bare_variables.insert(fault.plain());
        }
        self.expanded_braces(text, place)
    }

    fn expanded_braces(&mut self, text: &str, place: Option<Location>) -> String {
        expand::expand(text, self.env).unwrap_or_else(|error| {
            let message = match (&error, &self.subject) {
                (ExpandError::Undefined(_), Some(subject)) => format!("{error}; {subject} needs it"),
                (ExpandError::Undefined(_) | ExpandError::Malformed(_), _) => error.to_string(),
            };
            self.value_fault(Fault::new(message).with_remedy(error.remedy()), place);
            text.to_owned()
        })
    }

    pub(super) fn secret(&mut self, text: &Text) -> SecretString {
        self.text(text).into()
    }

    pub(super) fn secrets(&mut self, texts: Option<&BTreeMap<String, Text>>) -> BTreeMap<String, SecretString> {
        texts.into_iter().flatten().map(|(name, text)| (name.clone(), self.secret(text))).collect()
    }

    /// A JSON value with the variables of its strings expanded.
    pub(super) fn json(&mut self, value: &Value, place: Option<Location>) -> Value {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
            Value::String(text) => Value::String(self.expanded(text, place)),
            Value::Array(items) => items.iter().map(|item| self.json(item, place)).collect(),
            Value::Object(members) => {
                members.iter().map(|(name, member)| (name.clone(), self.json(member, place))).collect()
            }
        }
    }

    /// A path, relative to the configuration's folder.
    pub(super) fn path(&mut self, text: &Text) -> PathBuf {
        self.path_of(text.value(), text.place())
    }

    /// The same for text at that location.
    pub(super) fn path_of(&mut self, text: &str, place: Option<Location>) -> PathBuf {
        let path = self.expanded(text, place);
        self.folder.join(path)
    }

    /// A program: a name on the PATH, or a path, which is relative to the configuration's folder.
    pub(super) fn program(&self, command: String) -> String {
        let is_path = Path::new(&command).components().count() > 1;
        if is_path { self.folder.join(command).to_string_lossy().into_owned() } else { command }
    }

    /// An `http` or `https` URL.
    pub(super) fn url(&mut self, text: &Text) -> String {
        let url = self.text(text);
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let has_host = rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '['));
        if !has_host || url.contains(char::is_whitespace) {
            // The expanded text may be a secret. Show the written text, with possible secrets masked.
            let fault = Fault::new(format!("`{}` is not a URL", masked(text.value())));
            let remedy = "write it with its scheme, for example `https://api.example.com/v1`";
            self.value_fault(fault.with_remedy(remedy), text.place());
        }
        url
    }

    /// A number of seconds, greater than 0.
    pub(super) fn seconds(&mut self, text: Option<&Text>, default: u64) -> Duration {
        let Some(text) = text else { return Duration::from_secs(default) };
        let written = self.text(text);
        match written.trim().parse::<f64>() {
            Ok(seconds) if seconds > 0.0 && seconds <= LONGEST_SECONDS => Duration::from_secs_f64(seconds),
            Ok(_) | Err(_) => {
                let fault = Fault::new(format!("`{written}` is not a number of seconds"));
                self.value_fault(
                    fault.with_remedy(format!("write a plain number greater than 0, for example `{default}`")),
                    text.place(),
                );
                Duration::from_secs(default)
            }
        }
    }

    /// A pattern of names.
    pub(super) fn pattern(&mut self, pattern: &str, place: Option<Location>) -> NamePattern {
        if let Err(error) = Pattern::parse(pattern) {
            let fault = Fault::new(format!("`{pattern}` is not a valid pattern: {error}"));
            self.value_fault(
                fault.with_remedy("`*` stands for anything, `?` for one character, `{a,b}` for either"),
                place,
            );
        }
        pattern.into()
    }

    /// Records a name that is not valid in a URL, a file name or a tool name.
    pub(super) fn name(&mut self, kind: &str, name: &str, place: Option<Location>) {
        let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_safe) {
            let fault = Fault::new(format!("`{name}` cannot be the name of {kind}"));
            self.value_fault(fault.with_remedy("use 1 to 64 letters, digits, `-` and `_`"), place);
        }
    }

    /// Records a reference to an unknown object.
    pub(super) fn unknown<'n>(&mut self, kind: Kind, text: &Text, known: impl IntoIterator<Item = &'n str>) {
        let Ok(name) = expand::expand(text.value(), self.env) else {
            return; // Already reported.
        };
        if self.lacks(kind, &name) {
            return;
        }
        let (one, many) = kind.words();
        let remedy = suggest::remedy(&name, known, many);
        self.value_fault(Fault::new(format!("there is no {one} `{name}`")).with_remedy(remedy), text.place());
    }

    /// A count that must not be zero.
    pub(super) fn at_least_one<N: Copy + Default + PartialEq>(&mut self, number: Option<&Located<N>>, default: N) -> N {
        let Some(number) = number else { return default };
        if *number.value() == N::default() {
            self.too_small(1, number.place());
        }
        *number.value()
    }

    /// A size limit of one result. A smaller limit would not fit the note about the omitted rest.
    pub(super) fn result_bytes(&mut self, bytes: &Located<u64>) -> u64 {
        self.at_least(bytes, MIN_RESULT_BYTES as u64)
    }

    /// A number with this minimum.
    pub(super) fn at_least<N: Copy + PartialOrd + Display>(&mut self, number: &Located<N>, least: N) -> N {
        if *number.value() < least {
            self.too_small(least, number.place());
        }
        *number.value()
    }

    fn too_small(&mut self, least: impl Display, place: Option<Location>) {
        let key = place.and_then(|place| self.source.key_before(place));
        let key = key.map_or("this".to_owned(), |key| format!("`{key}`"));
        self.value_fault(Fault::new(format!("{key} has to be at least {least}")), place);
    }

    /// The object that is being read, for errors about all of it.
    pub(super) fn subject(&self) -> String {
        self.subject.clone().unwrap_or_else(|| "this".to_owned())
    }
}

fn is_key(step: &Step, key: &str) -> bool {
    matches!(step, Step::Key(known) if known == key)
}
