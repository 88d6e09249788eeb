//! Questions of the model to the user, asked with the built-in tool `ask_human`, and the settings of the tool.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The maximum number of options.
const MOST_OPTIONS: usize = 50;

/// Settings of the model's questions to the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AskHuman {
    /// Seconds for an answer; without it, as long as the run lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<u64>,
}

/// A question of the model to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    pub question: String,
    /// The answers to choose from; without options the answer is text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Whether more than one option may be chosen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multiple: bool,
    /// Whether other answers than the options are accepted. Without options the answer is text in any case.
    #[serde(default = "yes")]
    pub free_text: bool,
}

/// A person's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choice {
    /// The chosen options, exactly as given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<String>,
    /// The answer in the person's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Ask {
    /// The question in a call's arguments; the error is for the model.
    pub fn parse(arguments: &Map<String, Value>) -> Result<Self, String> {
        let ask =
            serde_json::from_value::<Self>(Value::Object(arguments.clone())).map_err(|error| error.to_string())?;
        let twice = ask
            .options
            .iter()
            .enumerate()
            .find(|(index, option)| ask.options.iter().take(*index).any(|o| o == *option));
        match twice {
            _ if ask.question.trim().is_empty() => Err("`question` is empty".into()),
            _ if ask.options.len() > MOST_OPTIONS => Err(format!("`options` has more than {MOST_OPTIONS} entries")),
            _ if ask.options.iter().any(|option| option.trim().is_empty()) => {
                Err("`options` has an empty entry".into())
            }
            Some((_, option)) => Err(format!("`options` has {option:?} twice")),
            None => Ok(ask),
        }
    }

    /// The reason why a choice is not a valid answer.
    pub fn invalid_reason(&self, choice: &Choice) -> Option<String> {
        let text = choice.text.as_deref().unwrap_or_default().trim();
        let takes_text = self.free_text || self.options.is_empty();
        let strange = choice.chosen.iter().find(|chosen| !self.options.contains(chosen));
        let chosen = choice.chosen.iter();
        let twice = chosen.zip(0..).find(|(chosen, at)| choice.chosen.iter().take(*at).any(|before| before == *chosen));
        match (strange, twice) {
            (Some(strange), _) => Some(format!("chooses {strange:?}, which is none of the options")),
            (None, Some((chosen, _))) => Some(format!("chooses {chosen:?} twice")),
            (None, None) if choice.chosen.len() > 1 && !self.multiple => Some("chooses more than one option".into()),
            (None, None) if !text.is_empty() && !takes_text => {
                Some("is text, and one of the options has to be chosen".into())
            }
            (None, None) if text.is_empty() && choice.chosen.is_empty() => Some("says nothing".into()),
            (None, None) => None,
        }
    }
}

impl Choice {
    /// A text answer.
    pub fn text(text: impl Into<String>) -> Self {
        Self { chosen: Vec::new(), text: Some(text.into()) }
    }

    /// The text that the model reads.
    pub fn to_words(&self) -> String {
        let text = self.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let chosen = self.chosen.join(", ");
        match (chosen.is_empty(), text) {
            (false, Some(text)) => format!("{chosen}\n{text}"),
            (false, None) => chosen,
            (true, text) => text.unwrap_or_default().to_owned(),
        }
    }
}

fn yes() -> bool {
    true
}
