//! Edit of a call's arguments, in the user's editor or on a line that begins with the present ones. Text that cannot be
//! used is not lost: the next edit begins with it. What would be sent is shown as a difference before it is approved.

use std::io;

use super::console::{Accepts, Console};
use super::decision::FILE_CHANGED;
use super::editable_arguments::{parsed, text_of};
use super::{Prompt, UnsentEdit};
use crate::cli::argument_lines::{EarlierChange, PresentFile, argument_lines, difference_lines};
use crate::cli::paint::Paint;
use crate::core::id::CallId;
use crate::core::run::PendingCall;
use crate::core::tool::Arguments;
use crate::core::tool::file_change::changed_file;

/// What the person decides about the arguments that they wrote.
enum Review {
    Send,
    EditAgain,
    Leave,
}

impl<C: Console> Prompt<C> {
    /// Keeps arguments that were refused after the prompt, for the next edit of the call.
    pub(in crate::cli) fn refuse_edit(&mut self, call: &CallId, arguments: &Arguments, error: &str) {
        self.keep_edit(call, text_of(&arguments.to_value()), Some(error.to_owned()));
    }

    fn keep_edit(&mut self, call: &CallId, text: String, error: Option<String>) {
        self.unsent_edit = Some(UnsentEdit { call: call.clone(), text, error });
    }

    /// Asks for other arguments. `None` if they stay as they are.
    pub(super) fn edited(
        &mut self,
        call: &PendingCall<'_>,
        earlier: &[EarlierChange],
    ) -> io::Result<Option<Arguments>> {
        let before = call.arguments.to_value();
        let refused = self.unsent_edit.take().filter(|refused| refused.call == *call.id);
        let (mut text, mut error) = match refused {
            Some(UnsentEdit { text, error, .. }) => (text, error),
            None => (text_of(&before), None),
        };
        loop {
            let Some(changed) = self.changed(&text, error.as_deref())? else { return Ok(None) };
            if changed.trim().is_empty() {
                return Ok(None);
            }
            match parsed(&changed) {
                _ if error.is_some() && is_same(&changed, &text) => {
                    self.keep_edit(call.id, text, error);
                    return Ok(None);
                }
                Ok(edited) if edited.to_value() == before => return Ok(None),
                Ok(edited) => match self.review(&call.arguments, &edited, earlier)? {
                    Review::Send => return Ok(Some(edited)),
                    Review::EditAgain => (text, error) = (changed, None),
                    Review::Leave => {
                        self.keep_edit(call.id, changed, None);
                        return Ok(None);
                    }
                },
                Err(why) => {
                    self.say(&format!("  {why}"))?;
                    (text, error) = (changed, Some(why));
                }
            }
        }
    }

    /// Shows the difference of the arguments, or that of the file that the call changes, and asks whether the call is sent
    /// with them.
    fn review(&mut self, before: &Arguments, after: &Arguments, earlier: &[EarlierChange]) -> io::Result<Review> {
        let file = |arguments: &Arguments| arguments.as_object().and_then(changed_file).map(str::to_owned);
        let (changes_file, is_same_file) = (file(after).is_some(), file(before) == file(after));
        let earlier = if is_same_file { earlier } else { &[] };
        let mut shown = Vec::new();
        if changes_file {
            shown = self.say_effect(after, earlier)?;
        } else {
            let lines = |arguments| argument_lines(arguments, PresentFile::Unread, Paint::Plain).join("\n");
            self.say("  your change of the arguments:")?;
            for line in difference_lines(&lines(before), &lines(after), self.console.paint()) {
                self.say(&format!("    {line}"))?;
            }
        }
        loop {
            match self.key("  [a]pprove once with these arguments, [e]dit again, [n]o: ")?.as_deref().map(str::trim) {
                Some("a" | "y" | "yes" | "approve") => {
                    if !changes_file || self.argument_lines(after, earlier) == shown {
                        return Ok(Review::Send);
                    }
                    self.say(FILE_CHANGED)?;
                    shown = self.say_effect(after, earlier)?;
                }
                Some("e" | "edit") => return Ok(Review::EditAgain),
                None | Some("n" | "no" | "q") => return Ok(Review::Leave),
                Some(_) => {
                    self.say("  a approves, e edits; n and Esc go back to the choices, and nothing is decided")?
                }
            }
        }
    }

    /// Shows what the edited arguments change in the present file.
    fn say_effect(&mut self, after: &Arguments, earlier: &[EarlierChange]) -> io::Result<Vec<String>> {
        self.say("  with your change, the call has:")?;
        let lines = self.argument_lines(after, earlier);
        for line in &lines {
            self.say(&format!("    {line}"))?;
        }
        Ok(lines)
    }

    fn changed(&mut self, text: &str, error: Option<&str>) -> io::Result<Option<String>> {
        match self.console.editor(text, error) {
            Ok(Some(text)) => Ok(Some(text)),
            Ok(None) => {
                let line = parsed(text).map_or_else(|_| text.to_owned(), |arguments| arguments.to_value().to_string());
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

/// Whether the person saved the text as it was.
fn is_same(changed: &str, text: &str) -> bool {
    changed.trim() == text.trim() || parsed(changed).is_ok_and(|changed| Ok(changed) == parsed(text))
}
