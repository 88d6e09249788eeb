//! OpenInference content switches, from the environment. Content that the configuration hides stays hidden: a switch
//! only hides more, or repeats visible content under GenAI names. A value that is neither `true` nor `false` is an
//! error, because the operator meant to hide content.

use super::SettingsError;
use crate::spans::SpanContent;

const PREFIX: &str = "OPENINFERENCE_HIDE_";
const CAPTURE: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// The switches that hide content.
const HIDING: [&str; 14] = [
    "INPUTS",
    "OUTPUTS",
    "INPUT_MESSAGES",
    "OUTPUT_MESSAGES",
    "INPUT_IMAGES",
    "INPUT_TEXT",
    "OUTPUT_TEXT",
    "PROMPTS",
    "CHOICES",
    "LLM_INVOCATION_PARAMETERS",
    "LLM_TOOLS",
    "EMBEDDINGS_VECTORS",
    "EMBEDDINGS_TEXT",
    "RETRIEVAL_DOCUMENTS",
];

/// The content of spans according to the configuration and the environment; `env` looks a variable up.
pub(super) fn switched(
    content: SpanContent,
    env: impl Fn(&str) -> Option<String>,
) -> Result<SpanContent, SettingsError> {
    let set = |name: &str| env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let is_on = |name: &str| match set(name) {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
        Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
        Some(value) => Err(SettingsError::Switch { name: name.to_owned(), value }),
    };
    let hides = |what: &str| is_on(&format!("{PREFIX}{what}"));
    let mut mask = content.mask;
    if let Some(chars) = set("OPENINFERENCE_BASE64_IMAGE_MAX_LENGTH") {
        mask.image_chars = chars.parse().map_err(|_| SettingsError::ImageLength(chars))?;
    }
    mask.input_messages |= hides("INPUT_MESSAGES")?;
    mask.output_messages |= hides("OUTPUT_MESSAGES")?;
    mask.input_text |= hides("INPUT_TEXT")?;
    mask.output_text |= hides("OUTPUT_TEXT")?;
    mask.input_images |= hides("INPUT_IMAGES")?;
    mask.invocation_parameters |= hides("LLM_INVOCATION_PARAMETERS")?;
    mask.tools |= hides("LLM_TOOLS")?;
    // Toolgate has no such attributes; an invalid value is still an error.
    for without_effect in ["PROMPTS", "CHOICES", "EMBEDDINGS_VECTORS", "EMBEDDINGS_TEXT", "RETRIEVAL_DOCUMENTS"] {
        hides(without_effect)?;
    }
    Ok(SpanContent {
        hide_inputs: content.hide_inputs || hides("INPUTS")?,
        hide_outputs: content.hide_outputs || hides("OUTPUTS")?,
        gen_ai_content: content.gen_ai_content || wants_gen_ai(set)?,
        mask,
        ..content
    })
}

/// Whether content is repeated under its GenAI names, according to the variable of OpenTelemetry's instrumentations or
/// the one of OpenInference's.
fn wants_gen_ai(set: impl Fn(&str) -> Option<String>) -> Result<bool, SettingsError> {
    let wanted = |name: &str, yes: &[&str], no: &[&str]| match set(name).map(|value| value.to_ascii_lowercase()) {
        None => Ok(false),
        Some(value) if yes.contains(&value.as_str()) => Ok(true),
        Some(value) if no.contains(&value.as_str()) => Ok(false),
        Some(value) => Err(SettingsError::Switch { name: name.to_owned(), value }),
    };
    let captured = wanted(CAPTURE, &["true", "span_only", "span_and_event"], &["false", "no_content", "event_only"])?;
    let doubled = wanted("OPENINFERENCE_ENABLE_GENAI_SEMCONV", &["true"], &["false"])?;
    Ok(captured || doubled)
}

/// The first variable that looks like an OpenInference switch but is not one. The operator who set it means to hide
/// content, and no content would be hidden.
pub fn misspelt(names: impl Iterator<Item = String>) -> Option<String> {
    let is_known = |name: &str| HIDING.iter().any(|what| name.strip_prefix(PREFIX) == Some(what));
    names.into_iter().find(|name| name.starts_with("OPENINFERENCE_HID") && !is_known(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spans::Mask;

    fn with(variables: &[(&str, &str)]) -> Result<SpanContent, SettingsError> {
        let env = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        switched(SpanContent::default(), env)
    }

    #[test]
    fn each_switch_hides_one_thing() {
        let content = SpanContent::default();
        let mask = |mask: Mask| SpanContent { mask, ..content };
        let none = Mask::default();
        for (name, expected) in [
            ("INPUTS", SpanContent { hide_inputs: true, ..content }),
            ("OUTPUTS", SpanContent { hide_outputs: true, ..content }),
            ("INPUT_MESSAGES", mask(Mask { input_messages: true, ..none })),
            ("OUTPUT_MESSAGES", mask(Mask { output_messages: true, ..none })),
            ("INPUT_TEXT", mask(Mask { input_text: true, ..none })),
            ("OUTPUT_TEXT", mask(Mask { output_text: true, ..none })),
            ("INPUT_IMAGES", mask(Mask { input_images: true, ..none })),
            ("LLM_INVOCATION_PARAMETERS", mask(Mask { invocation_parameters: true, ..none })),
            ("LLM_TOOLS", mask(Mask { tools: true, ..none })),
            ("PROMPTS", content),
        ] {
            let name = format!("OPENINFERENCE_HIDE_{name}");
            assert_eq!(with(&[(&name, "True")]), Ok(expected), "{name}");
            assert_eq!(with(&[(&name, "false")]), Ok(content), "{name}");
        }
        let longer = with(&[("OPENINFERENCE_BASE64_IMAGE_MAX_LENGTH", "64000")]);
        assert_eq!(longer, Ok(mask(Mask { image_chars: 64_000, ..none })));
    }

    #[test]
    fn gen_ai_switches_repeat_content_under_gen_ai_names() {
        let repeated =
            |value| with(&[("OPENINFERENCE_ENABLE_GENAI_SEMCONV", value)]).map(|content| content.gen_ai_content);
        assert_eq!((repeated("true"), repeated("false"), repeated("")), (Ok(true), Ok(false), Ok(false)));
        assert!(repeated("on").is_err());
    }

    #[test]
    fn an_invalid_switch_is_rejected_by_name() {
        for value in ["1", "yes"] {
            let error = with(&[("OPENINFERENCE_HIDE_INPUTS", value)]).expect_err("refused").to_string();
            assert!(error.contains("OPENINFERENCE_HIDE_INPUTS") && error.contains("`true` or `false`"), "{error}");
        }
        assert!(with(&[("OPENINFERENCE_BASE64_IMAGE_MAX_LENGTH", "much")]).is_err());
    }

    #[test]
    fn content_has_gen_ai_names_only_on_request() {
        for (name, value, told) in [
            (CAPTURE, "true", true),
            (CAPTURE, "SPAN_AND_EVENT", true),
            (CAPTURE, "NO_CONTENT", false),
            ("OPENINFERENCE_ENABLE_GENAI_SEMCONV", "true", true),
        ] {
            assert_eq!(with(&[(name, value)]).map(|content| content.gen_ai_content), Ok(told), "{name}={value}");
        }
        assert!(with(&[(CAPTURE, "all")]).is_err());
    }

    #[test]
    fn a_misspelt_switch_is_found() {
        let names =
            |name: &str| [name.to_owned(), "OPENINFERENCE_HIDE_INPUTS".to_owned(), "PATH".to_owned()].into_iter();
        assert_eq!(misspelt(names("OPENINFERENCE_HIDE_INPUT")).as_deref(), Some("OPENINFERENCE_HIDE_INPUT"));
        assert_eq!(misspelt(names("OPENINFERENCE_HIDE_LLM_TOOLS")), None);
    }

    #[test]
    fn no_switch_shows_what_the_configuration_hides() {
        let hidden_already = SpanContent { hide_inputs: true, ..SpanContent::default() };
        let shown = switched(hidden_already, |name| (name == "OPENINFERENCE_HIDE_INPUTS").then(|| "false".to_owned()));
        assert_eq!(shown, Ok(hidden_already));
    }
}
