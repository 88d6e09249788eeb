//! Markdown of a model as lines for a terminal. Pure.
//!
//! Text is wrapped at words, emphasis and code are painted, lists hang, and the columns of a table are aligned if they fit.
//! A line break of the text stays one, so that verses keep their lines. Code is never wrapped: it can be copied.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr as _;

use crate::cli::paint::Paint;
use crate::cli::wrap;
use crate::core::tool::escape_untrusted;

/// The narrowest column that text is wrapped at.
const LEAST: usize = 20;
/// The gap between two columns of a table.
const GAP: &str = "  ";

/// How a part of a line is painted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Style {
    #[default]
    Plain,
    Strong,
    Emphasis,
    Code,
    Remark,
}

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
}

/// The parts of a line.
type Spans = Vec<(String, Style)>;

/// The lines of a Markdown text, none wider than `width` except for code and words that are wider.
pub(super) fn typeset(text: &str, width: usize, paint: Paint) -> Vec<String> {
    let width = width.max(LEAST);
    let mut writer = Writer::default();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
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
            Event::Start(tag) => self.start(&tag, width, paint),
            Event::End(tag) => self.end(tag, width, paint),
            Event::Text(text) if self.is_code => {
                for line in text.lines() {
                    self.code_line(line, paint);
                }
            }
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.push(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.spans.push((escape_untrusted(&text), Style::Code));
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
            Tag::Table(_) => {
                self.end_line(width, paint);
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
            TagEnd::Strong | TagEnd::Emphasis => drop(self.styles.pop()),
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

    /// A table: aligned columns below the headings, or, where they are wider than the terminal, the cells of each row with
    /// their headings.
    fn table_lines(&mut self, rows: Vec<Vec<Spans>>, width: usize, paint: Paint) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell_width = |spans: &Spans| spans.iter().map(|(text, _)| text.width()).sum::<usize>();
        let widest = |column| rows.iter().filter_map(|row| row.get(column)).map(cell_width).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        let indent = self.indent();
        let taken = indent.width() + widths.iter().sum::<usize>() + GAP.len() * columns.saturating_sub(1);
        if taken > width {
            return self.table_records(rows, width, paint);
        }
        for (number, row) in rows.iter().enumerate() {
            let cells = row.iter().zip(&widths).map(|(spans, width)| {
                let heading = |style: &Style| if number == 0 { Style::Strong } else { *style };
                let text: String = spans.iter().map(|(text, style)| heading(style).paint(text, paint)).collect();
                text + &" ".repeat(width - cell_width(spans))
            });
            let line = cells.collect::<Vec<_>>().join(GAP);
            self.lines.push(format!("{indent}{}", line.trim_end()));
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
        let mut line = self.mark.take().unwrap_or_else(|| indent.clone());
        let mut used = line.width();
        let mut is_first = true;
        for (word, style) in words(&std::mem::take(&mut self.spans)) {
            let needed = word.width();
            if !is_first && used + word.trim_end().width() > width {
                self.lines.push(line.trim_end().to_owned());
                (line, used) = (indent.clone(), indent.width());
            }
            line.push_str(&style.paint(&word, paint));
            (used, is_first) = (used + needed, false);
        }
        self.lines.push(line.trim_end().to_owned());
    }
}

impl Style {
    fn paint(self, text: &str, paint: Paint) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Strong => paint.bold(text),
            Self::Emphasis => paint.italic(text),
            Self::Code => paint.cyan(text),
            Self::Remark => paint.dim(text),
        }
    }
}

/// The words of a line, each with the white space after it. Code is one word.
fn words(spans: &[(String, Style)]) -> impl Iterator<Item = (String, Style)> {
    spans.iter().flat_map(|(text, style)| {
        let parts: Vec<String> = match style {
            Style::Code => vec![text.clone()],
            Style::Plain | Style::Strong | Style::Emphasis | Style::Remark => {
                wrap::words(text).map(str::to_owned).collect()
            }
        };
        parts.into_iter().map(|part| (part, *style))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, width: usize) -> String {
        typeset(text, width, Paint::Plain).join("\n")
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
        assert_eq!(plain(table, 40), "name    days\n──────  ────\n山田    3\nAda L.  12\n\nDone.");
        let wide = "| name | remark |\n|---|---|\n| Ada | one two three four |";
        assert_eq!(plain(wide, 20), "• name: Ada\n  remark: one two\n  three four");
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
        let painted = typeset("# Head\n**bold** *it* `code`", 40, Paint::Colour);
        assert_eq!(painted[0], "\u{1b}[1mHead\u{1b}[0m");
        assert_eq!(painted[2], "\u{1b}[1mbold\u{1b}[0m \u{1b}[3mit\u{1b}[0m \u{1b}[36mcode\u{1b}[0m");
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
