//! Styled text of a line, wrapped at words. Pure.

use unicode_width::UnicodeWidthStr as _;

use crate::cli::paint::Paint;
use crate::cli::wrap;

/// How a part of a line is painted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Style {
    #[default]
    Plain,
    Strong,
    Emphasis,
    Struck,
    Code,
    Remark,
}

/// The parts of a line.
pub(super) type Spans = Vec<(String, Style)>;

/// What becomes of a word that is wider than a line.
#[derive(Clone, Copy, Debug)]
pub(super) enum LongWords {
    Whole,
    Broken,
}

/// A painted line with its columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) width: usize,
}

impl Line {
    fn of(mut spans: Spans, paint: Paint) -> Self {
        spans.last_mut().into_iter().for_each(|(text, _)| text.truncate(text.trim_end_matches(' ').len()));
        let width = spans.iter().map(|(text, _)| text.width()).sum();
        Self { text: spans.iter().map(|(text, style)| style.paint(text, paint)).collect(), width }
    }
}

/// The lines of a text, wrapped at words. The first line and the further ones begin at these columns.
pub(super) fn wrapped(spans: &Spans, begins: [usize; 2], width: usize, long: LongWords, paint: Paint) -> Vec<Line> {
    let [mut begin, further] = begins;
    let (mut lines, mut line, mut used) = (Vec::new(), Spans::new(), 0);
    for word in words(spans, width.saturating_sub(further), long) {
        let text: String = word.iter().map(|(text, _)| text.as_str()).collect();
        if used > 0 && begin + used + text.trim_end_matches(' ').width() > width {
            lines.push(Line::of(std::mem::take(&mut line), paint));
            (begin, used) = (further, 0);
        }
        used += text.width();
        line.extend(word);
    }
    lines.push(Line::of(line, paint));
    lines
}

impl Style {
    fn paint(self, text: &str, paint: Paint) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Strong => paint.bold(text),
            Self::Emphasis => paint.italic(text),
            Self::Struck => paint.strike(text),
            Self::Code => paint.cyan(text),
            Self::Remark => paint.dim(text),
        }
    }
}

/// The words of a line, each with the white space after it. Code is one word, with the punctuation at its sides. A word that
/// is wider than a line ends wherever its style changes.
fn words(spans: &Spans, columns: usize, long: LongWords) -> Vec<Spans> {
    let mut words: Vec<Spans> = Vec::new();
    for (text, style) in spans {
        let parts = match style {
            Style::Code => vec![text.as_str()],
            Style::Plain | Style::Strong | Style::Emphasis | Style::Struck | Style::Remark => {
                wrap::words(text).collect()
            }
        };
        for part in parts {
            let before = words.last_mut().filter(|word| word.last().is_some_and(|(text, _)| !may_end(text, part)));
            match before {
                Some(word) => word.push((part.to_owned(), *style)),
                None => words.push(vec![(part.to_owned(), *style)]),
            }
        }
    }
    let width = |word: &Spans| word.iter().map(|(text, _)| text.trim_end_matches(' ').width()).sum::<usize>();
    let split = |word: Spans| match long {
        _ if width(&word) <= columns => vec![word],
        LongWords::Whole => word.into_iter().map(|part| vec![part]).collect(),
        LongWords::Broken => {
            let letters = |(text, style): &(String, Style)| {
                let letters = wrap::letters(text).into_iter().map(|(letter, _)| vec![(letter.to_owned(), *style)]);
                letters.collect::<Vec<_>>()
            };
            word.iter().flat_map(letters).collect()
        }
    };
    words.into_iter().flat_map(split).collect()
}

/// Whether a line may end between two parts.
fn may_end(before: &str, after: &str) -> bool {
    let pair = before.chars().next_back().zip(after.chars().next());
    pair.is_none_or(|(before, after)| after == ' ' || wrap::may_break(before, after))
}
