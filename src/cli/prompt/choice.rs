//! Numbered choices: Enter takes the default.

use std::io;

use super::console::Console;
use super::{Menu, Prompt};
use crate::core::tool::escape_untrusted;

impl<C: Console> Prompt<C> {
    /// Asks for one of the options; `usual` is the default. `None` at the end of the input.
    pub(in crate::cli) fn choose(
        &mut self,
        question: &str,
        options: &[String],
        usual: usize,
    ) -> io::Result<Option<usize>> {
        let menu = self.offer(question, options)?.marked_at(usual);
        loop {
            let Some(typed) = self.pick(&format!("  a number [{}]: ", usual + 1), &menu)? else { return Ok(None) };
            match numbers(&typed, options.len()).as_deref() {
                Some([]) => return Ok(Some(usual)),
                Some([one]) => return Ok(Some(*one)),
                Some(_) | None => self.say(&format!("  type a number from 1 to {}", options.len()))?,
            }
        }
    }

    /// Asks for any of the options. `None` at the end of the input.
    pub(in crate::cli) fn choose_several(
        &mut self,
        question: &str,
        options: &[String],
        usual: &[usize],
    ) -> io::Result<Option<Vec<usize>>> {
        let menu = self.offer(question, options)?;
        let usually: Vec<String> = usual.iter().map(|index| (index + 1).to_string()).collect();
        let usually = if usually.is_empty() { "none".to_owned() } else { usually.join(",") };
        loop {
            let asked = format!("  numbers with commas, or none [{usually}]: ");
            let Some(typed) = self.pick(&asked, &menu)? else { return Ok(None) };
            match numbers(&typed, options.len()) {
                _ if typed.trim() == "none" => return Ok(Some(Vec::new())),
                Some(chosen) if chosen.is_empty() => return Ok(Some(usual.to_vec())),
                Some(chosen) => return Ok(Some(chosen)),
                None => self.say(&format!("  type numbers from 1 to {}, for example 1,2", options.len()))?,
            }
        }
    }

    fn offer(&mut self, question: &str, options: &[String]) -> io::Result<Menu> {
        let heading = self.console.paint().bold(question);
        self.say(&format!("\n{heading}"))?;
        Ok(Menu::new(options.iter().map(|option| escape_untrusted(option)).collect()))
    }
}

/// The position that a number from 1 to `most` names.
pub(in crate::cli) fn position(number: &str, most: usize) -> Option<usize> {
    number.trim().parse::<usize>().ok().filter(|number| *number <= most)?.checked_sub(1)
}

/// The positions that the numbers of a line name, each once; `None` if a word is not one of them.
pub(super) fn numbers(line: &str, most: usize) -> Option<Vec<usize>> {
    let words = line.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty());
    let mut chosen = Vec::new();
    for word in words {
        let position = position(word, most)?;
        if !chosen.contains(&position) {
            chosen.push(position);
        }
    }
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::super::console::Script;
    use super::*;

    fn options() -> Vec<String> {
        ["red", "green", "blue\u{1b}[2J"].map(str::to_owned).to_vec()
    }

    #[test]
    fn enter_takes_the_default_and_a_wrong_number_is_asked_again() {
        for (typed, chosen) in [("\n", Some(1)), ("0\n4\nred\n1,2\n3\n", Some(2)), ("", None)] {
            let mut prompt = Prompt::new(Script::typing(typed));
            assert_eq!(prompt.choose("Which colour?", &options(), 1).unwrap(), chosen, "{typed:?}");
            assert!(!prompt.console.shown.contains('\u{1b}'), "{}", prompt.console.shown);
        }
    }

    #[test]
    fn several_are_chosen_with_commas_or_none_of_them() {
        for (typed, chosen) in
            [("\n", Some(vec![0])), ("none\n", Some(vec![])), ("3, 1 3\n", Some(vec![2, 0])), ("", None)]
        {
            let mut prompt = Prompt::new(Script::typing(typed));
            assert_eq!(prompt.choose_several("Which?", &options(), &[0]).unwrap(), chosen, "{typed:?}");
        }
    }
}
