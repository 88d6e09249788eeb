//! Variables of editors in `mcpServers` files that the configuration of toolgate does not have: the inputs of VS Code
//! (`${input:ID}`), which VS Code asks its user for, and the plain variables of Gemini CLI (`$NAME`).
//!
//! An input gets its value from the environment variable of its id in capital letters.

use serde::Deserialize;

use super::expand::Env;
use super::spanned::Text;

/// An input, as VS Code declares it.
#[derive(Deserialize)]
pub(super) struct WrittenInput {
    id: String,
    description: Option<String>,
    default: Option<String>,
}

/// The inputs of a file, and its variables.
pub(super) struct Inputs<'a> {
    declared: Vec<WrittenInput>,
    /// Whether `$NAME` is a variable.
    has_plain_variables: bool,
    env: Env<'a>,
}

impl<'a> Inputs<'a> {
    /// The inputs that a file declares, with values from the environment.
    pub(super) fn new(declared: Vec<WrittenInput>, has_plain_variables: bool, env: Env<'a>) -> Self {
        Self { declared, has_plain_variables, env }
    }

    /// The text with the variables of toolgate. An input without a value is reported in `missing`.
    pub(super) fn rewritten(&self, text: &Text, missing: &mut Vec<String>) -> Text {
        let mut rewritten = String::new();
        let mut rest = text.value().as_str();
        while let Some((before, after)) = rest.split_once('$') {
            rewritten.push_str(before);
            rest = match (after.strip_prefix("{input:").and_then(|input| input.split_once('}')), name_at(after)) {
                (Some((id, after)), _) if !rewritten.ends_with('$') => {
                    match self.value_of(id) {
                        Some(variable) => rewritten.push_str(&variable),
                        None => missing.push(self.reason(id)),
                    }
                    after
                }
                (_, Some((name, after))) if self.has_plain_variables && !rewritten.ends_with('$') => {
                    rewritten.push_str(&format!("${{{name}}}"));
                    after
                }
                _ => {
                    rewritten.push('$');
                    after
                }
            };
        }
        rewritten.push_str(rest);
        text.with(rewritten)
    }

    /// The variable with the value of an input.
    fn value_of(&self, id: &str) -> Option<String> {
        let variable = variable_of(id);
        if (self.env)(&variable).is_some_and(|value| !value.is_empty()) {
            return Some(format!("${{{variable}}}"));
        }
        let default = self.declared(id)?.default.as_ref().filter(|default| !default.is_empty())?;
        Some(default.replace("${", "$${"))
    }

    /// Why a server cannot be used without an input.
    fn reason(&self, id: &str) -> String {
        let described = self.declared(id).and_then(|input| input.description.as_deref());
        let described = described.map(|description| format!(" ({description})")).unwrap_or_default();
        let variable = variable_of(id);
        format!(
            "needs a value for the input `{id}`{described}; set the environment variable `{variable}` (`export \
             {variable}=…`)"
        )
    }

    fn declared(&self, id: &str) -> Option<&WrittenInput> {
        self.declared.iter().find(|input| input.id == id)
    }
}

/// The environment variable of an input: its id in capital letters.
pub(super) fn variable_of(id: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = id.chars().map(letter).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// The name of a variable at the beginning of a text, and the text behind it.
fn name_at(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, after) = text.split_at_checked(end)?;
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins.then_some((name, after))
}
