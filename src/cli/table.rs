//! Tables for a terminal, or for a pipe, which has no width.

use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width};

use super::output::Output;

/// The padding on both sides of a cell.
const PADDING: u16 = 2;

/// Prints a table. The first `unbroken` columns are as wide as their content, because a user cannot copy an id that
/// spans two lines.
pub(super) fn print<const N: usize>(
    headings: [&str; N],
    unbroken: usize,
    rows: impl Iterator<Item = [String; N]>,
    out: &mut Output,
) {
    let mut table = Table::new();
    table.load_style(NOTHING).force_no_tty();
    if out.is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(out.width()).unwrap_or(u16::MAX));
    }
    table.set_header(headings);
    // A column narrower than its heading would break the heading in the middle of a word.
    for (column, heading) in table.column_iter_mut().zip(headings) {
        let heading = u16::try_from(heading.len()).unwrap_or(u16::MAX);
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(heading + PADDING)));
    }
    for column in table.column_iter_mut().take(unbroken) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.add_rows(rows);
    out.line(table.trim_fmt());
}
