//! Evaluation of conditions with the crate `cel`.
//!
//! This uses the crate's hand-written parser, not the generated one: the generated parser overflows the stack of an
//! ordinary thread on twelve parentheses. It is behind a feature of the crate, which is why the crate's version is
//! pinned.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use cel::common::ast::IdedExpr;
use cel::parser::PrattParser;
use cel::{Context, Env, ExecutionError, Value as Cel};
use serde_json::{Map, Value};

use super::arguments::{self, CelArguments};
use super::bounds::Bounds;
use super::commands::{self, CommandTest};
use super::error::{ConditionError, TOO_LONG};
use super::folders::{self, Folder, WITHIN};
use super::kind::Dialect;
use super::outlook::{Outlook, TextTest};
use super::patterns::{self, CompiledPattern};
use super::{kind, survey, syntax};
use crate::policy::{Links, Subject};
use crate::tool::ToolName;

/// The depth limit of the parser itself; the parsed expression is limited more tightly afterwards.
const PARSER_DEPTH: u16 = 48;
const MAX_NODES: usize = 1000;

/// The length to which an error is cut. The library quotes values in some errors.
const ERROR_CHARS: usize = 160;

static LANGUAGE: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A parsed expression, ready for evaluation.
pub(super) struct Compiled {
    expression: IdedExpr,
    bounds: Bounds,
    patterns: Vec<CompiledPattern>,
    folders: Vec<Folder>,
    commands: Vec<CommandTest>,
    outlook: Outlook,
    text_tests: Vec<TextTest>,
    /// The arguments that it reads; `None` for any.
    reads: Option<BTreeSet<String>>,
    contradiction: Option<String>,
}

/// The variables of an expression.
pub(super) struct Variables<'a> {
    arguments: Option<&'a Map<String, Value>>,
    context: Context<'static, 'static>,
    bytes: usize,
    longest: usize,
    links: Arc<Links>,
}

impl Compiled {
    pub(super) fn parse(text: &str, dialect: Dialect) -> Result<Self, ConditionError> {
        let parser = PrattParser::new().max_recursion_depth(PARSER_DEPTH).max_expression_node_count(MAX_NODES);
        // Only the first syntax error is reported; errors after it are unreliable.
        let mut expression = parser.error_recovery_limit(0).parse(text).map_err(|errors| {
            let messages = errors.errors.iter().map(|error| (error.pos, error.msg.as_str()));
            ConditionError(shortened(&syntax::fault(text, messages)))
        })?;
        let bounds = Bounds::new(&expression, dialect)?;
        let outlook = match (kind::is_yes_or_no(&expression)?, bounds.speaks_of_the_call()) {
            (false, _) => Outlook::Unknown,
            (true, false) => Outlook::Constant,
            (true, true) => Outlook::Open,
        };
        let (text_tests, contradiction) = (survey::text_tests(&expression), survey::contradiction(&expression));
        let reads = survey::arguments(&expression);
        let patterns = patterns::compiled(&mut expression)?;
        let folders = folders::compiled(&mut expression)?;
        let commands = commands::compiled(&mut expression)?;
        Ok(Self { expression, bounds, patterns, folders, commands, outlook, text_tests, reads, contradiction })
    }

    pub(super) fn text_tests(&self) -> &[TextTest] {
        &self.text_tests
    }

    pub(super) fn reads(&self, argument: &str) -> bool {
        self.reads.as_ref().is_none_or(|names| names.contains(argument))
    }

    pub(super) fn reads_any(&self) -> bool {
        self.reads.as_ref().is_none_or(|names| !names.is_empty())
    }

    pub(super) fn folders(&self) -> impl Iterator<Item = &str> {
        folders::with_links(&self.folders)
    }

    pub(super) fn why_never(&self) -> Option<String> {
        if let Some(argument) = &self.contradiction {
            return Some(format!("`{argument}` would have to equal two different values"));
        }
        let is_false = self.outlook == Outlook::Constant && self.holds(&Variables::empty()) == Ok(false);
        is_false.then(|| "it is false for every call".to_owned())
    }

    pub(super) fn outlook(&self) -> Outlook {
        self.outlook
    }

    pub(super) fn holds(&self, variables: &Variables<'_>) -> Result<bool, ConditionError> {
        self.bounds.check(variables.bytes, variables.longest)?;
        let mut own = variables.context.new_inner_scope();
        patterns::provide(&self.patterns, &mut own);
        folders::provide(&self.folders, &variables.links, &mut own);
        commands::provide(&self.commands, variables.arguments, &mut own);
        match Cel::resolve(&self.expression, &own) {
            Ok(Cel::Bool(holds)) => Ok(holds),
            Ok(other) => Err(ConditionError(format!("it gives a {} and neither true nor false", other.type_of()))),
            Err(error) => Err(ConditionError(shortened(&in_words(&error)))),
        }
    }
}

impl<'a> Variables<'a> {
    /// Variables without a call, for expressions that do not refer to one.
    fn empty() -> Self {
        let mut context = Context::with_env(LANGUAGE.clone());
        register(&mut context);
        Self { arguments: None, context, bytes: 0, longest: 0, links: Arc::new(Links::Ignored) }
    }

    /// The variable of a stop condition.
    pub(super) fn of_run(state: &Map<String, Value>) -> Result<Self, ConditionError> {
        let CelArguments { value, bytes, longest } = arguments::convert(state)?;
        let mut variables = Self { bytes, longest, ..Self::empty() };
        variables.context.add_variable_from_value(kind::RUN, value);
        Ok(variables)
    }

    /// Variables before a call is known: without arguments, and without what the subject does not say.
    pub(super) fn of_tool(subject: &Subject<'_>, name: &ToolName) -> Self {
        let mut variables = Self::empty();
        let known = [
            ("tool", Some(name.as_str())),
            ("server", subject.tool.server().map(|server| server.as_str())),
            ("agent", subject.agent.map(|agent| agent.as_str())),
            ("principal", subject.principal.map(|principal| principal.as_str())),
        ];
        for (variable, text) in known {
            if let Some(text) = text {
                variables.context.add_variable_from_value(variable, text);
            }
        }
        variables
    }

    pub(super) fn new(
        subject: &Subject<'_>,
        name: &ToolName,
        arguments: &'a Map<String, Value>,
        links: &Links,
    ) -> Result<Self, ConditionError> {
        let CelArguments { value, bytes, longest } = arguments::convert(arguments)?;
        let text = |text: Option<&str>| text.map_or(Cel::Null, Cel::from);
        let mut context = Context::with_env(LANGUAGE.clone());
        register(&mut context);
        context.add_variable_from_value("args", value);
        context.add_variable_from_value("tool", name.as_str());
        context.add_variable_from_value("server", text(subject.tool.server().map(|server| server.as_str())));
        context.add_variable_from_value("agent", text(subject.agent.map(|agent| agent.as_str())));
        context.add_variable_from_value("principal", text(subject.principal.map(|principal| principal.as_str())));
        Ok(Self { arguments: Some(arguments), context, bytes, longest, links: Arc::new(links.clone()) })
    }
}

fn register(context: &mut Context<'_, '_>) {
    patterns::register(context);
    folders::register(context);
    commands::register(context);
}

/// An error that names identifiers but no values. The reader sees the values in the arguments anyway.
#[expect(clippy::wildcard_enum_match_arm, reason = "not our enum, and it may grow")]
fn in_words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("there is no `{key}`; `has(…)` asks for what may be missing"),
        ExecutionError::NoSuchOverload(error) => error.to_string(),
        ExecutionError::UnexpectedType { got, want } => format!("a {got} stands where a {want} is needed"),
        ExecutionError::ValuesNotComparable(left, right) => {
            format!("a {} cannot be compared with a {}", left.type_of(), right.type_of())
        }
        ExecutionError::IndexOutOfBounds(_) => "a list is shorter than that".to_owned(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "it divides by zero".to_owned(),
        ExecutionError::Overflow(..) => "a number becomes too large".to_owned(),
        ExecutionError::FunctionError { message, .. } if message == TOO_LONG => TOO_LONG.to_owned(),
        // A reason of our own, which contains no value.
        ExecutionError::FunctionError { function, message } if function == WITHIN => message.clone(),
        ExecutionError::FunctionError { function, .. } => format!("`{function}` cannot be applied to this value"),
        _ => "a value is not of the kind that is needed".to_owned(),
    }
}

fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(ERROR_CHARS).collect()
}
