//! Typesetter of streamed Markdown: blocks are typeset when they are whole, and the present one is shown as it grows. Pure.

use super::DisplaySettings;
use super::markdown::{code_line, typeset};
use crate::cli::text::{count, one_line};
use crate::core::tool::escape_untrusted;

/// The number of lines of an unfinished block that are shown.
const SHOWN: usize = 8;

/// The text of a model since its last whole block.
#[derive(Debug)]
pub(super) struct Typesetter {
    look: DisplaySettings,
    /// The whole lines of the present block.
    block: String,
    /// The line that is not whole yet.
    line: String,
    /// The mark that ends the present code block, such as three backticks.
    fence: Option<String>,
    reasoning: String,
    /// Whether an empty line came after the block. An indented line after it still belongs to it.
    is_ending: bool,
}

impl Typesetter {
    pub(super) fn new(look: DisplaySettings) -> Self {
        Self {
            look,
            block: String::new(),
            line: String::new(),
            reasoning: String::new(),
            fence: None,
            is_ending: false,
        }
    }

    pub(super) fn resize(&mut self, width: usize) {
        self.look.width = width;
    }

    /// Adds text; returns the lines of the blocks that are whole now.
    pub(super) fn push(&mut self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for part in text.split_inclusive('\n') {
            self.line.push_str(part);
            if let Some(line) = self.line.strip_suffix('\n').map(str::to_owned) {
                self.line.clear();
                lines.extend(self.whole_line(&line));
            }
        }
        lines
    }

    /// Ends the text; returns the lines of its last block.
    pub(super) fn end(&mut self) -> Vec<String> {
        let line = std::mem::take(&mut self.line);
        let mut lines = if line.is_empty() { Vec::new() } else { self.whole_line(&line) };
        lines.extend(self.end_block());
        (self.fence, self.is_ending) = (None, false);
        lines
    }

    /// The last lines of the unfinished block.
    pub(super) fn unfinished(&self) -> Vec<String> {
        let mut lines = match &self.fence {
            Some(_) => vec![code_line(&self.line, self.look.paint)],
            None => {
                let gap = if self.is_ending { "\n" } else { "" };
                self.typeset(&format!("{}{gap}{}", self.block, self.line))
            }
        };
        lines.drain(..lines.len().saturating_sub(SHOWN));
        lines
    }

    /// Adds reasoning; returns the end of it, on one line.
    pub(super) fn push_reasoning(&mut self, text: &str) -> String {
        self.reasoning.push_str(text);
        // Wide characters take two columns.
        let room = self.look.width.saturating_sub(4) / 2;
        let from = self.reasoning.char_indices().rev().nth(room).map_or(0, |(at, _)| at);
        let end = one_line(self.reasoning.get(from..).unwrap_or_default(), usize::MAX);
        self.look.paint.dim(end)
    }

    /// Ends the reasoning; returns the line that stands for it.
    pub(super) fn end_reasoning(&mut self) -> String {
        let words = std::mem::take(&mut self.reasoning).split_whitespace().count();
        self.look.paint.dim(format!("reasoning, {}", count(words, "word")))
    }

    /// The lines of a whole text.
    pub(super) fn typeset(&self, text: &str) -> Vec<String> {
        // The gutter of the view takes four columns.
        typeset(text, self.look.width.saturating_sub(4), self.look.paint)
    }

    fn whole_line(&mut self, line: &str) -> Vec<String> {
        if let Some(fence) = &self.fence {
            if line.trim() != fence {
                return vec![code_line(line, self.look.paint)];
            }
            (self.fence, self.is_ending) = (None, true);
            return Vec::new();
        }
        if line.trim().is_empty() {
            self.is_ending = true;
            return Vec::new();
        }
        let mut lines = Vec::new();
        let fence = opened_fence(line);
        let is_continued = line.starts_with([' ', '\t']) && !self.block.is_empty() && fence.is_none();
        if (self.is_ending && !is_continued) || fence.is_some() {
            let is_first = self.block.is_empty() && !self.is_ending;
            lines.extend(self.end_block());
            lines.extend((!is_first).then(String::new));
        } else if self.is_ending {
            self.block.push('\n');
        }
        self.is_ending = false;
        match fence {
            Some((fence, language)) => {
                lines.extend((!language.is_empty()).then(|| self.look.paint.dim(escape_untrusted(language))));
                self.fence = Some(fence);
            }
            None => self.block.push_str(&format!("{line}\n")),
        }
        lines
    }

    fn end_block(&mut self) -> Vec<String> {
        let block = std::mem::take(&mut self.block);
        self.typeset(&block)
    }
}

/// The mark and the language of a line that begins a code block.
fn opened_fence(line: &str) -> Option<(String, &str)> {
    let line = line.trim();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let language = line.trim_start_matches(mark);
    let fence: String = line.chars().take_while(|c| *c == mark).collect();
    (fence.len() >= 3 && !language.contains(mark)).then_some((fence, language.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::paint::Paint;

    const TEXT: &str =
        "Some **words** first.\n\n1. one\n\n   more of one\n2. two\n```sh\nls\n\n\tpwd\n```\nThe end\nof it";

    fn typesetter() -> Typesetter {
        Typesetter::new(DisplaySettings { paint: Paint::Plain, width: 40 })
    }

    #[test]
    fn the_lines_are_the_same_however_the_text_is_cut() {
        let expected = [
            "Some words first.",
            "",
            "1. one",
            "   more of one",
            "2. two",
            "",
            "sh",
            "  ls",
            "  ",
            "      pwd",
            "",
            "The end",
            "of it",
        ];
        let characters: Vec<String> = TEXT.chars().map(String::from).collect();
        for size in [1, 2, 7, 1_000] {
            let mut typesetter = typesetter();
            let mut lines = Vec::new();
            for part in characters.chunks(size) {
                lines.extend(typesetter.push(&part.concat()));
            }
            lines.extend(typesetter.end());
            assert_eq!(lines, expected, "{size}");
        }
    }

    #[test]
    fn reasoning_is_one_line_and_folded_at_its_end() {
        let mut typesetter = typesetter();
        assert_eq!(typesetter.push_reasoning("First I\nthink. "), "First I think.");
        assert_eq!(typesetter.push_reasoning(&"more ".repeat(9)), "ore more more more");
        assert_eq!(typesetter.end_reasoning(), "reasoning, 12 words");
    }

    #[test]
    fn an_unfinished_block_is_shown_as_it_grows() {
        let mut typesetter = typesetter();
        assert!(typesetter.push("One **bo").is_empty());
        assert_eq!(typesetter.unfinished(), ["One **bo"]);
        assert!(typesetter.push("ld** word\nand").is_empty());
        assert_eq!(typesetter.unfinished(), ["One bold word", "and"]);
        assert!(typesetter.push("\n\nNext").is_empty());
        assert_eq!(typesetter.unfinished(), ["One bold word", "and", "", "Next"]);
        assert_eq!(typesetter.push("\n```\nlet a"), ["One bold word", "and", "", "Next", ""]);
        assert_eq!(typesetter.unfinished(), ["  let a"]);
        typesetter.push("\n```\n");
        typesetter.push(&"- item\n".repeat(20));
        assert_eq!(typesetter.unfinished().len(), SHOWN);
    }
}
