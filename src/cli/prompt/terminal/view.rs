//! View of a prompt: draws the question and the text typed so far, and erases them again.

use std::io;
use std::sync::Arc;

use super::device::Device;
use super::line::{Line, layout};

/// The question and the answer typed so far, on the screen.
pub(super) struct View {
    question: String,
    device: Arc<Device>,
    echoes: bool,
    /// The text on the screen before and after the cursor.
    before: String,
    after: String,
    is_there: bool,
}

impl View {
    pub(super) fn new(question: String, device: Arc<Device>, echoes: bool) -> Self {
        Self { question, device, echoes, before: String::new(), after: String::new(), is_there: false }
    }

    /// Asks another question in the place of this one.
    pub(super) fn ask(&mut self, question: String) {
        self.question = question;
    }

    /// Draws the line.
    pub(super) fn draw(&mut self, line: &Line) -> io::Result<()> {
        let (before, after) = if self.echoes { line.display() } else { Default::default() };
        let (before, after) = (format!("{}{before}", self.question), after);
        let columns = self.device.columns();
        let text = match before.strip_prefix(&self.before) {
            Some("") if self.is_there && self.after == after => return Ok(()),
            // Appended text: print only the new part.
            Some(more) if self.is_there && self.after.is_empty() && after.is_empty() => {
                let (.., is_full) = layout(&before, columns);
                format!("{more}{}", if is_full { "\n" } else { "" })
            }
            _ if self.device.is_smart() => format!("{}{}", self.erased(columns), placed(&before, &after, columns)),
            _ if self.is_there => format!("\n{before}{after}"),
            _ => format!("{before}{after}"),
        };
        self.device.write(&text)?;
        (self.before, self.after, self.is_there) = (before, after, true);
        Ok(())
    }

    /// The escape sequence that erases the question and the answer.
    fn erased(&self, columns: usize) -> String {
        if !self.is_there {
            return String::new();
        }
        match layout(&self.before, columns) {
            (0, ..) => "\r\x1b[J".to_owned(),
            (rows, ..) => format!("\x1b[{rows}A\r\x1b[J"),
        }
    }

    /// Finishes the line, so that the next output begins on a new line.
    pub(super) fn finish(&mut self, line: &Line) -> io::Result<()> {
        self.draw(line)?;
        let columns = self.device.columns();
        let (row, ..) = layout(&self.before, columns);
        let (last, column, is_full) = layout(&format!("{}{}", self.before, self.after), columns);
        if last > row && self.device.is_smart() {
            self.device.write(&format!("\x1b[{}B", last - row))?;
        }
        if is_full && column == 0 { Ok(()) } else { self.device.write("\n") }
    }

    /// The question and the answer as they are on the screen, with the line end.
    pub(super) fn finished(&self) -> String {
        format!("{}{}\n", self.before, self.after)
    }

    /// Erases the question and the answer, for other output in their place.
    pub(super) fn erase(&mut self) -> io::Result<()> {
        let text = match self.device.is_smart() {
            true => self.erased(self.device.columns()),
            false => "\n".to_owned(),
        };
        self.begin_again();
        self.device.write(&text)
    }

    /// Resets the view after other output.
    pub(super) fn begin_again(&mut self) {
        (self.before, self.after, self.is_there) = (String::new(), String::new(), false);
    }
}

/// The text, with the cursor between both parts.
fn placed(before: &str, after: &str, columns: usize) -> String {
    let whole = format!("{before}{after}");
    let (last, _, is_full) = layout(&whole, columns);
    let mut text = whole;
    if is_full {
        text.push('\n');
    }
    if !after.is_empty() {
        let (row, column, _) = layout(before, columns);
        if last > row {
            text.push_str(&format!("\x1b[{}A", last - row));
        }
        text.push('\r');
        if column > 0 {
            text.push_str(&format!("\x1b[{column}C"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_is_put_between_both_parts() {
        assert_eq!(placed("? ab", "", 80), "? ab");
        assert_eq!(placed("? ab", "cd", 80), "? abcd\r\x1b[4C");
        assert_eq!(placed("? a", "bcd", 4), "? abcd\x1b[1A\r\x1b[3C");
        assert_eq!(placed("? a", "b", 4), "? ab\n\x1b[1A\r\x1b[3C");
    }
}
