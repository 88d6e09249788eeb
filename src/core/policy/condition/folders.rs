//! Path conditions: `args.path.within('/srv')` is true for a path in a folder, and `args.path.within('/srv', '*.pem')` for a
//! file in it that a pattern matches. Folder and pattern are literals and are parsed when the condition is loaded.
//! `lexicallyWithin` compares texts alone, for servers whose files are not on this machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};
use cel::extractors::This;
use cel::objects::Opaque;
use cel::{Context, ExecutionError, Value as Cel};

use super::error::{BUDGET, ConditionError, TOO_LONG};
use super::patterns::parts;
use crate::policy::Links;
use crate::policy::file_pattern::FilePattern;
use crate::policy::path::{self, Names};

/// The functions that a condition calls.
pub(super) const WITHIN: &str = "within";
pub(super) const LEXICALLY_WITHIN: &str = "lexicallyWithin";

/// The internal function that replaces them. A condition cannot write this name.
const IS_WITHIN: &str = "@within";

/// The cost of comparing a byte of a path with a part of a pattern.
const COST: u64 = 32;

/// A folder that a condition names.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    /// The name of the variable that holds it.
    name: String,
    path: Arc<str>,
    /// The files in it that are meant; `None` for all.
    pattern: Option<Arc<FilePattern>>,
    resolves_links: bool,
}

/// A folder during an evaluation.
#[derive(Debug)]
struct BoundFolder {
    path: Arc<str>,
    pattern: Option<Arc<FilePattern>>,
    links: Arc<Links>,
    /// The remaining budget, shared by all patterns of the condition.
    left: Arc<AtomicU64>,
}

/// Parses the folders of an expression and replaces their texts by variables.
pub(super) fn compiled(expression: &mut IdedExpr) -> Result<Vec<Folder>, ConditionError> {
    let mut folders = Vec::new();
    take(expression, &mut folders)?;
    Ok(folders)
}

/// The folders whose links have to be resolved.
pub(super) fn with_links(folders: &[Folder]) -> impl Iterator<Item = &str> {
    folders.iter().filter(|folder| folder.resolves_links).map(|folder| &*folder.path)
}

/// Registers the path functions.
pub(super) fn register(context: &mut Context<'_, '_>) {
    // The name is new, so that it cannot be refused.
    let _ = context.add_function(IS_WITHIN, is_within);
}

/// Provides an expression with its folders and the resolved links.
pub(super) fn provide(folders: &[Folder], links: &Arc<Links>, context: &mut Context<'_, '_>) {
    let (ignored, left) = (Arc::new(Links::Ignored), Arc::new(AtomicU64::new(BUDGET)));
    for Folder { name, path, pattern, resolves_links } in folders {
        let links = if *resolves_links { links.clone() } else { ignored.clone() };
        let (path, pattern, left) = (path.clone(), pattern.clone(), left.clone());
        let bound: Arc<dyn Opaque> = Arc::new(BoundFolder { path, pattern, links, left });
        context.add_variable_from_value(name.clone(), Cel::Opaque(bound));
    }
}

fn is_within(This(text): This<Cel>, folder: Arc<dyn Opaque>) -> Result<bool, ExecutionError> {
    match (&text, folder.downcast_ref::<BoundFolder>()) {
        (Cel::String(text), Some(folder)) => {
            folder.contains(text).map_err(|reason| ExecutionError::function_error(WITHIN, reason))
        }
        (other, _) => {
            let kinds = vec![other.type_of().to_string(), "string".to_owned()];
            Err(ExecutionError::no_such_member_overload(WITHIN, kinds))
        }
    }
}

fn take(expression: &mut IdedExpr, folders: &mut Vec<Folder>) -> Result<(), ConditionError> {
    if let Expr::Call(call) = &mut expression.expr
        && [WITHIN, LEXICALLY_WITHIN].contains(&call.func_name.as_str())
    {
        let folder = Folder::new(call, folders.len())?;
        if folder.pattern.is_some() {
            call.args.pop();
        }
        if let Some(written) = call.args.last_mut() {
            written.expr = Expr::Ident(folder.name.clone());
        }
        call.func_name = IS_WITHIN.to_owned();
        folders.push(folder);
    }
    parts(expression).into_iter().try_for_each(|part| take(part, folders))
}

impl Folder {
    fn new(call: &CallExpr, number: usize) -> Result<Self, ConditionError> {
        let function = &call.func_name;
        let refused = |message: String| Err(ConditionError(message));
        let (path, pattern) = match call.args.get(usize::from(call.target.is_none())..) {
            Some([folder]) => (folder, None),
            Some([folder, pattern]) => (folder, Some(pattern)),
            Some(_) | None => {
                return refused(format!(
                    "`{function}` compares one path with one folder, and with a pattern of files in it if there is one: `args.path.{function}('/srv', '*.pem')`"
                ));
            }
        };
        let (Some(path), Some(pattern)) = (text(path), pattern.map_or(Some(None), |pattern| text(pattern).map(Some)))
        else {
            return refused(format!(
                "the folder of `{function}` has to be written out as text, and so has its pattern"
            ));
        };
        // Where a relative path leads is known to its server alone.
        let is_relative = function == LEXICALLY_WITHIN && !path.starts_with('/');
        let parsed = if is_relative { Names::parse_relative(path) } else { Names::parse(path) };
        if let Err(reason) = parsed {
            return refused(format!("`{function}` needs an absolute folder such as '/srv': {reason}"));
        }
        if path.split('/').any(|name| matches!(name, "." | "..")) && !(is_relative && path == ".") {
            return refused(format!("write the folder of `{function}` without `.` and `..`"));
        }
        let pattern = pattern.map(FilePattern::parse).transpose().map_err(ConditionError)?.map(Arc::new);
        let resolves_links = function == WITHIN;
        Ok(Self { name: format!("@folder{number}"), path: path.into(), pattern, resolves_links })
    }
}

fn text(expression: &IdedExpr) -> Option<&str> {
    let Expr::Literal(LiteralValue::String(text)) = &expression.expr else { return None };
    Some(text.inner())
}

impl BoundFolder {
    fn contains(&self, text: &str) -> Result<bool, String> {
        let Some(pattern) = &self.pattern else { return path::is_within(text, &self.path, &self.links) };
        let cost = (text.len() as u64 + 1).saturating_mul(pattern.parts() as u64).saturating_mul(COST);
        let spent = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(cost));
        spent.map_err(|_| TOO_LONG.to_owned())?;
        path::is_file(text, &self.path, pattern, &self.links)
    }
}

impl PartialEq for BoundFolder {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for BoundFolder {}

impl Opaque for BoundFolder {
    fn runtime_type_name(&self) -> &str {
        "folder"
    }
}
