//! Tool of a report, with its row of the provider matrix.

use serde::Serialize;

/// A tool of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolRow {
    pub name: String,
    /// Estimate of the tokens that its definition takes in a request to a model.
    pub tokens: usize,
    /// How it fits each provider.
    pub providers: Vec<ProviderFit>,
}

/// How a tool fits a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// As it is.
    Whole,
    /// Without rules that the provider does not understand.
    Lossy,
    /// Not at all.
    Refused,
}

/// A cell of the matrix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProviderFit {
    pub provider: &'static str,
    pub fit: Fit,
    /// What is refused or lost, each with its place in the tool's definition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

/// Something that a provider refuses or loses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// JSON pointer into the tool's definition.
    pub pointer: String,
    pub text: String,
}
