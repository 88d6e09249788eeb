//! Static analysis of conditions, for policy checks: tests of parts of texts, and values that contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::outlook::{TextFunction, TextTest};

/// Item names of macros, each with the argument that holds the items.
type Items = BTreeMap<String, String>;

/// The arguments that an expression reads, by name; `None` if it may read any.
pub(super) fn arguments(expression: &IdedExpr) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    collect_arguments(expression, &mut names).then_some(names)
}

/// Adds the names of arguments; `false` if the expression may read any.
fn collect_arguments(expression: &IdedExpr, names: &mut BTreeSet<String>) -> bool {
    let is_args = |part: &IdedExpr| matches!(&part.expr, Expr::Ident(name) if name == "args");
    match &expression.expr {
        Expr::Select(select) if is_args(&select.operand) => {
            names.insert(select.field.clone());
            true
        }
        Expr::Select(select) => collect_arguments(&select.operand, names),
        Expr::Call(call) => match (call.func_name.as_str(), &call.args[..]) {
            (operators::INDEX, [map, IdedExpr { expr: Expr::Literal(LiteralValue::String(name)), .. }])
                if is_args(map) =>
            {
                names.insert(name.inner().to_owned());
                true
            }
            (_, args) => call.target.iter().map(AsRef::as_ref).chain(args).all(|part| collect_arguments(part, names)),
        },
        Expr::List(list) => list.elements.iter().all(|element| collect_arguments(element, names)),
        Expr::Comprehension(each) => {
            let parts = [&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result];
            parts.into_iter().all(|part| collect_arguments(part, names))
        }
        Expr::Ident(name) => name != "args",
        Expr::Literal(_) => true,
        Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => false,
    }
}

/// Every test of a part of an argument, from left to right.
pub(super) fn text_tests(expression: &IdedExpr) -> Vec<TextTest> {
    let mut tests = Vec::new();
    walk(expression, &Items::new(), &mut tests);
    tests
}

/// An argument that would have to equal two different values.
pub(super) fn contradiction(expression: &IdedExpr) -> Option<String> {
    let mut wanted: BTreeMap<String, String> = BTreeMap::new();
    equalities(expression).into_iter().find_map(|(argument, value)| {
        let before = wanted.insert(argument.clone(), value.clone())?;
        (before != value).then_some(argument)
    })
}

fn equalities(expression: &IdedExpr) -> Vec<(String, String)> {
    let Expr::Call(call) = &expression.expr else { return Vec::new() };
    match (call.func_name.as_str(), &call.args[..]) {
        (operators::LOGICAL_AND, parts) => parts.iter().flat_map(equalities).collect(),
        (operators::EQUALS, [left, right]) => {
            let pair = |argument: &IdedExpr, value: &IdedExpr| {
                let Expr::Literal(value) = &value.expr else { return None };
                Some((path(argument, &Items::new())?, written(value)?))
            };
            pair(left, right).or_else(|| pair(right, left)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// A literal with exact equality: numbers compare by value, so they are left out.
fn written(value: &LiteralValue) -> Option<String> {
    match value {
        LiteralValue::String(text) => Some(format!("text {}", text.inner())),
        LiteralValue::Boolean(truth) => Some(format!("truth {}", truth.inner())),
        LiteralValue::Int(_)
        | LiteralValue::UInt(_)
        | LiteralValue::Double(_)
        | LiteralValue::Bytes(_)
        | LiteralValue::Null => None,
    }
}

fn walk(expression: &IdedExpr, items: &Items, tests: &mut Vec<TextTest>) {
    match &expression.expr {
        Expr::Call(call) => {
            tests.extend(text_test(call, items));
            call.target.iter().map(AsRef::as_ref).chain(&call.args).for_each(|part| walk(part, items, tests));
        }
        Expr::Select(select) => walk(&select.operand, items, tests),
        Expr::List(list) => list.elements.iter().for_each(|element| walk(element, items, tests)),
        Expr::Map(map) => map.entries.iter().for_each(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => {
                walk(&entry.key, items, tests);
                walk(&entry.value, items, tests);
            }
            EntryExpr::StructField(field) => walk(&field.value, items, tests),
        }),
        Expr::Comprehension(each) => {
            walk(&each.iter_range, items, tests);
            let mut items = items.clone();
            if let Some(range) = path(&each.iter_range, &items) {
                items.insert(each.iter_var.clone(), range);
            }
            [&each.loop_cond, &each.loop_step, &each.result].into_iter().for_each(|part| walk(part, &items, tests));
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
    }
}

fn text_test(call: &CallExpr, items: &Items) -> Option<TextTest> {
    let function = match call.func_name.as_str() {
        "startsWith" => TextFunction::StartsWith,
        "endsWith" => TextFunction::EndsWith,
        "contains" => TextFunction::Contains,
        "matches" => TextFunction::Matches,
        _ => return None,
    };
    let tested = call.target.as_deref().or(call.args.first())?;
    let text = match call.args.last().map(|last| &last.expr) {
        Some(Expr::Literal(LiteralValue::String(text))) => text.inner().to_owned(),
        _ => String::new(),
    };
    Some(TextTest { function, argument: path(tested, items)?, text })
}

/// The argument that an expression refers to, as `args.options.path`.
fn path(expression: &IdedExpr, items: &Items) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) if name == "args" => Some(name.clone()),
        Expr::Ident(name) => items.get(name).cloned(),
        Expr::Select(select) => Some(format!("{}.{}", path(&select.operand, items)?, select.field)),
        Expr::Call(call) => {
            let inner = call.target.iter().map(AsRef::as_ref).chain(&call.args).find_map(|part| path(part, items))?;
            match (call.func_name.as_str(), call.args.last().map(|last| &last.expr)) {
                (operators::INDEX, Some(Expr::Literal(LiteralValue::String(field)))) => {
                    Some(format!("{inner}.{}", field.inner()))
                }
                _ => Some(inner),
            }
        }
        Expr::List(_)
        | Expr::Map(_)
        | Expr::Comprehension(_)
        | Expr::Literal(_)
        | Expr::Struct(_)
        | Expr::Unspecified => None,
    }
}
