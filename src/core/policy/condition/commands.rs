//! Command conditions of grants: `args.commandStartsWith(['git', 'diff'])` compares the words of a call's command, and
//! `args.commandEquals(['git', 'diff', 'HEAD'])` all of them, as a rule that allows does with `command` (decision 0015).
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
use crate::policy::{CommandPattern, FollowingWords, Verdict, command::Comparison};

/// The functions that a condition of a grant calls.
pub(super) const GRANT_FUNCTIONS: [&str; 2] = [COMMAND_STARTS_WITH, COMMAND_EQUALS];

const COMMAND_STARTS_WITH: &str = "commandStartsWith";
const COMMAND_EQUALS: &str = "commandEquals";

/// The internal function that replaces them. A condition cannot write this name.
const COMPARE: &str = "@command";

/// The words that a condition compares a command with.
#[derive(Clone, Debug)]
pub(super) struct CommandWords {
    /// The name of the variable that holds the comparison.
    name: String,
    pattern: CommandPattern,
}

/// The comparison of a call's command during an evaluation: the reason why it differs, or `None`.
#[derive(Debug, PartialEq, Eq)]
struct ComparedCommand(Option<String>);

/// Parses the words of an expression and replaces its calls by variables.
pub(super) fn compiled(expression: &mut IdedExpr) -> Result<Vec<CommandWords>, ConditionError> {
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
pub(super) fn provide(
    commands: &[CommandWords],
    arguments: Option<&Map<String, Value>>,
    context: &mut Context<'_, '_>,
) {
    for CommandWords { name, pattern } in commands {
        let differs = match pattern.compare(arguments, Verdict::Allow) {
            Comparison::Matches => None,
            Comparison::Differs(reason) => Some(reason),
            Comparison::Unknown => Some("the arguments are not known".to_owned()),
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

fn take(expression: &mut IdedExpr, commands: &mut Vec<CommandWords>) -> Result<(), ConditionError> {
    if let Expr::Call(call) = &mut expression.expr
        && GRANT_FUNCTIONS.contains(&call.func_name.as_str())
    {
        let words = CommandWords::new(call, commands.len())?;
        let Some(mut argument) = call.args.pop() else { return Err(usage(&call.func_name)) };
        argument.expr = Expr::Ident(words.name.clone());
        *call = CallExpr { func_name: COMPARE.to_owned(), target: None, args: vec![argument] };
        commands.push(words);
    }
    parts(expression).into_iter().try_for_each(|part| take(part, commands))
}

impl CommandWords {
    fn new(call: &CallExpr, number: usize) -> Result<Self, ConditionError> {
        let usage = || usage(&call.func_name);
        let of_arguments = |target: &IdedExpr| matches!(&target.expr, Expr::Ident(name) if name == "args");
        let (Some(target), [words]) = (&call.target, &call.args[..]) else { return Err(usage()) };
        let Expr::List(list) = &words.expr else { return Err(usage()) };
        let word = |element: &IdedExpr| {
            let Expr::Literal(LiteralValue::String(word)) = &element.expr else { return None };
            Some(vec![word.inner().to_owned()])
        };
        let words: Option<Vec<Vec<String>>> = list.elements.iter().map(word).collect();
        let words = words.filter(|_| of_arguments(target)).ok_or_else(usage)?;
        let rest = if call.func_name == COMMAND_EQUALS { FollowingWords::Nothing } else { FollowingWords::Any };
        let pattern = CommandPattern { argument: None, words, rest };
        match pattern.fault(Verdict::Allow) {
            Some(_) => Err(usage()),
            None => Ok(Self { name: format!("@command{number}"), pattern }),
        }
    }
}

fn usage(function: &str) -> ConditionError {
    let message =
        format!("`{function}` compares all arguments with a list of words: `args.{function}(['git', 'diff'])`");
    ConditionError(message)
}

impl Opaque for ComparedCommand {
    fn runtime_type_name(&self) -> &str {
        "command"
    }
}

/// The condition of a grant for calls whose command begins with these words, or has exactly them.
pub(in crate::policy) fn grant_condition(pattern: &CommandPattern) -> Option<String> {
    let function = match pattern.rest {
        FollowingWords::Any => COMMAND_STARTS_WITH,
        FollowingWords::Nothing => COMMAND_EQUALS,
        FollowingWords::Options(_) => return None,
    };
    let words: Vec<&String> = pattern.words.iter().flatten().collect();
    Some(format!("args.{function}({})", serde_json::to_string(&words).ok()?))
}
