//! The switches of OpenInference over content, read from the environment. What the configuration hides stays hidden: a
//! switch only hides more, or repeats under GenAI names what is shown. One that is neither `true` nor `false` is refused,
//! for whoever set it means to hide.

use super::SettingsError;
use crate::telemetry::spans::SpanContent;

const PREFIX: &str = "OPENINFERENCE_HIDE_";
const CAPTURE: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// What the switches can hide.
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

/// The content that spans carry by the configuration and the environment; `env` looks a variable up.
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
    // Toolgate has no such attributes; a mistake in the value is told all the same.
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

/// Whether content is to be told under its GenAI names as well: by the variable of OpenTelemetry's instrumentations, or by
/// that of OpenInference's.
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

/// The variables among these that look like a switch of OpenInference and are none: whoever set one means to hide
/// something, and nothing would be hidden.
pub fn misspelt(names: impl Iterator<Item = String>) -> Option<String> {
    let is_known = |name: &str| HIDING.iter().any(|what| name.strip_prefix(PREFIX) == Some(what));
    names.into_iter().find(|name| name.starts_with("OPENINFERENCE_HID") && !is_known(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::spans::Mask;

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
    fn contents_are_repeated_under_their_gen_ai_names_if_that_is_asked_for() {
        let repeated =
            |value| with(&[("OPENINFERENCE_ENABLE_GENAI_SEMCONV", value)]).map(|content| content.gen_ai_content);
        assert_eq!((repeated("true"), repeated("false"), repeated("")), (Ok(true), Ok(false), Ok(false)));
        assert!(repeated("on").is_err());
    }

    #[test]
    fn a_switch_that_says_neither_is_refused_by_name() {
        for value in ["1", "yes"] {
            let error = with(&[("OPENINFERENCE_HIDE_INPUTS", value)]).expect_err("refused").to_string();
            assert!(error.contains("OPENINFERENCE_HIDE_INPUTS") && error.contains("`true` or `false`"), "{error}");
        }
        assert!(with(&[("OPENINFERENCE_BASE64_IMAGE_MAX_LENGTH", "much")]).is_err());
    }

    #[test]
    fn content_is_told_under_its_gen_ai_names_where_somebody_asks_for_it() {
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
    fn a_switch_that_is_misspelt_is_found() {
        let names =
            |name: &str| [name.to_owned(), "OPENINFERENCE_HIDE_INPUTS".to_owned(), "PATH".to_owned()].into_iter();
        assert_eq!(misspelt(names("OPENINFERENCE_HIDE_INPUT")).as_deref(), Some("OPENINFERENCE_HIDE_INPUT"));
        assert_eq!(misspelt(names("OPENINFERENCE_HIDE_LLM_TOOLS")), None);
    }

    #[test]
    fn what_the_configuration_hides_no_switch_shows() {
        let hidden_already = SpanContent { hide_inputs: true, ..SpanContent::default() };
        let shown = switched(hidden_already, |name| (name == "OPENINFERENCE_HIDE_INPUTS").then(|| "false".to_owned()));
        assert_eq!(shown, Ok(hidden_already));
    }
}
