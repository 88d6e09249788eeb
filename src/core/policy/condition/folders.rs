//! Path conditions: `args.path.within('/srv')` is true for a path in a folder. The folder is a literal and is parsed
//! when the condition is loaded. `lexicallyWithin` compares texts alone, for servers whose files are not on this
//! machine.

use std::sync::Arc;

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};
use cel::extractors::This;
use cel::objects::Opaque;
use cel::{Context, ExecutionError, Value as Cel};

use super::error::ConditionError;
use super::patterns::parts;
use crate::policy::Links;
use crate::policy::path::{self, Names};

/// The functions that a condition calls.
pub(super) const WITHIN: &str = "within";
pub(super) const LEXICALLY_WITHIN: &str = "lexicallyWithin";

/// The internal function that replaces them. A condition cannot write this name.
const IS_WITHIN: &str = "@within";

/// A folder that a condition names.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    /// The name of the variable that holds it.
    name: String,
    path: Arc<str>,
    resolves_links: bool,
}

/// A folder during an evaluation.
#[derive(Debug)]
struct BoundFolder {
    path: Arc<str>,
    links: Arc<Links>,
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
    let ignored = Arc::new(Links::Ignored);
    for Folder { name, path, resolves_links } in folders {
        let links = if *resolves_links { links.clone() } else { ignored.clone() };
        let bound: Arc<dyn Opaque> = Arc::new(BoundFolder { path: path.clone(), links });
        context.add_variable_from_value(name.clone(), Cel::Opaque(bound));
    }
}

fn is_within(This(text): This<Cel>, folder: Arc<dyn Opaque>) -> Result<bool, ExecutionError> {
    match (&text, folder.downcast_ref::<BoundFolder>()) {
        (Cel::String(text), Some(folder)) => path::is_within(text, &folder.path, &folder.links)
            .map_err(|reason| ExecutionError::function_error(WITHIN, reason)),
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
        let Some(Expr::Literal(LiteralValue::String(path))) = call.args.last().map(|last| &last.expr) else {
            return refused(format!("the folder of `{function}` has to be written out as text"));
        };
        if call.args.len() != usize::from(call.target.is_none()) + 1 {
            return refused(format!("`{function}` compares one path with one folder: `args.path.{function}('/srv')`"));
        }
        let path = path.inner();
        if let Err(reason) = Names::parse(path) {
            return refused(format!("`{function}` needs an absolute folder such as '/srv': {reason}"));
        }
        if path.split('/').any(|name| matches!(name, "." | "..")) {
            return refused(format!("write the folder of `{function}` without `.` and `..`"));
        }
        let resolves_links = function == WITHIN;
        Ok(Self { name: format!("@folder{number}"), path: path.into(), resolves_links })
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
