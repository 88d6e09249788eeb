//! Import circles: files of `src/` that import each other, directly or through others. An import counts for the file
//! that defines the item, so a re-export in a `mod.rs` does not hide a circle. Test code does not count.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Token, own_paths, paths_into, tokens};

type Module = Vec<String>;

/// The modules of some rooms, with their imports.
#[derive(Default)]
pub(crate) struct ImportGraph {
    files: BTreeMap<Module, File>,
}

#[derive(Default)]
struct File {
    /// The paths that the file names, except re-exports of its own submodules.
    imports: BTreeSet<Module>,
    /// The re-exported names, and where they come from.
    reexports: BTreeMap<String, Module>,
    tokens: Vec<Token>,
}

impl ImportGraph {
    /// Adds a file, which is that module.
    pub(crate) fn add(&mut self, module: Module, source: &str) {
        self.files.insert(module, File { tokens: product_code(tokens(source)), ..File::default() });
    }

    /// The circles, as sorted lists of modules such as `run::fold`. The largest comes first.
    pub(crate) fn circles(mut self) -> Vec<Vec<String>> {
        self.read();
        let edges: BTreeMap<&Module, BTreeSet<&Module>> =
            self.files.iter().map(|(module, file)| (module, self.targets(module, file))).collect();
        let reach: BTreeMap<&Module, BTreeSet<&Module>> =
            edges.keys().map(|module| (*module, reachable(module, &edges))).collect();
        let mut circles: BTreeSet<Vec<String>> = BTreeSet::new();
        for (module, reached) in &reach {
            let back = |other: &&&Module| reach.get(**other).is_some_and(|theirs| theirs.contains(*module));
            let circle: Vec<String> = reached.iter().filter(back).map(|other| other.join("::")).collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        let mut circles: Vec<Vec<String>> = circles.into_iter().collect();
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }

    fn read(&mut self) {
        let known: BTreeSet<Module> = self.files.keys().cloned().collect();
        for (module, file) in &mut self.files {
            let children: Vec<&str> = known
                .iter()
                .filter(|other| other.split_last().is_some_and(|(_, parent)| parent == module.as_slice()))
                .filter_map(|child| child.last().map(String::as_str))
                .collect();
            let (reexporting, other) = split_reexports(&file.tokens);
            file.imports = paths(&other, module, &children);
            for path in paths(&reexporting, module, &children) {
                if !path.starts_with(module) {
                    file.imports.insert(path.clone());
                }
                if let Some(name) = path.last() {
                    file.reexports.insert(name.clone(), path.clone());
                }
            }
        }
    }

    fn targets<'a>(&'a self, module: &[String], file: &File) -> BTreeSet<&'a Module> {
        let targets = file.imports.iter().filter_map(|path| self.definition(path, 0));
        targets.filter(|target| target.as_slice() != module).collect()
    }

    /// The module whose file defines the item at this path.
    fn definition(&self, path: &[String], depth: usize) -> Option<&Module> {
        let length = (1..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
        let (module, file) = self.files.get_key_value(&path[..length])?;
        let origin = path.get(length).and_then(|name| file.reexports.get(name)).filter(|_| depth < 8);
        let follow = |origin: &Module| self.definition(&[origin.as_slice(), &path[length + 1..]].concat(), depth + 1);
        origin.and_then(follow).or(Some(module))
    }
}

fn reachable<'a>(from: &'a Module, edges: &BTreeMap<&'a Module, BTreeSet<&'a Module>>) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        let targets = edges.get(module).into_iter().flatten();
        open.extend(targets.filter(|target| reached.insert(**target)));
    }
    reached
}

/// Every path into the own crate, and every path that starts at a submodule.
fn paths(tokens: &[Token], module: &[String], children: &[&str]) -> BTreeSet<Module> {
    let names: Vec<&str> = module.iter().map(String::as_str).collect();
    let own = own_paths(tokens, &names).into_iter().map(|path| path.segments);
    let below = children.iter().flat_map(|child| {
        let prefix = [module, &[(*child).to_owned()]].concat();
        paths_into(child, tokens).into_iter().map(move |path| [prefix.as_slice(), &path.segments].concat())
    });
    own.chain(below).collect()
}

/// The tokens of `pub use` statements, and all others.
fn split_reexports(tokens: &[Token]) -> (Vec<Token>, Vec<Token>) {
    let (mut reexporting, mut other) = (Vec::new(), Vec::new());
    let mut inside = false;
    for (at, token) in tokens.iter().enumerate() {
        inside |= token.text == "use" && is_public(&tokens[..at]);
        let target = if inside { &mut reexporting } else { &mut other };
        target.push(Token { text: token.text.clone(), line: token.line });
        inside &= token.text != ";";
    }
    (reexporting, other)
}

fn is_public(before: &[Token]) -> bool {
    let text = |back: usize| before.len().checked_sub(back).map_or("", |at| before[at].text.as_str());
    text(1) == "pub" || (text(1) == ")" && text(4) == "pub" && text(3) == "(")
}

/// The tokens without test code, and without the paths of visibilities such as `pub(in crate::mcp)`.
fn product_code(tokens: Vec<Token>) -> Vec<Token> {
    let starts = |at: usize, words: &[&str]| {
        words.iter().enumerate().all(|(offset, word)| tokens.get(at + offset).is_some_and(|token| token.text == *word))
    };
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if starts(at, &["#", "[", "cfg", "(", "test", ")", "]"]) {
            at = end_of_item(&tokens, at + 7);
        } else if starts(at, &["pub", "(", "in"]) {
            kept.push(Token { text: "pub".to_owned(), line: tokens[at].line });
            at += 1 + tokens[at..].iter().position(|token| token.text == ")").expect("a closed visibility");
        } else {
            kept.push(Token { text: tokens[at].text.clone(), line: tokens[at].line });
            at += 1;
        }
    }
    kept
}

/// The position after an item: after its semicolon or its braces.
fn end_of_item(tokens: &[Token], mut at: usize) -> usize {
    let mut depth = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.text.as_str() {
            "{" => depth += 1,
            "}" if depth == 1 => return at,
            "}" => depth -= 1,
            ";" if depth == 0 => return at,
            _ => {}
        }
    }
    at
}

mod the_graph {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let mut graph = ImportGraph::default();
        for (module, source) in files {
            graph.add(module.split("::").map(str::to_owned).collect(), source);
        }
        graph.circles()
    }

    #[test]
    fn finds_a_circle_through_a_reexport() {
        let found = circles(&[
            ("core", ""),
            ("core::run", "mod fold; mod state; pub use state::{Phase, Run};"),
            ("core::run::fold", "use super::Run; fn fold() {}"),
            ("core::run::state", "use super::fold::fold; pub struct Run; pub(in crate::core) enum Phase {}"),
        ]);
        assert_eq!(found, [["core::run::fold", "core::run::state"]]);
    }

    #[test]
    fn counts_a_parent_and_its_submodule_as_a_circle() {
        let found = circles(&[("mcp", "mod file; fn f() { file::read() }"), ("mcp::file", "use super::Error;")]);
        assert_eq!(found, [["mcp", "mcp::file"]]);
    }

    #[test]
    fn ignores_test_code_facades_and_visibilities() {
        let found = circles(&[
            ("mcp", "mod call; mod task; pub use call::Call; pub(super) use self::task::Task;"),
            ("mcp::call", "pub(in crate::mcp) struct Call; #[cfg(test)] mod tests { use super::super::task::Task; }"),
            ("mcp::task", "use super::Call; #[cfg(test)] use super::other; pub(in crate::mcp) struct Task(Call);"),
        ]);
        assert_eq!(found, [[""; 0]; 0]);
    }
}
