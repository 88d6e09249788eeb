//! Model and function names.

use std::borrow::Cow;

const MAX_FUNCTION_NAME_CHARS: usize = 128;

/// The path of a model's method. A model name may include its collection (`models/x`, `tunedModels/x`).
pub(super) fn resource(model: &str, streaming: bool) -> String {
    let collection = if model.contains('/') { "" } else { "models/" };
    let method = if streaming { "streamGenerateContent" } else { "generateContent" };
    format!("{collection}{model}:{method}")
}

/// Whether this is Gemini 3 or later. Those models accept media within a function response and an output schema
/// together with tools, which earlier ones reject; and they reject calls without a signature. `gemini-flash-latest` and
/// similar names refer to the newest model.
pub(super) fn is_gemini_3(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let Some(version) = name.strip_prefix("gemini-") else { return false };
    let major = version.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    major.parse::<u32>().map_or(version.ends_with("-latest"), |major| major >= 3)
}

/// Whether the API accepts a function name: `^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$` (`FunctionDeclaration.name`).
pub(super) fn is_function_name(name: &str) -> bool {
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(starts) && name.len() <= MAX_FUNCTION_NAME_CHARS && name.chars().all(is_name_char)
}

/// The name that a model wrote, or a valid one if the API would reject it and the whole conversation.
pub(super) fn accepted_name(name: &str) -> Cow<'_, str> {
    if is_function_name(name) {
        return Cow::Borrowed(name);
    }
    let safe = name.chars().map(|c| if is_name_char(c) { c } else { '_' });
    Cow::Owned(std::iter::once('_').chain(safe).take(MAX_FUNCTION_NAME_CHARS).collect())
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_name_may_include_its_collection() {
        assert_eq!(resource("gemini-3-pro", true), "models/gemini-3-pro:streamGenerateContent");
        assert_eq!(resource("models/gemini-3-pro", false), "models/gemini-3-pro:generateContent");
        assert_eq!(resource("tunedModels/mine", false), "tunedModels/mine:generateContent");
    }

    #[test]
    fn gemini_3_is_detected_by_name() {
        for name in ["gemini-3-pro-preview", "models/gemini-3.5-flash", "gemini-10", "gemini-flash-latest"] {
            assert!(is_gemini_3(name), "{name}");
        }
        for name in ["gemini-2.5-pro", "gemini-exp-1206", "gemma-3-27b-it", "tunedModels/x", "m"] {
            assert!(!is_gemini_3(name), "{name}");
        }
    }

    #[test]
    fn an_invalid_name_becomes_a_valid_one() {
        for name in ["mcp_shop_get-it", "default_api:look.up", "_"] {
            assert_eq!(accepted_name(name), name);
        }
        for (name, accepted) in [("", "_"), ("no such tool", "_no_such_tool"), ("1st", "_1st"), ("schön", "_sch_n")] {
            assert_eq!(accepted_name(name), accepted);
            assert!(is_function_name(accepted));
        }
        assert!(is_function_name(&accepted_name(&"x".repeat(200))));
    }
}
