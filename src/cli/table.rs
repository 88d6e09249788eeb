//! Tables for a terminal, or for a pipe, which has no width.

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, Table, Width};
use unicode_width::UnicodeWidthStr as _;

use super::output::Output;
use super::paint::Paint;
use super::text::one_line;

/// The padding on both sides of a cell.
const PADDING: usize = 2;
/// The narrowest last column of a table with one line a row.
const LEAST: usize = 16;

/// Prints a table with one line a row: the last column is cut at the edge of the terminal. Where the others leave no
/// room for it, cells are broken, but not in the first `unbroken` columns: a user cannot copy an id that spans two lines.
pub(super) fn print<R>(headings: &[&str], unbroken: usize, rows: impl Iterator<Item = R>, out: &mut Output)
where
    R: IntoIterator<Item = String>,
{
    let mut rows: Vec<Vec<String>> = rows.map(|row| row.into_iter().collect()).collect();
    let fits = !out.is_terminal() || cut_last(headings, &mut rows, out.width());
    let mut table = Table::new();
    table.load_style(NOTHING);
    let heading = |text: &&str| match out.paint() {
        Paint::Colour => Cell::new(text).add_attribute(Attribute::Bold),
        Paint::Plain => Cell::new(text),
    };
    match out.paint() {
        Paint::Colour => table.enforce_styling(),
        Paint::Plain => table.force_no_tty(),
    };
    table.set_header(headings.iter().map(heading));
    if !fits {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(out.width()).unwrap_or(u16::MAX));
        // A column narrower than its heading would break the heading in the middle of a word.
        for (column, heading) in table.column_iter_mut().zip(headings) {
            let heading = u16::try_from(heading.len() + PADDING).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(heading)));
        }
        for column in table.column_iter_mut().take(unbroken) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table.add_rows(rows);
    out.line(table.trim_fmt());
}

/// Cuts the last cell of each row so that a row is one line. Returns whether there is room for it.
fn cut_last(headings: &[&str], rows: &mut [Vec<String>], width: usize) -> bool {
    let Some((_, others)) = headings.split_last() else { return true };
    let widest = |(column, heading): (usize, &&str)| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
        cells.chain([heading.width()]).max().unwrap_or(0) + PADDING
    };
    let taken: usize = others.iter().enumerate().map(widest).sum();
    let Some(rest) = width.checked_sub(taken + PADDING).filter(|rest| *rest >= LEAST) else { return false };
    for cell in rows.iter_mut().filter_map(|row| row.last_mut()) {
        *cell = one_line(cell, rest);
    }
    true
}
