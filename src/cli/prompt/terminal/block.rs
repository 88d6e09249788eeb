//! Text of the open question on the screen, above the line that is being answered: notices go above all of it.

use std::io;

use super::Terminal;
use super::line::layout;
use super::view::View;
use crate::cli::wrap::without_colours;

/// Rows that are left for the line that is being answered.
const ROWS_OF_ANSWER: usize = 6;

/// What a prompt showed since its question began, with the answers to its parts.
#[derive(Debug, Default)]
pub(super) struct Block {
    text: String,
    /// The width of the terminal; 0 after other output, below which the place of the text is not known.
    columns: usize,
}

impl Block {
    /// Adds whole lines that are on the screen.
    pub(super) fn add(&mut self, text: &str, columns: usize) {
        if self.text.is_empty() {
            self.columns = columns;
        } else if self.columns != columns {
            self.columns = 0;
        }
        self.text.push_str(text);
    }

    /// Forgets the place of the text.
    pub(super) fn displace(&mut self) {
        self.columns = 0;
    }

    /// How many rows above the cursor it begins, if it is on the screen as a whole.
    fn rows_above(&self, columns: usize, rows: usize) -> Option<usize> {
        let (above, ..) = layout(&without_colours(&self.text), columns);
        (self.columns == columns && above + ROWS_OF_ANSWER < rows).then_some(above)
    }

    /// The text, or its first line if the terminal has too few rows.
    fn shown(&self, columns: usize, rows: usize) -> &str {
        let (needed, ..) = layout(&without_colours(&self.text), columns);
        match needed + ROWS_OF_ANSWER < rows {
            true => &self.text,
            false => self.text.trim_start().split_inclusive('\n').next().unwrap_or_default(),
        }
    }
}

impl Terminal {
    /// Shows notices above the question, of which the beginning stays on the screen.
    pub(super) fn show_notices(&mut self, notices: &[String], view: &mut View) -> io::Result<()> {
        if notices.is_empty() {
            return Ok(());
        }
        view.erase()?;
        let (columns, rows) = (self.device.columns(), self.device.rows());
        let above = self.block.rows_above(columns, rows).filter(|_| self.device.is_smart());
        let erased = match above {
            Some(above @ 1..) => format!("\x1b[{above}A\r\x1b[J"),
            Some(0) | None => String::new(),
        };
        let question = self.block.shown(columns, rows);
        self.device.write(&format!("{erased}{}{question}", notices.concat()))
    }

    /// Shows the question again below other output.
    pub(super) fn show_again(&mut self) -> io::Result<()> {
        self.block.displace();
        self.device.write(self.block.shown(self.device.columns(), self.device.rows()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_fits_is_moved_and_a_longer_one_repeats_its_first_line() {
        let mut block = Block::default();
        block.add("\n\x1b[1mMay it run?\x1b[0m\n", 20);
        block.add("  text: \"a line of more than twenty\"\n", 20);
        assert_eq!((block.rows_above(20, 24), block.shown(20, 24)), (Some(4), &*block.text));
        assert_eq!((block.rows_above(20, 10), block.shown(20, 10)), (None, "\x1b[1mMay it run?\x1b[0m\n"));
        assert_eq!(block.rows_above(30, 24), None, "the terminal has another width now");
    }
}
