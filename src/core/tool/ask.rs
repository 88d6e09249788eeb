//! What the model asks a person, with the built-in tool `ask_human`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// More options than this nobody reads.
const MOST_OPTIONS: usize = 50;

/// A question to a person, as the model put it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// What is asked.
    pub question: String,
    /// The answers to choose from; none means that the answer is text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Whether more than one option may be chosen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multiple: bool,
    /// Whether the answer may be something else than the options. Without options it is text in any case.
    #[serde(default = "yes")]
    pub free_text: bool,
}

/// What a person answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Choice {
    /// The options they chose, as they were offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<String>,
    /// What they said in their own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Ask {
    /// The question in a call's arguments, or what is wrong with it, for the model.
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

    /// What cannot be an answer to it.
    pub fn objection(&self, choice: &Choice) -> Option<String> {
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
    /// An answer in words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { chosen: Vec::new(), text: Some(text.into()) }
    }

    /// What the model reads.
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
