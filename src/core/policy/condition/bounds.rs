//! Limits of a condition: its form and its cost. The expression language has no budget of its own: nested macros
//! multiply, so they are refused, and the remaining cost is bounded by the size of the condition and of the arguments.
//! Regular expressions are charged separately, text by text (see [`super::patterns`]).

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr};

use super::commands::GRANT_FUNCTIONS;
use super::error::{BUDGET, ConditionError, TOO_LONG};
use super::folders::{LEXICALLY_WITHIN, WITHIN};
use super::kind::Dialect;

/// The maximum nesting of an expression. Evaluation is recursive, and threads have small stacks.
const MAX_DEPTH: usize = 24;

/// The cost of one node, whatever it examines.
const NODE_COST: u64 = 1000;

/// The functions available besides operators and macros.
const FUNCTIONS: [&str; 12] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    WITHIN,
    LEXICALLY_WITHIN,
    "int",
    "double",
    "string",
    "type",
    "dyn",
];

/// The names that `type(…)` is compared with.
const TYPES: [&str; 8] = ["int", "double", "string", "bool", "list", "map", "null_type", "uint"];

/// The quantities that decide how long an expression may take.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    nodes: u64,
    /// The number of places that join two texts or lists, plus one.
    growth: u64,
    /// The items of the longest literal list that a macro iterates over.
    written_items: u64,
    /// Whether a macro iterates over anything else.
    walks_arguments: bool,
    /// Whether the body of a macro reads more than the item.
    looks_outside: bool,
    /// Whether the expression refers to the call.
    speaks_of_the_call: bool,
}

impl Bounds {
    /// Analyses a whole expression.
    pub(super) fn new(expression: &IdedExpr, dialect: Dialect) -> Result<Self, ConditionError> {
        let mut survey = Survey { bounds: Self { growth: 1, ..Self::default() }, dialect };
        survey.visit(expression, &NodePosition::default())?;
        Ok(survey.bounds)
    }

    /// Whether the result may depend on the call.
    pub(super) fn speaks_of_the_call(&self) -> bool {
        self.speaks_of_the_call
    }

    /// Refuses arguments for which the expression could take long.
    pub(super) fn check(&self, bytes: usize, longest: usize) -> Result<(), ConditionError> {
        if self.cost(bytes as u64, longest as u64) <= BUDGET {
            return Ok(());
        }
        Err(ConditionError(TOO_LONG.to_owned()))
    }

    /// Every node may be visited once per item, and may read everything.
    fn cost(&self, bytes: u64, longest: u64) -> u64 {
        let from_arguments = if self.walks_arguments { longest.saturating_mul(self.growth) } else { 0 };
        let items = from_arguments.max(self.written_items).max(1);
        let spread = if self.looks_outside { items } else { 1 };
        let visits = self.nodes.saturating_mul(items).saturating_mul(NODE_COST);
        let reads = self.nodes.saturating_mul(self.growth).saturating_mul(bytes).saturating_mul(spread);
        visits.saturating_add(reads)
    }
}

/// The position of a node in an expression.
#[derive(Clone, Default)]
struct NodePosition<'a> {
    depth: usize,
    /// The names that the enclosing macro gives to items and to its accumulator.
    own_names: Vec<&'a str>,
    is_in_macro: bool,
}

struct Survey {
    bounds: Bounds,
    dialect: Dialect,
}

impl Survey {
    fn visit<'a>(&mut self, expression: &'a IdedExpr, place: &NodePosition<'a>) -> Result<(), ConditionError> {
        if place.depth > MAX_DEPTH {
            return refused(format!("it is nested deeper than {MAX_DEPTH} levels"));
        }
        self.bounds.nodes += 1;
        let inner = NodePosition { depth: place.depth + 1, ..place.clone() };
        match &expression.expr {
            Expr::Ident(name) => self.name(name, place),
            Expr::Literal(_) => Ok(()),
            Expr::Call(call) => self.call(call, &inner),
            Expr::Select(select) => self.visit(&select.operand, &inner),
            Expr::List(list) => list.elements.iter().try_for_each(|element| self.visit(element, &inner)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.visit(&entry.key, &inner).and_then(|()| self.visit(&entry.value, &inner))
                }
                EntryExpr::StructField(field) => self.visit(&field.value, &inner),
            }),
            Expr::Comprehension(walk) => self.walk(walk, &inner),
            Expr::Struct(message) => refused(format!("there is no type `{}`", message.type_name)),
            Expr::Unspecified => refused("it is empty".to_owned()),
        }
    }

    fn name(&mut self, name: &str, place: &NodePosition<'_>) -> Result<(), ConditionError> {
        if place.own_names.contains(&name) || TYPES.contains(&name) {
            return Ok(());
        }
        let variables = self.dialect.variables();
        if !variables.contains(&name) {
            let known: Vec<String> = variables.iter().map(|name| format!("`{name}`")).collect();
            let verb = if known.len() == 1 { "is" } else { "are" };
            return refused(format!("there is no `{name}`; there {verb} {}", known.join(", ")));
        }
        self.bounds.speaks_of_the_call = true;
        self.bounds.looks_outside |= place.is_in_macro;
        Ok(())
    }

    fn call<'a>(&mut self, call: &'a CallExpr, inner: &NodePosition<'a>) -> Result<(), ConditionError> {
        let name = call.func_name.as_str();
        let is_operator = name.starts_with(|c: char| !c.is_ascii_alphabetic());
        let is_of_grants = GRANT_FUNCTIONS.contains(&name);
        if is_of_grants && self.dialect != Dialect::Grant {
            let remedy = "a rule compares words with `command: [git, diff]` in `match`";
            return refused(format!("`{name}` is a function of grants; {remedy}"));
        }
        if !is_operator && !is_of_grants && !FUNCTIONS.contains(&name) {
            let known = FUNCTIONS.map(|name| format!("`{name}`")).join(", ");
            return refused(format!("there is no function `{name}`; there are {known}, and the macros"));
        }
        if name == "_+_" {
            self.bounds.growth += 1;
        }
        call.target.iter().map(AsRef::as_ref).chain(&call.args).try_for_each(|part| self.visit(part, inner))
    }

    fn walk<'a>(&mut self, walk: &'a ComprehensionExpr, inner: &NodePosition<'a>) -> Result<(), ConditionError> {
        if inner.is_in_macro {
            return refused(
                "a macro (`all`, `exists`, `map`, `filter`, …) cannot stand in or after another".to_owned(),
            );
        }
        // A macro evaluates its range once, but a macro in the range could make it arbitrarily long.
        let range = NodePosition { is_in_macro: true, ..inner.clone() };
        let outside_before = self.bounds.looks_outside;
        self.visit(&walk.iter_range, &range)?;
        self.bounds.looks_outside = outside_before;
        if let Expr::List(list) = &walk.iter_range.expr {
            self.bounds.written_items = self.bounds.written_items.max(list.elements.len() as u64);
        } else {
            self.bounds.walks_arguments = true;
        }
        let own_names = [Some(&walk.iter_var), walk.iter_var2.as_ref(), Some(&walk.accu_var)];
        let own_names = own_names.into_iter().flatten().map(String::as_str).collect();
        let body = NodePosition { own_names, is_in_macro: true, ..inner.clone() };
        let parts = [&walk.accu_init, &walk.loop_cond, &walk.loop_step, &walk.result];
        parts.into_iter().try_for_each(|part| self.visit(part, &body))
    }
}

fn refused(message: String) -> Result<(), ConditionError> {
    Err(ConditionError(message))
}
