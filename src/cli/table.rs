//! Tables for a terminal, or for a pipe, which has no width.

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, Table};
use unicode_width::UnicodeWidthStr as _;

use super::output::Output;
use super::paint::Paint;
use super::text::one_line;

/// The padding on both sides of a cell.
const PADDING: usize = 2;
/// The narrowest last column of a table with one line a row.
const LEAST: usize = 16;

/// Prints a table with one line a row: the last column is cut at the edge of the terminal. Where the others leave no
/// room for it, each row and the headings are a record of two lines.
pub(super) fn print<R>(headings: &[&str], rows: impl Iterator<Item = R>, out: &mut Output)
where
    R: IntoIterator<Item = String>,
{
    let mut rows: Vec<Vec<String>> = rows.map(|row| row.into_iter().collect()).collect();
    if out.is_terminal() && !cut_last(headings, &mut rows, out.width()) {
        let headings: Vec<String> = headings.iter().map(ToString::to_string).collect();
        std::iter::once(&headings).chain(&rows).for_each(|row| record(row, out));
        return;
    }
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
    table.add_rows(rows);
    out.line(table.trim_fmt());
}

/// A row on two lines: its known values, and the last one.
fn record(row: &[String], out: &mut Output) {
    let Some((last, [first, others @ ..])) = row.split_last() else { return };
    let known: Vec<&str> = others.iter().map(String::as_str).filter(|value| !matches!(*value, "" | "-")).collect();
    out.line(format!("{}  {}", out.paint().bold(first), known.join("  ")));
    if !last.is_empty() {
        out.line(format!("    {}", one_line(last, out.width().saturating_sub(4))));
    }
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
