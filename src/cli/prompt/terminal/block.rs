//! Text of the open question on the screen, above the line that is being answered: notices go above all of it.

use super::device::Device;
use super::line::layout;
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

    fn rows(&self, columns: usize) -> usize {
        let rows = |line: &str| layout(&format!("{}\n", without_colours(line)), columns).0;
        self.text.lines().map(rows).sum()
    }

    /// How many rows above the cursor it begins, if it is on the screen as a whole.
    fn rows_above(&self, columns: usize, rows: usize) -> Option<usize> {
        let above = self.rows(columns);
        (self.columns == columns && above + ROWS_OF_ANSWER < rows).then_some(above)
    }

    /// The text, or its first line if the terminal has too few rows.
    fn shown(&self, columns: usize, rows: usize) -> &str {
        match self.rows(columns) + ROWS_OF_ANSWER < rows {
            true => &self.text,
            false => self.text.trim_start().split_inclusive('\n').next().unwrap_or_default(),
        }
    }

    /// What puts notices above the text, of which the beginning stays on the screen. The cursor is below it.
    pub(super) fn with_notices(&self, notices: &[String], device: &Device) -> String {
        let (columns, rows) = (device.columns(), device.rows());
        let erased = match self.rows_above(columns, rows).filter(|_| device.is_smart()) {
            Some(above @ 1..) => format!("\x1b[{above}A\r\x1b[J"),
            Some(0) | None => String::new(),
        };
        format!("{erased}{}{}", notices.concat(), self.shown(columns, rows))
    }

    /// The text again, below other output.
    pub(super) fn again(&mut self, device: &Device) -> &str {
        self.displace();
        self.shown(device.columns(), device.rows())
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
