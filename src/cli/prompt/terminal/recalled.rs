//! History and completion of a message that is being typed.

use super::keys::Key;
use super::line::Line;
use crate::cli::mention::completed_mentions;
use crate::cli::prompt::console::{Accepts, Recall, completion};

/// How many candidates of a completion are shown.
const CANDIDATES: usize = 30;

/// The place in the history of messages, and the text that was typed before it was left.
pub(super) struct Recalled<'a> {
    recall: Option<&'a Recall>,
    /// Counts back from the newest message; 0 is the text being typed.
    back: usize,
    typed: String,
    /// What is searched for, from Ctrl-R until a key that does not belong to the search.
    searched: Option<String>,
    /// The text that was typed last and not sent.
    aside: Option<String>,
}

impl<'a> Recalled<'a> {
    pub(super) fn new(accepts: Accepts<'a>) -> Self {
        let recall = match accepts {
            Accepts::Message(recall) => Some(recall),
            Accepts::Text
            | Accepts::Lines
            | Accepts::Change(_)
            | Accepts::Draft
            | Accepts::Key
            | Accepts::Choice(_) => None,
        };
        Self { recall, back: 0, typed: String::new(), searched: None, aside: None }
    }

    /// The command that Shift-Tab enters.
    pub(super) fn back_tab(&self) -> Option<&'a str> {
        self.recall.and_then(|recall| recall.back_tab.as_deref())
    }

    /// Whether a message is typed, which has a history.
    pub(super) fn is_message(&self) -> bool {
        self.recall.is_some()
    }

    /// Goes to the message before or after.
    pub(super) fn step(&mut self, key: &Key, line: &mut Line) {
        let back = if *key == Key::Earlier { self.back + 1 } else { self.back.saturating_sub(1) };
        if back != self.back && (back == 0 || self.message(back).is_some()) {
            self.go(back, line);
        }
    }

    /// What is searched for.
    pub(super) fn searched(&self) -> Option<&str> {
        self.searched.as_deref()
    }

    /// Applies a key of a search: Ctrl-R, which begins it with the text of the line and then goes to the next message before,
    /// and the keys that change the text. Any other key ends the search, with the message that it found.
    pub(super) fn search(&mut self, key: &Key, line: &mut Line) -> bool {
        let mut first = 1;
        match (&mut self.searched, key) {
            (None, Key::Search) if self.recall.is_some() => self.searched = Some(line.text()),
            (Some(_), Key::Search) => first = self.back + 1,
            (Some(text), Key::Char(c)) if *c != '\t' => text.push(*c),
            (Some(text), Key::Erase) => drop(text.pop()),
            _ => {
                self.searched = None;
                return false;
            }
        }
        let text = self.searched.as_ref().map(|text| text.to_lowercase()).unwrap_or_default();
        let present = line.text();
        let mut before = (first..).map_while(|back| Some((back, self.message(back)?)));
        let is_next = |message: &String| *key != Key::Search || *message != present;
        let found = before.find(|(_, message)| is_next(message) && message.to_lowercase().contains(&text));
        if let Some((back, _)) = found.filter(|_| !text.is_empty()) {
            self.go(back, line);
        }
        true
    }

    /// The message this many steps before the text being typed.
    fn message(&self, back: usize) -> Option<&String> {
        let sent = self.recall.map_or(&[][..], |recall| &recall.messages);
        sent.iter().chain(&self.aside).rev().nth(back.checked_sub(1)?)
    }

    fn go(&mut self, back: usize, line: &mut Line) {
        if self.back == 0 {
            self.typed = line.text();
        }
        line.replace(self.message(back).unwrap_or(&self.typed));
        self.back = back;
    }

    /// Empties the line. The next step back brings its text again.
    pub(super) fn put_aside(&mut self, line: &mut Line) {
        self.aside = Some(line.text());
        self.back = 0;
        line.replace("");
    }

    /// Completes the beginning of a word, or the path of a file that the message names, as far as it is clear. Returns the
    /// candidates if there are several and none is clearer than the other.
    pub(super) fn complete(&self, line: &mut Line) -> Vec<String> {
        let text = line.text();
        let words = self.recall.map_or(&[][..], |recall| &recall.words);
        let mut candidates = words.to_vec();
        candidates.extend(completed_mentions(&text));
        candidates.retain(|candidate| candidate.starts_with(&text));
        candidates.sort();
        candidates.dedup();
        match completion(&candidates, &text) {
            // An argument may follow a command.
            Some(whole) if candidates.len() == 1 && words.contains(&whole) => line.replace(&format!("{whole} ")),
            Some(whole) => line.replace(&whole),
            None if candidates.len() > 1 => return candidates,
            None => {}
        }
        Vec::new()
    }
}

/// The candidates of a completion, each without the words before it.
pub(super) fn listed(candidates: &[String]) -> String {
    let last = |candidate: &String| candidate.rsplit(char::is_whitespace).next().unwrap_or_default().to_owned();
    let shown: Vec<String> = candidates.iter().take(CANDIDATES).map(last).collect();
    let more = candidates.len() - shown.len();
    let more = if more > 0 { format!("  and {more} more") } else { String::new() };
    format!("  {}{more}", shown.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_search_may_be_typed_after_its_key() {
        let recall = Recall { messages: vec!["a test".into(), "two".into(), "Tests".into()], ..Recall::default() };
        let mut recalled = Recalled::new(Accepts::Message(&recall));
        let mut line = Line::default();
        assert!(!recalled.search(&Key::Char('t'), &mut line), "no search is in progress");
        let mut after = |key| (recalled.search(&key, &mut line), line.text());
        let keys = [Key::Search, Key::Char('t'), Key::Char('W'), Key::Erase, Key::Char('e'), Key::Search, Key::Search];
        let found = ["", "Tests", "two", "Tests", "Tests", "a test", "a test"];
        assert_eq!(keys.map(&mut after), found.map(|text| (true, text.to_owned())));
        assert_eq!(after(Key::Left), (false, "a test".to_owned()));
    }

    #[test]
    fn earlier_messages_are_recalled_and_the_text_being_typed_comes_back() {
        let (messages, words) = (vec!["one".into(), "two".into()], vec!["/tools".into()]);
        let recall = Recall { messages, words, ..Recall::default() };
        let mut recalled = Recalled::new(Accepts::Message(&recall));
        let mut line = Line::default();
        line.replace("thr");
        let mut after = |key| {
            recalled.step(&key, &mut line);
            line.text()
        };
        let texts = [Key::Earlier, Key::Earlier, Key::Earlier, Key::Later, Key::Later, Key::Later].map(&mut after);
        assert_eq!(texts, ["two", "one", "one", "two", "thr", "thr"]);
        line.replace("ON");
        assert!(recalled.search(&Key::Search, &mut line));
        assert_eq!(line.text(), "one");
        assert!(recalled.search(&Key::Search, &mut line));
        assert_eq!(line.text(), "one", "no message before it has the text");
        assert!(!recalled.search(&Key::End, &mut line) && recalled.searched().is_none());
        line.replace("/t");
        assert!(recalled.complete(&mut line).is_empty());
        assert_eq!(line.text(), "/tools ");
        let words = ["/revoke grant_a1", "/revoke grant_b2"].map(str::to_owned);
        let recall = Recall { words: words.to_vec(), ..Recall::default() };
        line.replace("/rev");
        assert!(Recalled::new(Accepts::Message(&recall)).complete(&mut line).is_empty());
        assert_eq!(line.text(), "/revoke grant_");
        assert_eq!(Recalled::new(Accepts::Message(&recall)).complete(&mut line), words);
    }
}
