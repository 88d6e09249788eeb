//! The result type of a condition, as far as its text shows it. A condition that can never be true or false is refused
//! when it is loaded; otherwise every call would require approval.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators};

use super::error::ConditionError;

/// The place where an expression stands. It decides which names the expression knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// A rule of a policy.
    Rule,
    /// A grant, which only allows.
    Grant,
    /// The stop condition of an agent.
    Stop,
}

impl Dialect {
    pub(super) fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Rule | Self::Grant => &VARIABLES,
            Self::Stop => &[RUN],
        }
    }
}

/// The variables of a condition.
pub const VARIABLES: [&str; 5] = ["args", "tool", "server", "agent", "principal"];

/// The variable of a stop condition: the state of a run.
pub(super) const RUN: &str = "run";

/// The result type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    YesOrNo,
    /// The type of a value in the arguments, which is not known yet.
    Anything,
    /// Any other type, in words.
    Other(&'static str),
}

/// Whether the result is certain to be true or false, if it can be evaluated; refused if it never is.
pub(super) fn is_yes_or_no(expression: &IdedExpr) -> Result<bool, ConditionError> {
    match kind(expression)? {
        Kind::YesOrNo => Ok(true),
        Kind::Anything => Ok(false),
        Kind::Other(what) => {
            Err(ConditionError(format!("it gives {what} and neither true nor false; compare it with something")))
        }
    }
}

fn kind(expression: &IdedExpr) -> Result<Kind, ConditionError> {
    Ok(match &expression.expr {
        Expr::Literal(literal) => of_literal(literal),
        Expr::Select(select) if select.test => Kind::YesOrNo,
        Expr::Ident(name) if name == "args" => Kind::Other("all arguments"),
        Expr::Ident(name) if name == RUN => Kind::Other("a mapping"),
        Expr::Ident(name) if VARIABLES.contains(&name.as_str()) => Kind::Other("text"),
        Expr::Call(call) => of_call(call)?,
        Expr::Comprehension(walk) => of_macro(walk)?,
        Expr::List(_) => Kind::Other("a list"),
        Expr::Map(_) | Expr::Struct(_) => Kind::Other("a mapping"),
        Expr::Select(_) | Expr::Ident(_) | Expr::Unspecified => Kind::Anything,
    })
}

fn of_literal(literal: &LiteralValue) -> Kind {
    match literal {
        LiteralValue::Boolean(_) => Kind::YesOrNo,
        LiteralValue::Int(_) | LiteralValue::UInt(_) | LiteralValue::Double(_) => Kind::Other("a number"),
        LiteralValue::String(_) => Kind::Other("text"),
        LiteralValue::Bytes(_) => Kind::Other("bytes"),
        LiteralValue::Null => Kind::Other("null"),
    }
}

fn of_call(call: &CallExpr) -> Result<Kind, ConditionError> {
    Ok(match (call.func_name.as_str(), &call.args[..]) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT, parts) => {
            parts.iter().try_for_each(|part| is_yes_or_no(part).map(drop))?;
            Kind::YesOrNo
        }
        (operators::CONDITIONAL, [condition, one, other]) => {
            is_yes_or_no(condition)?;
            let (one, other) = (kind(one)?, kind(other)?);
            if one == other { one } else { Kind::Anything }
        }
        (operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT | "dyn", _) => Kind::Anything,
        (operators::NEGATE | operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO, _)
        | ("size" | "int" | "double", _) => Kind::Other("a number"),
        (operators::ADD, _) => Kind::Other("a sum"),
        ("string", _) => Kind::Other("text"),
        ("type", _) => Kind::Other("a type"),
        // Comparisons, and the functions that test a text.
        _ => Kind::YesOrNo,
    })
}

/// The result of a macro has the type of its initial value, unless its last step changes it.
fn of_macro(walk: &ComprehensionExpr) -> Result<Kind, ConditionError> {
    let gathers = matches!(&walk.result.expr, Expr::Ident(name) if *name == walk.accu_var);
    kind(if gathers { &walk.accu_init } else { &walk.result })
}
