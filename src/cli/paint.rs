//! Colour settings: decided once per stream, so that only this module checks terminals and `NO_COLOR`.

use std::fmt::Display;

/// Paints text for one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    /// ANSI colours.
    Colour,
    Plain,
}

impl Paint {
    /// Colours for a terminal, unless `NO_COLOR` is set to anything or the terminal is a dumb one.
    pub(super) fn choose(is_terminal: bool, env: impl Fn(&str) -> Option<String>) -> Self {
        let refused =
            env("NO_COLOR").is_some_and(|value| !value.is_empty()) || env("TERM").is_some_and(|t| t == "dumb");
        if is_terminal && !refused { Self::Colour } else { Self::Plain }
    }

    pub(super) fn bold(self, text: impl Display) -> String {
        self.wrap("1", text)
    }

    pub(super) fn dim(self, text: impl Display) -> String {
        self.wrap("2", text)
    }

    pub(super) fn italic(self, text: impl Display) -> String {
        self.wrap("3", text)
    }

    pub(super) fn strike(self, text: impl Display) -> String {
        self.wrap("9", text)
    }

    pub(super) fn red(self, text: impl Display) -> String {
        self.wrap("31", text)
    }

    pub(super) fn green(self, text: impl Display) -> String {
        self.wrap("32", text)
    }

    pub(super) fn yellow(self, text: impl Display) -> String {
        self.wrap("33", text)
    }

    pub(super) fn cyan(self, text: impl Display) -> String {
        self.wrap("36", text)
    }

    fn wrap(self, code: &str, text: impl Display) -> String {
        match self {
            Self::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Plain => text.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_that_supports_it_gets_colour() {
        let env =
            |name: &'static str, value: &'static str| move |wanted: &str| (wanted == name).then(|| value.to_owned());
        assert_eq!(Paint::choose(true, env("TERM", "xterm")), Paint::Colour);
        assert_eq!(Paint::choose(true, env("NO_COLOR", "1")), Paint::Plain);
        assert_eq!(Paint::choose(true, env("TERM", "dumb")), Paint::Plain);
        assert_eq!(Paint::choose(false, env("TERM", "xterm")), Paint::Plain);
    }
}
