//! Markdown of a model as lines for a terminal. Pure.
//!
//! Text is wrapped at words, emphasis and code are painted, lists hang, and the columns of a table are aligned, with long
//! cells wrapped.
//! A line break of the text stays one, so that verses keep their lines. Code is never wrapped: it can be copied.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr as _;

use super::spans::{Line, LongWords, Spans, Style, wrapped};
use crate::cli::paint::Paint;
use crate::core::tool::escape_untrusted;

/// The narrowest column that text is wrapped at.
const LEAST: usize = 20;
/// The gap between two columns of a table.
const GAP: &str = "  ";
/// The narrowest column of a table whose cells are wrapped.
const LEAST_COLUMN: usize = 8;

/// A line under construction.
#[derive(Debug, Default)]
struct Writer {
    lines: Vec<String>,
    /// The words of the present line.
    spans: Vec<(String, Style)>,
    /// The beginnings of its further lines, from the outermost quotation or list item to the innermost.
    indents: Vec<String>,
    /// The beginning of the next line, where it is not that of a further line: the mark of a list item.
    mark: Option<String>,
    /// The number of the next item of each open list; `None` without numbers.
    lists: Vec<Option<u64>>,
    styles: Vec<Style>,
    /// The addresses of the open links, and where the text of each begins.
    links: Vec<(String, usize)>,
    is_code: bool,
    /// The rows of the open table, the cells of each as spans.
    table: Option<Vec<Vec<Spans>>>,
    /// Whether each of its columns is aligned to the right.
    aligns_right: Vec<bool>,
}

/// The lines of a Markdown text, none wider than `width` except for code and words that are wider.
pub(super) fn typeset(text: &str, width: usize, paint: Paint) -> Vec<String> {
    let width = width.max(LEAST);
    let mut writer = Writer::default();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        writer.apply(event, width, paint);
    }
    writer.end_line(width, paint);
    while writer.lines.last().is_some_and(|line| line.trim().is_empty()) {
        writer.lines.pop();
    }
    writer.lines
}

/// A line of code: indented, never wrapped.
pub(super) fn code_line(line: &str, paint: Paint) -> String {
    paint.cyan(format!("  {}", escape_untrusted(&line.replace('\t', "    "))))
}

impl Writer {
    fn apply(&mut self, event: Event<'_>, width: usize, paint: Paint) {
        match event {
            // Without colours the marks stay, because the text would mean the opposite.
            Event::Start(Tag::Strikethrough) | Event::End(TagEnd::Strikethrough) if paint == Paint::Plain => {
                self.push("~~");
            }
            Event::Start(tag) => self.start(&tag, width, paint),
            Event::End(tag) => self.end(tag, width, paint),
            Event::Text(text) if self.is_code => {
                for line in text.lines() {
                    self.code_line(line, paint);
                }
            }
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.push(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                let code = escape_untrusted(&text);
                self.spans.push((if paint == Paint::Plain { format!("`{code}`") } else { code }, Style::Code));
            }
            Event::SoftBreak | Event::HardBreak => self.end_line(width, paint),
            Event::Rule => {
                self.spans.push(("─".repeat(width.min(40)), Style::Remark));
                self.end_block(width, paint);
            }
            Event::FootnoteReference(name) => self.push(&format!("[{name}]")),
            Event::TaskListMarker(is_done) => self.push(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other tags do not change the lines")]
    fn start(&mut self, tag: &Tag<'_>, width: usize, paint: Paint) {
        match tag {
            Tag::Strong | Tag::Heading { .. } => self.styles.push(Style::Strong),
            Tag::Emphasis => self.styles.push(Style::Emphasis),
            Tag::Strikethrough => self.styles.push(Style::Struck),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.to_string(), self.spans.len()));
            }
            Tag::BlockQuote(_) => self.indents.push("> ".to_owned()),
            Tag::CodeBlock(kind) => {
                self.end_line(width, paint);
                self.is_code = true;
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.lines.push(format!("{}{}", self.indent(), paint.dim(escape_untrusted(language))));
                }
            }
            Tag::Table(alignments) => {
                self.end_line(width, paint);
                self.aligns_right = alignments.iter().map(|alignment| *alignment == Alignment::Right).collect();
                self.table = Some(Vec::new());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(rows) = &mut self.table {
                    rows.push(Vec::new());
                }
            }
            Tag::List(first) => {
                self.end_line(width, paint);
                self.lists.push(*first);
            }
            Tag::Item => {
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    Some(None) | None => "• ".to_owned(),
                };
                let before = self.indent();
                self.indents.push(" ".repeat(mark.width()));
                self.mark = Some(format!("{before}{mark}"));
            }
            _ => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other tags do not change the lines")]
    fn end(&mut self, tag: TagEnd, width: usize, paint: Paint) {
        match tag {
            TagEnd::Strong | TagEnd::Emphasis | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => {
                let Some((address, first)) = self.links.pop() else { return };
                let text: String = self.spans.iter().skip(first).map(|(text, _)| text.as_str()).collect();
                if text != address {
                    self.spans.push((format!(" ({})", escape_untrusted(&address)), Style::Remark));
                }
            }
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_block(width, paint);
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(width, paint),
            TagEnd::BlockQuote(_) => {
                // The empty line after its last paragraph is not quoted.
                let empty = self.indent().trim_end().to_owned();
                self.lines.pop_if(|line| *line == empty);
                self.indents.pop();
                self.end_block(width, paint);
            }
            TagEnd::CodeBlock => {
                self.is_code = false;
                self.end_block(width, paint);
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(row) = self.table.as_mut().and_then(|rows| rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let rows = self.table.take().unwrap_or_default();
                self.table_lines(rows, width, paint);
                self.end_block(width, paint);
            }
            TagEnd::Item => {
                self.end_line(width, paint);
                (self.mark, _) = (None, self.indents.pop());
            }
            TagEnd::List(_) => {
                self.lists.pop();
                if self.lists.is_empty() {
                    self.end_block(width, paint);
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, text: &str) {
        let style = self.styles.last().copied().unwrap_or_default();
        self.spans.push((escape_untrusted(&text.replace(['\t', '\n'], " ")), style));
    }

    fn indent(&self) -> String {
        self.indents.concat()
    }

    fn code_line(&mut self, line: &str, paint: Paint) {
        let line = format!("{}{}", self.indent(), code_line(line, paint));
        self.lines.push(line);
    }

    /// A table: aligned columns below the headings, with wrapped cells in the longest of them where the terminal is narrower,
    /// or, where too little of them would be left, the cells of each row with their headings.
    fn table_lines(&mut self, rows: Vec<Vec<Spans>>, width: usize, paint: Paint) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell_width = |spans: &Spans| spans.iter().map(|(text, _)| text.width()).sum::<usize>();
        let widest = |column| rows.iter().filter_map(|row| row.get(column)).map(cell_width).max().unwrap_or(0);
        let indent = self.indent();
        let room = width.saturating_sub(indent.width() + GAP.len() * columns.saturating_sub(1));
        let Some(widths) = column_widths((0..columns).map(widest).collect(), room) else {
            return self.table_records(rows, width, paint);
        };
        for (number, row) in rows.into_iter().enumerate() {
            let heading = |style| if number == 0 { Style::Strong } else { style };
            let cells: Vec<Vec<Line>> = row
                .into_iter()
                .zip(&widths)
                .map(|(spans, width)| {
                    let spans: Spans = spans.into_iter().map(|(text, style)| (text, heading(style))).collect();
                    wrapped(&spans, [0, 0], *width, LongWords::Broken, paint)
                })
                .collect();
            for part in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let cells = cells.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                    let Line { text, width: used } = cell.get(part).cloned().unwrap_or_default();
                    let gap = " ".repeat(width.saturating_sub(used));
                    if self.aligns_right.get(column) == Some(&true) { gap + &text } else { text + &gap }
                });
                let line = cells.collect::<Vec<_>>().join(GAP);
                self.lines.push(format!("{indent}{}", line.trim_end()));
            }
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.lines.push(format!("{indent}{}", paint.dim(rules.join(GAP))));
            }
        }
    }

    fn table_records(&mut self, rows: Vec<Vec<Spans>>, width: usize, paint: Paint) {
        let mut rows = rows.into_iter();
        let headings = rows.next().unwrap_or_default();
        for row in rows {
            for (number, (heading, cell)) in headings.iter().zip(row).enumerate() {
                self.mark = (number == 0).then(|| format!("{}• ", self.indent()));
                self.indents.push("  ".to_owned());
                self.spans = heading.iter().map(|(text, _)| (text.clone(), Style::Strong)).collect();
                self.spans.push((": ".to_owned(), Style::Plain));
                self.spans.extend(cell);
                self.end_line(width, paint);
                self.indents.pop();
            }
        }
    }

    /// Ends a paragraph or another block: an empty line follows, but not between the items of a list.
    fn end_block(&mut self, width: usize, paint: Paint) {
        self.end_line(width, paint);
        if self.lists.is_empty() {
            self.lines.push(self.indent().trim_end().to_owned());
        }
    }

    /// Ends the present line, wrapped at words.
    fn end_line(&mut self, width: usize, paint: Paint) {
        if self.spans.is_empty() {
            return;
        }
        let indent = self.indent();
        let beginning = self.mark.take().unwrap_or_else(|| indent.clone());
        let (spans, begins) = (std::mem::take(&mut self.spans), [beginning.width(), indent.width()]);
        let lines = wrapped(&spans, begins, width, LongWords::Whole, paint);
        for (number, Line { text, .. }) in lines.into_iter().enumerate() {
            let beginning = if number == 0 { &beginning } else { &indent };
            self.lines.push(format!("{beginning}{text}").trim_end().to_owned());
        }
    }
}

/// The widths of the columns of a table: those of the widest cells or, where that is too much, the longest columns get the
/// same width. `None` if that is too little.
fn column_widths(natural: Vec<usize>, room: usize) -> Option<Vec<usize>> {
    let total = |most: usize| natural.iter().map(|width| *width.min(&most)).sum::<usize>();
    if total(usize::MAX) <= room {
        return Some(natural);
    }
    let most = (LEAST_COLUMN..=room).rev().find(|most| total(*most) <= room)?;
    let mut spare = room - total(most);
    let width = |natural: usize| {
        let more = usize::from(spare > 0 && natural > most);
        spare -= more;
        natural.min(most) + more
    };
    Some(natural.into_iter().map(width).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::wrap;

    fn plain(text: &str, width: usize) -> String {
        let lines = typeset(text, width, Paint::Colour);
        lines.iter().map(|line| wrap::without_colours(line)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn marks_that_colours_replace_stay_without_colours() {
        let shown = typeset("**Bold**, ~~old~~ and `a b`", 40, Paint::Plain).join("\n");
        assert_eq!(shown, "Bold, ~~old~~ and `a b`");
    }

    #[test]
    fn paragraphs_are_wrapped_at_words_and_line_breaks_stay() {
        assert_eq!(plain("one two three four five\nsix", 20), "one two three four\nfive\nsix");
        assert_eq!(plain("one\n\ntwo", 20), "one\n\ntwo");
        assert_eq!(plain("日本語の文章です。日本語の文章です。", 20), "日本語の文章です。日\n本語の文章です。");
    }

    #[test]
    fn the_columns_of_a_table_are_aligned_where_they_fit() {
        let table = "| name | days |\n|---|--:|\n| 山田 | 3 |\n| **Ada** L. | `12` |\n\nDone.";
        assert_eq!(plain(table, 40), "name    days\n──────  ────\n山田       3\nAda L.    12\n\nDone.");
    }

    #[test]
    fn the_longest_cells_of_a_wide_table_are_wrapped() {
        let wide = "| name | remark |\n|---|---|\n| Ada | one two three **four** |\n| Bo | `0123456789abcdef` |";
        let wrapped = [
            "name  remark",
            "────  ──────────────",
            "Ada   one two three",
            "      four",
            "Bo    0123456789abcd",
            "      ef",
        ];
        assert_eq!(plain(wide, 20), wrapped.join("\n"));
        assert_eq!(column_widths(vec![4, 20, 30], 36), Some(vec![4, 16, 16]));
        assert_eq!(column_widths(vec![4, 20, 30], 35), Some(vec![4, 16, 15]));
        assert_eq!(column_widths(vec![20, 20, 9], 20), None);
    }

    #[test]
    fn a_table_whose_columns_would_be_too_narrow_is_shown_as_records() {
        let wide = "| name | remark | reason |\n|---|---|---|\n| Ada Lindqvist | one two three four | late again |";
        let records = "• name: Ada\n  Lindqvist\n  remark: one two\n  three four\n  reason: late again";
        assert_eq!(plain(wide, 20), records);
    }

    #[test]
    fn punctuation_stays_with_the_code_beside_it() {
        assert_eq!(plain("one two three (`four`).", 20), "one two three\n(four).");
        assert_eq!(plain("one two three **four**, five", 20), "one two three four,\nfive");
        let list = "`aaaaaaa`,`bbbbbbb`,`ccccccc`";
        assert_eq!(plain(list, 20), "aaaaaaa,bbbbbbb,\nccccccc");
    }

    #[test]
    fn lists_hang_and_are_numbered() {
        let text = "Steps:\n\n1. one two three four five six\n2. two\n   - inner\n\nDone.";
        assert_eq!(plain(text, 20), "Steps:\n\n1. one two three\n   four five six\n2. two\n   • inner\n\nDone.");
        assert_eq!(plain("- a\n- b", 20), "• a\n• b");
        assert_eq!(plain("> quoted text that is\n> long", 20), "> quoted text that\n> is\n> long");
    }

    #[test]
    fn code_is_not_wrapped_and_other_text_is_painted() {
        let code = "```rust\nfn main() { println!(\"a long line of code\"); }\n```";
        assert_eq!(plain(code, 20), "rust\n  fn main() { println!(\"a long line of code\"); }");
        let painted = typeset("# Head\n**bold** *it* `code` ~~old~~", 40, Paint::Colour);
        assert_eq!(painted[0], "\u{1b}[1mHead\u{1b}[0m");
        assert_eq!(
            painted[2],
            "\u{1b}[1mbold\u{1b}[0m \u{1b}[3mit\u{1b}[0m \u{1b}[36mcode\u{1b}[0m \u{1b}[9mold\u{1b}[0m"
        );
    }

    #[test]
    fn control_characters_of_a_model_are_shown_by_their_codes() {
        for text in ["a\u{1b}[2Jb", "`a\u{1b}[2Jb`", "```\na\u{1b}[2Jb\n```", "**a\u{1b}[2Jb**"] {
            let shown = plain(text, 40);
            assert!(shown.contains("a\\u{1b}[2Jb"), "{shown}");
        }
    }

    #[test]
    fn no_text_is_lost() {
        let text = "A <b>tag</b>, a [link](http://a.example) and ![image](b.png) \\* 1 < 2 & 3\n\n---\n\n1) x";
        let shown = plain(text, 80);
        for part in ["<b>tag</b>", "link (http://a.example)", "image (b.png)", "* 1 < 2 & 3", "x"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}
