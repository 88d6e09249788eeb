//! Command conditions of grants (decision 0015). `args.commandStartsWith(['git', 'diff'])` compares the words of a call's
//! command, and `args.commandEquals(['git', 'diff', 'HEAD'])` all of them, as a rule that allows does with `command`.
//! `args.commandPartsStartWith(['git', 'diff'], ['head'])` compares each part of a chained command, and
//! `args.commandEquals('git diff > x')` the text of any command.
//!
//! The result is true or an error, never false: a command that is not plain, or has other words, may do the same in
//! another way. An error covers no call, also behind `!`.

use std::sync::Arc;

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};
use cel::objects::Opaque;
use cel::{Context, ExecutionError, Value as Cel};
use serde_json::{Map, Value};

use super::error::ConditionError;
use super::patterns::parts;
use crate::policy::command;
use crate::policy::{CommandPattern, FollowingWords, Verdict};

/// The functions that a condition of a grant calls.
pub(super) const GRANT_FUNCTIONS: [&str; 3] = [COMMAND_STARTS_WITH, COMMAND_PARTS_START_WITH, COMMAND_EQUALS];

const COMMAND_STARTS_WITH: &str = "commandStartsWith";
const COMMAND_PARTS_START_WITH: &str = "commandPartsStartWith";
const COMMAND_EQUALS: &str = "commandEquals";

/// The internal function that replaces them. A condition cannot write this name.
const COMPARE: &str = "@command";

/// What a condition compares a command with.
#[derive(Clone, Debug)]
pub(super) struct CommandTest {
    /// The name of the variable that holds the comparison.
    name: String,
    wanted: WantedCommand,
}

/// The commands that a condition covers.
#[derive(Clone, Debug)]
pub(in crate::policy) enum WantedCommand {
    /// Plain commands with these words.
    Words(CommandPattern),
    /// Chained commands, each part of which begins with the words of one of these patterns.
    Parts(Vec<CommandPattern>),
    /// The command with this text.
    Text(String),
}

/// The comparison of a call's command during an evaluation: the reason why it differs, or `None`.
#[derive(Debug, PartialEq, Eq)]
struct ComparedCommand(Option<String>);

/// Parses the words of an expression and replaces its calls by variables.
pub(super) fn compiled(expression: &mut IdedExpr) -> Result<Vec<CommandTest>, ConditionError> {
    let mut commands = Vec::new();
    take(expression, &mut commands)?;
    Ok(commands)
}

/// Registers the comparison.
pub(super) fn register(context: &mut Context<'_, '_>) {
    // The name is new, so that it cannot be refused.
    let _ = context.add_function(COMPARE, result);
}

/// Provides an expression with the comparisons of its words with the command of a call.
pub(super) fn provide(commands: &[CommandTest], arguments: Option<&Map<String, Value>>, context: &mut Context<'_, '_>) {
    for CommandTest { name, wanted } in commands {
        let differs = match arguments {
            Some(arguments) => wanted.why_other(arguments),
            None => Some("the arguments are not known".to_owned()),
        };
        let compared: Arc<dyn Opaque> = Arc::new(ComparedCommand(differs));
        context.add_variable_from_value(name.clone(), Cel::Opaque(compared));
    }
}

fn result(compared: Arc<dyn Opaque>) -> Result<bool, ExecutionError> {
    match compared.downcast_ref::<ComparedCommand>() {
        Some(ComparedCommand(None)) => Ok(true),
        Some(ComparedCommand(Some(_))) | None => Err(ExecutionError::function_error(COMPARE, "the command differs")),
    }
}

fn take(expression: &mut IdedExpr, commands: &mut Vec<CommandTest>) -> Result<(), ConditionError> {
    if let Expr::Call(call) = &mut expression.expr
        && GRANT_FUNCTIONS.contains(&call.func_name.as_str())
    {
        let words = CommandTest::new(call, commands.len())?;
        let Some(mut argument) = call.args.pop() else { return Err(usage(&call.func_name)) };
        argument.expr = Expr::Ident(words.name.clone());
        *call = CallExpr { func_name: COMPARE.to_owned(), target: None, args: vec![argument] };
        commands.push(words);
    }
    parts(expression).into_iter().try_for_each(|part| take(part, commands))
}

impl CommandTest {
    fn new(call: &CallExpr, number: usize) -> Result<Self, ConditionError> {
        let usage = || usage(&call.func_name);
        let is_of_arguments = call.target.as_ref().is_some_and(|target| is_arguments(target));
        let wanted = match (call.func_name.as_str(), &call.args[..]) {
            (COMMAND_STARTS_WITH, [words]) => pattern(words, FollowingWords::Any).map(WantedCommand::Words),
            (COMMAND_EQUALS, [words]) => match text(words) {
                Some(text) => Some(WantedCommand::Text(text)),
                None => pattern(words, FollowingWords::Nothing).map(WantedCommand::Words),
            },
            (COMMAND_PARTS_START_WITH, lists @ [_, ..]) => {
                let patterns = lists.iter().map(|words| pattern(words, FollowingWords::Any));
                patterns.collect::<Option<_>>().map(WantedCommand::Parts)
            }
            _ => None,
        };
        let wanted = wanted.filter(|_| is_of_arguments).ok_or_else(usage)?;
        Ok(Self { name: format!("@command{number}"), wanted })
    }
}

fn is_arguments(target: &IdedExpr) -> bool {
    matches!(&target.expr, Expr::Ident(name) if name == "args")
}

fn text(element: &IdedExpr) -> Option<String> {
    let Expr::Literal(LiteralValue::String(text)) = &element.expr else { return None };
    Some(text.inner().to_owned())
}

fn pattern(words: &IdedExpr, rest: FollowingWords) -> Option<CommandPattern> {
    let Expr::List(list) = &words.expr else { return None };
    let words: Option<Vec<Vec<String>>> = list.elements.iter().map(|word| Some(vec![text(word)?])).collect();
    let pattern = CommandPattern { argument: None, words: words?, rest };
    pattern.fault_of_form(Verdict::Allow).is_none().then_some(pattern)
}

impl WantedCommand {
    /// Why the command of a call is another one; `None` if it is covered.
    fn why_other(&self, arguments: &Map<String, Value>) -> Option<String> {
        match self {
            Self::Words(pattern) => match command::words_of_call(arguments) {
                Ok(words) => pattern.why_other_words(&words).or_else(|| why_outside_folder(pattern, &words)),
                Err(reason) => Some(reason),
            },
            Self::Text(wanted) => match command::text_of_call(arguments) {
                Ok(text) => (text != wanted).then(|| "the command has another text".to_owned()),
                Err(reason) => Some(reason),
            },
            Self::Parts(patterns) => {
                let parts = command::text_of_call(arguments).and_then(command::chained_parts);
                parts.map_or_else(Some, |parts| why_other_parts(&parts, patterns))
            }
        }
    }

    /// Whether the command of a call is covered.
    pub(in crate::policy) fn covers(&self, arguments: &Map<String, Value>) -> bool {
        self.why_other(arguments).is_none()
    }

    /// The condition of a grant for these commands.
    pub(in crate::policy) fn condition(&self) -> Option<String> {
        let json = |pattern: &CommandPattern| {
            serde_json::to_string(&pattern.words.iter().flatten().collect::<Vec<&String>>()).ok()
        };
        let (function, argument) = match self {
            Self::Words(pattern) => match pattern.rest {
                FollowingWords::Any => (COMMAND_STARTS_WITH, json(pattern)?),
                FollowingWords::Nothing => (COMMAND_EQUALS, json(pattern)?),
                FollowingWords::Options(_) => return None,
            },
            Self::Parts(patterns) => {
                let lists: Option<Vec<String>> = patterns.iter().map(json).collect();
                (COMMAND_PARTS_START_WITH, lists?.join(", "))
            }
            Self::Text(text) => (COMMAND_EQUALS, Value::from(text.as_str()).to_string()),
        };
        Some(format!("args.{function}({argument})"))
    }
}

/// Why a chained command has a part that no pattern covers; `None` if each is covered.
fn why_other_parts(parts: &[Vec<String>], patterns: &[CommandPattern]) -> Option<String> {
    let covers = |pattern: &CommandPattern, index, words: &[String]| {
        pattern.covers_part(index, words) && why_outside_folder(pattern, words).is_none()
    };
    let is_covered =
        |(index, words): &(usize, &Vec<String>)| patterns.iter().any(|pattern| covers(pattern, *index, words));
    let other = parts.iter().enumerate().find(|part| !is_covered(part))?;
    Some(format!("the part `{}` is not covered", other.1.join(" ")))
}

/// Why the words after the pattern may reach beyond the folder of the command. Those of the pattern were shown when the grant
/// was made.
fn why_outside_folder(pattern: &CommandPattern, words: &[String]) -> Option<String> {
    let outside = command::outside_folder(words.first()?, words.get(pattern.words.len()..)?)?;
    Some(format!("`{outside}` may be outside the folder of the command, or hidden"))
}

fn usage(function: &str) -> ConditionError {
    let message = match function {
        COMMAND_PARTS_START_WITH => format!(
            "`{function}` compares each part of a command with lists of words: `args.{function}(['git', 'diff'], ['head'])`"
        ),
        _ => format!("`{function}` compares all arguments with a list of words: `args.{function}(['git', 'diff'])`"),
    };
    ConditionError(message)
}

impl Opaque for ComparedCommand {
    fn runtime_type_name(&self) -> &str {
        "command"
    }
}
