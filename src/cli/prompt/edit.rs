//! Edit of a call's arguments, in the user's editor or on a line that begins with the present ones. Text that cannot be
//! used is not lost: the next edit begins with it.

use std::io;

use serde_json::Value;

use super::console::{Accepts, Console};
use super::{Prompt, RefusedEdit};
use crate::cli::answers::edited_arguments;
use crate::core::id::CallId;
use crate::core::run::PendingCall;
use crate::core::tool::Arguments;

impl<C: Console> Prompt<C> {
    /// Keeps arguments that were refused after the prompt, for the next edit of the call.
    pub(in crate::cli) fn refuse_edit(&mut self, call: &CallId, arguments: &Arguments, error: &str) {
        let text = pretty(&arguments.to_value());
        self.refused_edit = Some(RefusedEdit { call: call.clone(), text, error: error.to_owned() });
    }

    /// Asks for other arguments. `None` if they stay as they are.
    pub(super) fn edited(&mut self, call: &PendingCall<'_>) -> io::Result<Option<Arguments>> {
        let before = call.arguments.to_value();
        let refused = self.refused_edit.take().filter(|refused| refused.call == *call.id);
        let mut text = refused.as_ref().map_or_else(|| pretty(&before), |refused| refused.text.clone());
        let mut error = refused.map(|refused| refused.error);
        loop {
            let Some(changed) = self.changed(&text, error.as_deref())? else { return Ok(None) };
            if changed.trim().is_empty() {
                return Ok(None);
            }
            match edited_arguments(&changed) {
                _ if is_same(&changed, &text) => {
                    let refused = |error| RefusedEdit { call: call.id.clone(), text, error };
                    self.refused_edit = error.map(refused);
                    return Ok(None);
                }
                Ok(edited) if edited.to_value() == before => return Ok(None),
                Ok(edited) => return Ok(Some(edited)),
                Err(why) => {
                    self.say(&format!("  {why}"))?;
                    (text, error) = (changed, Some(why));
                }
            }
        }
    }

    fn changed(&mut self, text: &str, error: Option<&str>) -> io::Result<Option<String>> {
        match self.console.editor(text, error) {
            Ok(Some(text)) => Ok(Some(text)),
            Ok(None) => {
                let line =
                    serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |json| json.to_string());
                self.entry("  the arguments, as JSON (unchanged or empty: leave them): ", Accepts::Change(&line))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.say(&format!("  {error}"))?;
                Ok(None)
            }
        }
    }
}

fn pretty(arguments: &Value) -> String {
    format!("{arguments:#}")
}

/// Whether the person saved the text as it was.
fn is_same(changed: &str, text: &str) -> bool {
    let json = |text: &str| serde_json::from_str::<Value>(text).ok();
    changed.trim() == text.trim() || json(changed).is_some_and(|changed| Some(changed) == json(text))
}
