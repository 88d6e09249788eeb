//! Regular expressions in conditions. The library would compile a pattern anew for every text it is compared with, and
//! knows no limit. Here each is compiled once, when the condition is read; it must not become large, and what one evaluation
//! spends on comparing is counted, by the length of each text and the size of the pattern.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use cel::extractors::This;
use cel::objects::Opaque;
use cel::{Context, ExecutionError, Value as Cel};
use regex::{Regex, RegexBuilder};

use super::ConditionError;
use super::bounds::{BUDGET, TOO_LONG};

/// What a condition calls.
const MATCHES: &str = "matches";

/// What is called in its place. Nobody can write this name.
const COMPARE: &str = "@matches";

const LONGEST_PATTERN: usize = 200;

/// The sizes that are tried, in bytes: the first that a compiled pattern fits in is what it weighs.
const SIZES: [usize; 7] = [1 << 10, 1 << 12, 1 << 14, 1 << 15, 1 << 16, 1 << 18, 1 << 20];

/// Bytes of a compiled pattern that a character of text costs one unit for, at worst.
const BYTES_A_UNIT: u64 = 8;

/// A pattern, compiled.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    /// By which name the condition speaks of it.
    name: String,
    regex: Arc<Regex>,
    /// What each byte of text costs at worst.
    weight: u64,
}

/// A pattern while a condition is evaluated.
#[derive(Debug)]
struct Spending {
    regex: Arc<Regex>,
    weight: u64,
    /// What may still be spent, by all patterns of the condition together.
    left: Arc<AtomicU64>,
}

/// Compiles the patterns of an expression, and has it speak of them instead of their texts.
pub(super) fn compiled(expression: &mut IdedExpr) -> Result<Vec<Compared>, ConditionError> {
    let mut patterns = Vec::new();
    take(expression, &mut patterns)?;
    Ok(patterns)
}

/// Teaches conditions to compare.
pub(super) fn teach(context: &mut Context<'_, '_>) {
    // The name is new, so that it cannot be refused.
    let _ = context.add_function(COMPARE, compare);
}

/// What an expression may spend on its patterns, beside what else it speaks of.
pub(super) fn provide(patterns: &[Compared], context: &mut Context<'_, '_>) {
    let left = Arc::new(AtomicU64::new(BUDGET));
    for Compared { name, regex, weight } in patterns {
        let spending: Arc<dyn Opaque> =
            Arc::new(Spending { regex: regex.clone(), weight: *weight, left: left.clone() });
        context.add_variable_from_value(name.clone(), Cel::Opaque(spending));
    }
}

fn compare(This(text): This<Cel>, pattern: Arc<dyn Opaque>) -> Result<bool, ExecutionError> {
    match (&text, pattern.downcast_ref::<Spending>()) {
        (Cel::String(text), Some(pattern)) => pattern.compare(text),
        (other, _) => {
            let kinds = vec![other.type_of().to_string(), "string".to_owned()];
            Err(ExecutionError::no_such_member_overload(MATCHES, kinds))
        }
    }
}

impl Spending {
    fn compare(&self, text: &str) -> Result<bool, ExecutionError> {
        let cost = (text.len() as u64).saturating_add(1).saturating_mul(self.weight);
        let spent = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(cost));
        match spent {
            Ok(_) => Ok(self.regex.is_match(text)),
            Err(_) => Err(ExecutionError::function_error(MATCHES, TOO_LONG)),
        }
    }
}

impl PartialEq for Spending {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

impl Eq for Spending {}

impl Opaque for Spending {
    fn runtime_type_name(&self) -> &str {
        "pattern"
    }
}

/// Goes through an expression, as deep as it was found to be allowed.
fn take(expression: &mut IdedExpr, patterns: &mut Vec<Compared>) -> Result<(), ConditionError> {
    if let Expr::Call(call) = &mut expression.expr
        && call.func_name == MATCHES
    {
        let pattern = Compared::of(call, patterns.len())?;
        if let Some(written) = call.args.last_mut() {
            written.expr = Expr::Ident(pattern.name.clone());
        }
        call.func_name = COMPARE.to_owned();
        patterns.push(pattern);
    }
    parts(expression).into_iter().try_for_each(|part| take(part, patterns))
}

/// The expressions right below one.
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

impl Compared {
    fn of(call: &CallExpr, number: usize) -> Result<Self, ConditionError> {
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
