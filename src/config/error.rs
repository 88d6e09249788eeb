//! Configuration errors: file, line, column, and how to fix each.

use std::fmt;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode, SourceSpan};

use super::mask::masked;
use super::spanned::Location;

/// A file as it was read. Its name is the path as the user gave it.
#[derive(Clone)]
pub(super) struct Source(Arc<SourceText>);

struct SourceText {
    text: String,
    /// The same text, byte for byte, with secrets replaced by asterisks.
    shown: NamedSource<String>,
}

/// One configuration error.
#[derive(Clone)]
pub struct Fault {
    message: String,
    help: Option<String>,
    source: Option<Source>,
    place: Option<Location>,
}

/// Every error that one pass can find; never empty. A file that cannot be parsed reports one error. `miette` renders it
/// with source lines and carets, [`ConfigError::plain`] with one line per error.
#[derive(Clone)]
pub struct ConfigError {
    first: Box<Fault>,
    others: Vec<Fault>,
}

impl Source {
    pub(super) fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let shown = NamedSource::new(name.into(), masked(&text));
        Self(Arc::new(SourceText { text, shown }))
    }

    pub(super) fn name(&self) -> &str {
        self.0.shown.name()
    }

    pub(super) fn text(&self) -> &str {
        &self.0.text
    }

    /// The key whose value begins at a place on the same line.
    pub(super) fn key_before(&self, place: Location) -> Option<&str> {
        let line = self.text().lines().nth(place.line - 1)?;
        let (end, _) = line.char_indices().nth(place.column - 1)?;
        let key = line.get(..end)?.trim_end().strip_suffix(':')?;
        key.rsplit([' ', '{', ',']).next()
    }

    /// The byte range of a place, cut at the end of its line.
    fn span(&self, place: Location) -> SourceSpan {
        let before: usize = self.text().split_inclusive('\n').take(place.line - 1).map(str::len).sum();
        let line = self.text().get(before..).unwrap_or_default().lines().next().unwrap_or_default();
        let byte = |chars: usize| line.char_indices().nth(chars).map_or(line.len(), |(index, _)| index);
        let (begin, end) = (byte(place.column - 1), byte(place.column - 1 + place.length));
        SourceSpan::new((before + begin).into(), end - begin)
    }
}

impl Fault {
    /// An error without a place.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, source: None, place: None }
    }

    /// Adds a remedy.
    pub(super) fn with_remedy(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Appends to the remedy.
    pub(super) fn with_further_remedy(self, help: &str) -> Self {
        let help = self.help.iter().map(String::as_str).chain([help]).collect::<Vec<_>>().join("; ");
        self.with_remedy(help)
    }

    /// Sets the file and the place of the error.
    pub(super) fn at(self, source: &Source, place: Option<Location>) -> Self {
        Self { source: Some(source.clone()), place, ..self }
    }

    /// The error message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How to fix the error.
    pub fn remedy(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The file, as the user named it.
    pub fn file(&self) -> Option<&str> {
        self.source.as_ref().map(Source::name)
    }

    /// Line and column, both from 1.
    pub fn line_and_column(&self) -> Option<(usize, usize)> {
        self.place.map(|place| (place.line, place.column))
    }
}

impl ConfigError {
    /// An error made of these faults; `Ok` if the list is empty.
    pub(super) fn check(faults: Vec<Fault>) -> Result<(), Self> {
        let mut faults = faults.into_iter();
        match faults.next() {
            None => Ok(()),
            Some(first) => Err(Self { first: Box::new(first), others: faults.collect() }),
        }
    }

    /// Every error, in the order found.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        std::iter::once(&*self.first).chain(&self.others)
    }

    /// The file and the number of its errors, if there are several.
    pub fn counted(&self) -> Option<String> {
        let errors = self.others.len() + 1;
        match self.first.file() {
            _ if errors == 1 => None,
            Some(file) if self.faults().all(|fault| fault.file() == Some(file)) => {
                Some(format!("{file} has {errors} errors"))
            }
            Some(_) | None => Some(format!("the configuration has {errors} errors")),
        }
    }

    /// One line per error: `file:line:column: message (remedy)`.
    pub fn plain(&self) -> String {
        let lines: Vec<String> = self.faults().map(Fault::plain).collect();
        lines.join("\n")
    }
}

impl Fault {
    pub(super) fn plain(&self) -> String {
        let place = match (self.file(), self.line_and_column()) {
            (Some(file), Some((line, column))) => format!("{file}:{line}:{column}: "),
            (Some(file), None) => format!("{file}: "),
            (None, _) => String::new(),
        };
        let help = self.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("{place}{}{help}", self.message)
    }
}

impl From<Fault> for ConfigError {
    fn from(fault: Fault) -> Self {
        Self { first: Box::new(fault), others: Vec::new() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plain())
    }
}

impl std::error::Error for Fault {}

impl Diagnostic for Fault {
    fn severity(&self) -> Option<Severity> {
        Some(Severity::Error)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        // Without a place, no source line is shown.
        self.place.and(self.source.as_ref()).map(|source| &source.0.shown as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.source.as_ref()?.span(self.place?);
        Some(Box::new(std::iter::once(LabeledSpan::new_primary_with_span(None, span))))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.counted(), self.first.file()) {
            (Some(counted), _) => write!(f, "{counted}; the first: {}", self.first),
            (None, Some(file)) if self.first.place.is_none() => write!(f, "{file}: {}", self.first),
            (None, _) => fmt::Display::fmt(&self.first, f),
        }
    }
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plain())
    }
}

impl std::error::Error for ConfigError {}

impl Diagnostic for ConfigError {
    fn severity(&self) -> Option<Severity> {
        Some(Severity::Error)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Diagnostic::help(&*self.first)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.first.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.first.labels()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.others.is_empty() {
            return None;
        }
        Some(Box::new(self.others.iter().map(|fault| fault as &dyn Diagnostic)))
    }
}
