//! Variable expansion: `${VAR}` and `${VAR:-default}` in text. It happens after parsing, so a value never becomes
//! syntax.

/// Looks up a variable.
pub(super) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Why expansion failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExpandError {
    /// A variable has no value.
    #[error("the environment variable `{0}` is not set")]
    Undefined(String),
    /// The text between the braces is not a variable.
    #[error("`{0}` is not a variable")]
    Malformed(String),
}

impl ExpandError {
    /// How to fix the error.
    pub(super) fn remedy(&self) -> String {
        match self {
            Self::Undefined(name) => format!("set it (`export {name}=…`), or give a default: `${{{name}:-…}}`"),
            Self::Malformed(_) => "write `${NAME}` or `${NAME:-default}`; a literal `${` is written `$${`".into(),
        }
    }
}

/// The text with every variable replaced. A default applies to a variable that is unset or empty; `$${` is a literal
/// `${`. Values are not expanded again.
pub(super) fn expand(text: &str, env: Env<'_>) -> Result<String, ExpandError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = after;
            continue;
        }
        expanded.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            return Err(ExpandError::Malformed(format!("${{{after}")));
        };
        expanded.push_str(&value_of(inside, env)?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// The first `$NAME` that looks like an environment variable, without its `$`. It is text: only braces make a variable.
pub(super) fn bare_variable(text: &str) -> Option<&str> {
    text.match_indices('$').find_map(|(at, _)| {
        let (before, after) = (text.get(..at)?, text.get(at + 1..)?);
        let is_in_word = before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '$' | '\\'));
        let name = after.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
        let is_variable = name.len() > 1 && name.starts_with(|c: char| c.is_ascii_uppercase());
        (is_variable && !is_in_word && !name.contains(|c: char| c.is_ascii_lowercase())).then_some(name)
    })
}

fn value_of(inside: &str, env: Env<'_>) -> Result<String, ExpandError> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    // Editors write `${env:NAME}` in their MCP files.
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return Err(ExpandError::Malformed(format!("${{{inside}}}")));
    }
    match (env(name), default) {
        (Some(value), Some(default)) if value.is_empty() => Ok(default.to_owned()),
        (Some(value), _) => Ok(value),
        (None, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(ExpandError::Undefined(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "A" => Some("1".into()),
            "EMPTY" => Some(String::new()),
            "TRICKY" => Some("${A}: {x: y}".into()),
            _ => None,
        }
    }

    #[test]
    fn variables_defaults_and_escapes_expand() {
        for (text, expected) in [
            ("plain $5 {}", "plain $5 {}"),
            ("a${A}b${A}", "a1b1"),
            ("${env:A}", "1"),
            ("${NOPE:-x y}", "x y"),
            ("${NOPE:-}", ""),
            ("${EMPTY:-x}${EMPTY}", "x"),
            ("$${A}", "${A}"),
            ("${TRICKY}", "${A}: {x: y}"),
        ] {
            assert_eq!(expand(text, &env).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_name_without_braces_is_found() {
        for text in ["$API_KEY", "Bearer $API_KEY", "a ${A} $5 --key=$API_KEY!"] {
            assert_eq!(bare_variable(text), Some("API_KEY"), "{text}");
        }
        for text in ["${API_KEY}", "$$API_KEY", "pa$SWORD", "\\$API_KEY", "$Name", "$name", "$N", "$5", "$", "^a$"] {
            assert_eq!(bare_variable(text), None, "{text}");
        }
    }

    #[test]
    fn what_has_no_value_or_is_no_variable_is_an_error() {
        assert_eq!(expand("${NOPE}", &env), Err(ExpandError::Undefined("NOPE".into())));
        for text in ["${", "${}", "${a b}", "${input:token}", "${1}"] {
            assert!(matches!(expand(text, &env), Err(ExpandError::Malformed(_))), "{text}");
        }
    }
}
