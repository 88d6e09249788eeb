//! Menu of a prompt: numbered options with a mark that the arrow keys move. Pure.

use crate::cli::wrap::wrap;

/// Numbered options. An option may have several lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cli) struct Menu {
    options: Vec<String>,
    /// The option that is marked first.
    usual: Option<usize>,
}

impl Menu {
    /// A menu without a mark.
    pub(in crate::cli) fn new(options: Vec<String>) -> Self {
        Self { options, usual: None }
    }

    /// The menu with a mark at an option.
    #[must_use]
    pub(in crate::cli) fn marked_at(self, usual: usize) -> Self {
        Self { usual: Some(usual), ..self }
    }

    pub(super) fn usual(&self) -> Option<usize> {
        self.usual
    }

    /// The option before or after the marked one. Without a mark, the last or the first.
    pub(super) fn step(&self, marked: Option<usize>, is_down: bool) -> Option<usize> {
        let last = self.options.len().checked_sub(1)?;
        Some(match (marked, is_down) {
            (None, true) => 0,
            (None, false) => last,
            (Some(at), true) => (at + 1).min(last),
            (Some(at), false) => at.saturating_sub(1),
        })
    }

    /// The options as lines of a terminal: those around the marked one that fit these rows, and how many more there are.
    pub(super) fn text(&self, marked: Option<usize>, columns: usize, rows: usize) -> String {
        let width = self.options.len().to_string().len();
        let blocks: Vec<String> = self
            .options
            .iter()
            .enumerate()
            .map(|(at, option)| {
                let mark = if marked == Some(at) { "\u{276f}" } else { " " };
                let indent = format!("\n{}", " ".repeat(width + 4));
                wrap(&format!("{mark} {:>width$}. {}", at + 1, option.replace('\n', &indent)), columns)
            })
            .collect();
        let height = |from: usize, to: usize| -> usize {
            blocks.get(from..=to).unwrap_or_default().iter().map(|block| block.split('\n').count()).sum()
        };
        let at = marked.unwrap_or(0);
        let from = (0..at).find(|from| height(*from, at) <= rows).unwrap_or(at);
        let to = (at..blocks.len()).take_while(|to| height(from, *to) <= rows).last().unwrap_or(at);
        let mut text: String =
            blocks.get(from..=to).unwrap_or_default().iter().map(|block| format!("{block}\n")).collect();
        let hidden = blocks.len().saturating_sub(to + 1 - from);
        if hidden > 0 && !blocks.is_empty() {
            text.push_str(&format!("  \u{2026} {hidden} more, with the arrow keys\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(count: usize) -> Menu {
        Menu::new((1..=count).map(|number| format!("option {number}\nabout {number}")).collect())
    }

    #[test]
    fn the_mark_moves_between_the_options_and_stays_at_both_ends() {
        let menu = menu(3);
        let moves = |keys: &[bool]| keys.iter().fold(menu.usual(), |marked, is_down| menu.step(marked, *is_down));
        assert_eq!([moves(&[true]), moves(&[false])], [Some(0), Some(2)]);
        assert_eq!([moves(&[true, true, false]), moves(&[true; 5])], [Some(0), Some(2)]);
        assert_eq!(Menu::default().step(None, true), None);
    }

    #[test]
    fn options_are_numbered_and_the_marked_one_is_always_among_those_that_fit() {
        let text = menu(2).text(Some(1), 80, 20);
        assert_eq!(text, "  1. option 1\n     about 1\n\u{276f} 2. option 2\n     about 2\n");
        let menu = menu(12);
        for marked in 0..12 {
            let text = menu.text(Some(marked), 80, 7);
            assert!(text.contains(&format!("\u{276f} {:>2}. option {}\n", marked + 1, marked + 1)), "{text}");
            assert_eq!((text.lines().count(), text.contains("9 more")), (7, true), "{text}");
        }
        assert_eq!(menu.text(None, 80, 1).lines().count(), 3, "an option that does not fit is shown whole");
    }
}
