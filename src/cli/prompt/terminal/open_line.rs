//! Open line of a prompt: the question, the text typed so far, and what each key does with them.

use std::io;
use std::vec::IntoIter;

use super::device::{self, Command};
use super::keys::Key;
use super::line::Line;
use super::recalled::{Recalled, listed};
use super::view::View;
use super::{PromptEvent, Terminal, bell, typed_ahead};
use crate::cli::paint::Paint;
use crate::cli::prompt::console::{Accepts, Console as _, Entry};
use crate::cli::prompt::menu::Menu;
use crate::cli::terminal_escape;
use crate::cli::wrap::wrap;

/// The line that is being answered.
struct OpenLine<'a> {
    question: &'a str,
    accepts: Accepts<'a>,
    menu: Option<&'a Menu>,
    /// The option that the arrow keys mark.
    marked: Option<usize>,
    recalled: Recalled<'a>,
    line: Line,
    view: View,
}

/// What becomes of the line after a key.
enum AfterKey {
    Open,
    Entered(Entry),
    /// The person left the question.
    Left,
}

impl Terminal {
    /// Reads one line. See [`Console::line`](crate::cli::prompt::Console::line).
    pub(super) fn read_line(&mut self, question: &str, accepts: Accepts<'_>) -> io::Result<Option<Entry>> {
        let mut open = self.open_line(question, accepts)?;
        self.is_repeated &= accepts == Accepts::Key;
        if self.begin(&mut open)? {
            self.finish(&mut open)?;
            return Ok(Some(Entry::new(&open.line)));
        }
        self.show_notices(&mut open.view)?;
        open.view.draw(&open.line)?;
        let mut rings_after = bell::after(accepts);
        loop {
            match self.next_event(rings_after)? {
                PromptEvent::Keys(keys) => match self.apply_keys(&mut open, keys)? {
                    AfterKey::Open => open.view.draw(&open.line)?,
                    AfterKey::Entered(entry) => return Ok(Some(entry)),
                    AfterKey::Left => return Ok(None),
                },
                PromptEvent::Commanded(command) => {
                    if command == Command::Redraw {
                        open.view.begin_again();
                        self.device.write(self.block.again(&self.device))?;
                    }
                    self.show_notices(&mut open.view)?;
                    open.view.draw(&open.line)?;
                }
                PromptEvent::Quiet => {
                    if rings_after.take().is_some() {
                        self.write(bell::signal(self.device.is_smart()))?;
                    }
                }
            }
        }
    }

    fn open_line<'a>(&mut self, question: &'a str, accepts: Accepts<'a>) -> io::Result<OpenLine<'a>> {
        let menu = if let Accepts::Choice(menu) = accepts { Some(menu) } else { None };
        let marked = menu.and_then(Menu::usual);
        let echoes = self.keyboard()?.echoes;
        let view = View::new(self.asked(question, menu, marked), self.device.clone(), echoes);
        Ok(OpenLine { question, accepts, menu, marked, recalled: Recalled::new(accepts), line: Line::default(), view })
    }

    /// Puts the text into the line that it begins with. Returns whether Enter ended it before.
    fn begin(&mut self, open: &mut OpenLine<'_>) -> io::Result<bool> {
        let (text, is_entered) = match open.accepts {
            Accepts::Change(text) => (text.to_owned(), false),
            Accepts::Message(recall) if recall.sends_typed_ahead => typed_ahead::take(),
            Accepts::Message(recall) => match typed_ahead::take_command(recall.choices) {
                Some(choice) => (choice, true),
                None => (self.restored()?, false),
            },
            Accepts::Draft => (typed_ahead::line(), false),
            Accepts::Text | Accepts::Lines | Accepts::Key | Accepts::Choice(_) => return Ok(false),
        };
        open.line.replace(&text);
        Ok(is_entered)
    }

    /// Applies the keys of a burst until one of them ends the line.
    fn apply_keys(&mut self, open: &mut OpenLine<'_>, keys: Vec<Key>) -> io::Result<AfterKey> {
        let mut keys = keys.into_iter();
        while let Some(key) = keys.next() {
            let after = self.apply(open, key, &mut keys)?;
            if !matches!(after, AfterKey::Open) {
                return Ok(after);
            }
        }
        if open.accepts == Accepts::Draft {
            typed_ahead::put(&open.line.text());
            if open.line.is_empty() {
                self.finish(open)?;
                return Ok(AfterKey::Entered(Entry::default()));
            }
        }
        Ok(AfterKey::Open)
    }

    /// Applies a key. `rest` has the later keys of its burst.
    fn apply(&mut self, open: &mut OpenLine<'_>, key: Key, rest: &mut IntoIter<Key>) -> io::Result<AfterKey> {
        let was_searching = open.recalled.searched().is_some();
        let is_of_search = open.recalled.search(&key, &mut open.line);
        if was_searching || is_of_search {
            let question = open.recalled.searched().map(|text| format!("\nsearch {text}: "));
            open.view.ask(self.asked(question.as_deref().unwrap_or(open.question), open.menu, open.marked));
        }
        if is_of_search {
            return Ok(AfterKey::Open);
        }
        match key {
            Key::Char(_) if open.accepts == Accepts::Key => return self.apply_letter(open, key, rest),
            Key::Enter if open.has_several_lines() && open.line.continue_after_backslash() => {}
            Key::Enter => return self.enter(open, rest).map(AfterKey::Entered),
            Key::Earlier | Key::Later => match open.menu.filter(|_| self.device.is_smart() && open.line.is_empty()) {
                Some(menu) => {
                    open.marked = menu.step(open.marked, key == Key::Later);
                    open.view.ask(self.asked(open.question, Some(menu), open.marked));
                }
                None if open.line.step(key == Key::Earlier) => {}
                None => open.recalled.step(&key, &mut open.line),
            },
            Key::Char('\t') if open.recalled.is_message() => {
                let candidates = open.recalled.complete(&mut open.line);
                if !candidates.is_empty() {
                    self.finish(open)?;
                    self.say(&listed(&candidates))?;
                    open.view.begin_again();
                }
            }
            Key::BackTab => {
                if let Some(command) = open.recalled.back_tab() {
                    // The next message prompt begins with what was typed.
                    typed_ahead::put(&open.line.text());
                    open.line.replace(command);
                    // The next prompt takes the place of this one.
                    open.view.erase()?;
                    self.rest_of_burst(rest)?;
                    return Ok(AfterKey::Entered(Entry::new(&open.line)));
                }
            }
            Key::EndOfInput if open.line.is_empty() => {
                self.finish(open)?;
                self.rest_of_burst(rest)?;
                return Ok(AfterKey::Left);
            }
            Key::Escape if open.accepts.is_left_by_escape() => {
                self.finish(open)?;
                if open.accepts == Accepts::Draft {
                    typed_ahead::put(&open.line.text());
                }
                return Ok(AfterKey::Left);
            }
            Key::Paste(_) | Key::OversizedPaste if open.accepts == Accepts::Key => {
                self.finish(open)?;
                self.rest_of_burst(rest)?;
                return Ok(AfterKey::Entered(Entry { has_paste: true, ..Entry::default() }));
            }
            Key::OversizedPaste => {
                self.finish(open)?;
                self.say("  the paste is too large and was dropped; pass a file instead (`--file`)")?;
                open.view.begin_again();
            }
            Key::Interrupt if open.recalled.is_message() && !open.line.is_empty() => {
                open.recalled.put_aside(&mut open.line);
            }
            Key::Interrupt | Key::Quit | Key::Suspend => self.handle_key(&key)?,
            Key::Char(_)
            | Key::Search
            | Key::Erase
            | Key::EraseWord
            | Key::EraseLine
            | Key::EraseRest
            | Key::InsertErased
            | Key::Delete
            | Key::Left
            | Key::Right
            | Key::WordLeft
            | Key::WordRight
            | Key::Break
            | Key::Home
            | Key::End
            | Key::EndOfInput
            | Key::Escape
            | Key::Paste(_) => open.line.edit(key),
        }
        Ok(AfterKey::Open)
    }

    /// Applies a letter that decides, unless it begins a message.
    fn apply_letter(&mut self, open: &mut OpenLine<'_>, key: Key, rest: &mut IntoIter<Key>) -> io::Result<AfterKey> {
        open.line.edit(key.clone());
        let rest = self.rest_of_text(&key, rest)?;
        if Self::is_message(&key, &rest) {
            open.view.erase()?;
            [key].into_iter().chain(rest).for_each(typed_ahead::edit);
            self.end_typing()?;
            open.view.begin_again();
            open.line = Line::default();
            return Ok(AfterKey::Open);
        }
        self.finish(open)?;
        self.is_repeated = rest.contains(&key);
        // Enter after the letter belongs to it.
        let rest = rest.strip_prefix(&[Key::Enter]).unwrap_or(&rest);
        Ok(AfterKey::Entered(Entry { dropped: open.line.drops(rest), ..Entry::new(&open.line) }))
    }

    /// Ends the line by Enter.
    fn enter(&mut self, open: &mut OpenLine<'_>, rest: &mut IntoIter<Key>) -> io::Result<Entry> {
        let is_usual = open.marked == open.menu.and_then(Menu::usual);
        if let Some(at) = open.marked.filter(|_| open.line.is_empty() && !is_usual) {
            open.line.replace(&(at + 1).to_string());
        }
        self.finish(open)?;
        let rest = self.rest_of_burst(rest)?;
        let is_last = rest.contains(&Key::EndOfInput);
        if open.recalled.is_message() {
            // The next message prompt begins with it.
            rest.into_iter().for_each(typed_ahead::edit);
            return Ok(Entry { is_last, ..Entry::new(&open.line) });
        }
        if open.accepts == Accepts::Draft {
            typed_ahead::put(&open.line.text());
            [Key::Enter].into_iter().chain(rest).for_each(typed_ahead::edit);
            return Ok(Entry::default());
        }
        Ok(Entry { dropped: open.line.drops(&rest), is_last, ..Entry::new(&open.line) })
    }

    /// Shows the notices above the question.
    fn show_notices(&self, view: &mut View) -> io::Result<()> {
        let notices = device::take_notices(self.id);
        if notices.is_empty() {
            return Ok(());
        }
        view.erase()?;
        self.write(&self.block.with_notices(&notices, &self.device))
    }

    /// Finishes the line, which is part of the question from now on.
    fn finish(&mut self, open: &mut OpenLine<'_>) -> io::Result<()> {
        open.view.finish(&open.line)?;
        self.block.add(&open.view.finished(), self.device.columns());
        Ok(())
    }

    /// A question as it is drawn, below the options of its menu.
    fn asked(&self, question: &str, menu: Option<&Menu>, marked: Option<usize>) -> String {
        let (columns, rows) = (self.device.columns(), self.device.rows());
        let question = wrap(question, columns);
        // A row is left for the answer, and one for the number of options that are not shown.
        let room = rows.saturating_sub(question.split('\n').count() + 2);
        let options = menu.map(|menu| menu.text(marked, columns, room)).unwrap_or_default();
        terminal_escape::escape(&format!("{options}{question}"), Paint::Plain)
    }
}

impl OpenLine<'_> {
    /// Whether Enter after a backslash begins another line of the text.
    fn has_several_lines(&self) -> bool {
        self.recalled.is_message() || self.accepts == Accepts::Draft
    }
}

impl Entry {
    fn new(line: &Line) -> Self {
        Self { text: line.text(), has_paste: line.has_paste(), ..Self::default() }
    }
}
