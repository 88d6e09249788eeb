//! Commands of a conversation: lines that begin with a slash.

use crate::cli::wrap::hanging;
use crate::core::similar::{did_you_mean, similar};

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Tools,
    Model(Option<String>),
    Policy(Option<String>),
    Agent(Option<String>),
    Attach(String),
    Approvals,
    Revoke(String),
    Cost,
    Show(Option<String>),
    Trace,
    Resume,
    Cancel,
    Retry,
    Compact,
    Fork,
    New,
    Quit,
}

/// The commands as `/help` lists them: name, argument, effect.
const COMMANDS: [(&str, &str, &str); 18] = [
    ("/help", "", "lists the commands"),
    ("/tools", "", "lists the agent's tools, and which require approval"),
    ("/model", "[NAME]", "lists the models, or asks another one from the next message on"),
    ("/policy", "[NAME]", "lists the policies, or applies another one from the next turn on"),
    ("/agent", "[NAME]", "lists the agents, or begins a conversation with another one"),
    ("/attach", "FILE", "adds an image, a PDF or a text to the next message, as @FILE in the message does"),
    ("/approvals", "", "asks for the answers that the last turn waits for, or lists the grants of this conversation"),
    ("/revoke", "GRANT", "revokes a grant, so that its calls require approval again"),
    ("/cost", "", "tokens and cost of this conversation"),
    ("/show", "[CALL]", "a call whole, with its arguments and its result: the last one, or that of a number or an id"),
    ("/trace", "", "the spans of the last turn as a waterfall"),
    ("/resume", "", "asks for the answers that the last turn waits for, as Enter does"),
    ("/cancel", "", "cancels the last turn, if it is pending"),
    ("/retry", "", "asks the model again where the last turn ended, in its place"),
    ("/compact", "", "replaces the beginning of the conversation by a summary"),
    ("/fork", "", "the next message begins a copy of this conversation, which stays as it is"),
    ("/new", "", "begins a new conversation"),
    ("/quit", "", "leaves, as Ctrl-D does"),
];

/// The keys as `/help` lists them after the commands: key, effect.
const KEYS: [(&str, &str); 6] = [
    ("Alt-Enter", "begins another line of the message, as Enter after \\ does"),
    (
        "Up, Down",
        "move in a message of several lines; in its first and last, recall others, also of other conversations",
    ),
    ("Ctrl-R", "recalls the message before that contains the text typed before or after it"),
    ("Tab", "completes a command, or the path after @"),
    ("Shift-Tab", "applies the next policy"),
    ("Esc", "interrupts a turn"),
];

impl Command {
    /// The commands that choose something for the next message, and do nothing else.
    pub(super) const CHOICES: [&str; 2] = ["/model", "/policy"];

    /// Parses a line; `None` for a message. The error says what to write instead.
    pub(super) fn parse(line: &str) -> Option<Result<Self, String>> {
        let line = line.trim_end();
        let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let letters = name.strip_prefix('/')?;
        if letters.is_empty() || !letters.chars().all(|c| c.is_ascii_lowercase()) {
            return None;
        }
        let argument = Some(argument.trim()).filter(|argument| !argument.is_empty()).map(str::to_owned);
        let takes_none = |command| match &argument {
            None => Ok(command),
            Some(_) => Err(format!("{name} takes no argument")),
        };
        Some(match name {
            "/help" => takes_none(Self::Help),
            "/tools" => takes_none(Self::Tools),
            "/model" => Ok(Self::Model(argument)),
            "/policy" => Ok(Self::Policy(argument)),
            "/agent" => Ok(Self::Agent(argument)),
            "/attach" => argument.map(Self::Attach).ok_or_else(|| "which file? /attach FILE".to_owned()),
            "/approvals" => takes_none(Self::Approvals),
            "/revoke" => argument.map(Self::Revoke).ok_or_else(|| "which grant? /approvals lists them".to_owned()),
            "/cost" => takes_none(Self::Cost),
            "/show" => Ok(Self::Show(argument)),
            "/trace" => takes_none(Self::Trace),
            "/resume" => takes_none(Self::Resume),
            "/cancel" => takes_none(Self::Cancel),
            "/retry" => takes_none(Self::Retry),
            "/compact" => takes_none(Self::Compact),
            "/fork" => takes_none(Self::Fork),
            "/new" => takes_none(Self::New),
            "/quit" | "/exit" => takes_none(Self::Quit),
            _ => {
                let known = COMMANDS.iter().map(|(name, ..)| *name);
                let meant = did_you_mean(similar(name, known)).map(|meant| format!("{meant} "));
                Err(format!(
                    "there is no command {name}; {}/help lists the commands, and a message may begin with a space before the \
                     slash",
                    meant.unwrap_or_default()
                ))
            }
        })
    }

    /// Their names, for completion.
    pub(super) fn names() -> Vec<String> {
        COMMANDS.iter().map(|(name, ..)| (*name).to_owned()).collect()
    }

    /// The lines of `/help` for a terminal of this width.
    pub(super) fn help(columns: usize) -> Vec<String> {
        let commands = COMMANDS.iter().map(|(name, argument, effect)| (format!("{name} {argument}"), *effect));
        let keys = KEYS.iter().map(|(keys, effect)| ((*keys).to_owned(), *effect));
        commands.chain(keys).flat_map(|(what, effect)| hanging(&format!("  {what:<16} "), effect, columns)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_only_if_its_first_word_is_a_slash_and_letters() {
        for message in ["hello", "/etc/hosts is wrong", "/", " /help", "1/2", "/Help"] {
            assert_eq!(Command::parse(message), None, "{message}");
        }
        let model = Command::Model(Some("big one".into()));
        for (line, command) in [("/help", Command::Help), ("/model  big one ", model), ("/exit", Command::Quit)] {
            assert_eq!(Command::parse(line), Some(Ok(command)), "{line}");
        }
        for (line, reason) in [
            ("/tols", "there is no command /tols"),
            ("/cost please", "/cost takes no argument"),
            ("/attach", "which file? /attach FILE"),
            ("/revoke", "which grant? /approvals lists them"),
        ] {
            let refused = Command::parse(line).unwrap().unwrap_err();
            assert!(refused.starts_with(reason), "{refused}");
        }
    }

    #[test]
    fn descriptions_that_are_wrapped_hang_below_their_first_word() {
        let help = Command::help(60);
        assert!(help.iter().all(|line| line.chars().count() <= 60), "{help:#?}");
        let policy = help.iter().position(|line| line.contains("/policy")).unwrap();
        assert!(help[policy + 1].starts_with(&" ".repeat(19)), "{help:#?}");
    }

    #[test]
    fn every_listed_command_exists() {
        for (name, argument, _) in COMMANDS {
            assert!(matches!(Command::parse(&format!("{name} {argument}")), Some(Ok(_))), "{name}");
        }
    }
}
