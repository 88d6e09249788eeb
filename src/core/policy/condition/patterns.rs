//! Regular expressions in conditions. The library would compile a pattern again for every text, without a limit. Here
//! each pattern is compiled once, when the condition is loaded, and its size is limited. The cost of comparing is
//! counted for each evaluation, by the length of each text and the size of the pattern.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use cel::extractors::This;
use cel::objects::Opaque;
use cel::{Context, ExecutionError, Value as Cel};
use regex::{Regex, RegexBuilder};

use super::error::{BUDGET, ConditionError, TOO_LONG};

/// The function that a condition calls.
const MATCHES: &str = "matches";

/// The internal function that replaces it. A condition cannot write this name.
const COMPARE: &str = "@matches";

const LONGEST_PATTERN: usize = 200;

/// The size limits that are tried, in bytes: the first limit that a compiled pattern satisfies is its weight.
const SIZES: [usize; 7] = [1 << 10, 1 << 12, 1 << 14, 1 << 15, 1 << 16, 1 << 18, 1 << 20];

/// Bytes of a compiled pattern for which a character of text costs one unit, at worst.
const BYTES_A_UNIT: u64 = 8;

#[derive(Clone, Debug)]
pub(super) struct CompiledPattern {
    /// The name of its variable.
    name: String,
    regex: Arc<Regex>,
    /// The cost of each byte of text, at worst.
    weight: u64,
}

/// A pattern during an evaluation.
#[derive(Debug)]
struct MeteredPattern {
    regex: Arc<Regex>,
    weight: u64,
    /// The remaining budget, shared by all patterns of the condition.
    left: Arc<AtomicU64>,
}

/// Compiles the patterns of an expression and replaces their texts by variables.
pub(super) fn compiled(expression: &mut IdedExpr) -> Result<Vec<CompiledPattern>, ConditionError> {
    let mut patterns = Vec::new();
    take(expression, &mut patterns)?;
    Ok(patterns)
}

/// Registers the comparison.
pub(super) fn register(context: &mut Context<'_, '_>) {
    // The name is new, so that it cannot be refused.
    let _ = context.add_function(COMPARE, compare);
}

/// Provides an expression with its patterns and their budget.
pub(super) fn provide(patterns: &[CompiledPattern], context: &mut Context<'_, '_>) {
    let left = Arc::new(AtomicU64::new(BUDGET));
    for CompiledPattern { name, regex, weight } in patterns {
        let spending: Arc<dyn Opaque> =
            Arc::new(MeteredPattern { regex: regex.clone(), weight: *weight, left: left.clone() });
        context.add_variable_from_value(name.clone(), Cel::Opaque(spending));
    }
}

fn compare(This(text): This<Cel>, pattern: Arc<dyn Opaque>) -> Result<bool, ExecutionError> {
    match (&text, pattern.downcast_ref::<MeteredPattern>()) {
        (Cel::String(text), Some(pattern)) => pattern.compare(text),
        (other, _) => {
            let kinds = vec![other.type_of().to_string(), "string".to_owned()];
            Err(ExecutionError::no_such_member_overload(MATCHES, kinds))
        }
    }
}

impl MeteredPattern {
    fn compare(&self, text: &str) -> Result<bool, ExecutionError> {
        let cost = (text.len() as u64).saturating_add(1).saturating_mul(self.weight);
        let spent = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(cost));
        match spent {
            Ok(_) => Ok(self.regex.is_match(text)),
            Err(_) => Err(ExecutionError::function_error(MATCHES, TOO_LONG)),
        }
    }
}

impl PartialEq for MeteredPattern {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

impl Eq for MeteredPattern {}

impl Opaque for MeteredPattern {
    fn runtime_type_name(&self) -> &str {
        "pattern"
    }
}

/// Walks an expression, to the depth that was checked before.
fn take(expression: &mut IdedExpr, patterns: &mut Vec<CompiledPattern>) -> Result<(), ConditionError> {
    if let Expr::Call(call) = &mut expression.expr
        && call.func_name == MATCHES
    {
        let pattern = CompiledPattern::new(call, patterns.len())?;
        if let Some(written) = call.args.last_mut() {
            written.expr = Expr::Ident(pattern.name.clone());
        }
        call.func_name = COMPARE.to_owned();
        patterns.push(pattern);
    }
    parts(expression).into_iter().try_for_each(|part| take(part, patterns))
}

/// The direct subexpressions.
pub(super) fn parts(expression: &mut IdedExpr) -> Vec<&mut IdedExpr> {
    match &mut expression.expr {
        Expr::Call(call) => call.target.iter_mut().map(AsMut::as_mut).chain(&mut call.args).collect(),
        Expr::Select(select) => vec![&mut select.operand],
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(map) => map.entries.iter_mut().flat_map(|entry| entry_parts(&mut entry.expr)).collect(),
        Expr::Comprehension(walk) => {
            let (range, before, on) = (&mut walk.iter_range, &mut walk.accu_init, &mut walk.loop_cond);
            vec![range, before, on, &mut walk.loop_step, &mut walk.result]
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => Vec::new(),
    }
}

fn entry_parts(entry: &mut EntryExpr) -> Vec<&mut IdedExpr> {
    match entry {
        EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
        EntryExpr::StructField(field) => vec![&mut field.value],
    }
}

impl CompiledPattern {
    fn new(call: &CallExpr, number: usize) -> Result<Self, ConditionError> {
        let Some(Expr::Literal(LiteralValue::String(pattern))) = call.args.last().map(|last| &last.expr) else {
            return refused("the pattern of `matches` has to be written out as text".to_owned());
        };
        let pattern = pattern.inner();
        if pattern.len() > LONGEST_PATTERN {
            return refused(format!("a pattern of `matches` has at most {LONGEST_PATTERN} bytes"));
        }
        for size in SIZES {
            match RegexBuilder::new(pattern).size_limit(size).build() {
                Ok(regex) => {
                    let (name, weight) = (format!("@pattern{number}"), size as u64 / BYTES_A_UNIT);
                    return Ok(Self { name, regex: Arc::new(regex), weight });
                }
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(_) => return refused(format!("`{pattern}` is not a regular expression that can be used")),
            }
        }
        refused(format!("`{pattern}` becomes too large; `[a-z]` is smaller than `\\w`, and `+` smaller than a count"))
    }
}

fn refused<T>(message: String) -> Result<T, ConditionError> {
    Err(ConditionError(message))
}
