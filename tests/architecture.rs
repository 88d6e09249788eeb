//! Architecture tests: the table of imports in ARCHITECTURE.md against the manifests of the crates and the imports of the
//! program, what the core and the service must not use, import circles, and the maximum length of a file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "architecture/circles.rs"]
mod circles;
#[path = "architecture/doc_comments.rs"]
mod doc_comments;
#[path = "architecture/source.rs"]
mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use circles::ImportGraph;
use source::{Token, own_paths, paths_into, tokens};

/// Each room with the rooms, or modules of rooms, that it may import.
type Table = Vec<(String, Vec<String>)>;

/// The rooms of the package `toolgate`. Their imports are read from the source; those of the crates are held by cargo.
const PROGRAM: &[&str] = &["main", "cli", "app"];

/// Words that the core must not use: I/O, clocks, randomness, logging, and maps without an order.
const IMPURE_WORDS: &[&str] = &[
    "async",
    "await",
    "async_trait",
    "tokio",
    "futures",
    "rand",
    "uuid",
    "tracing",
    "println",
    "eprintln",
    "HashMap",
    "HashSet",
    "Instant",
    "SystemTime",
];
const IMPURE_STD: &[&str] = &["env", "fs", "io", "net", "process", "thread"];

/// Crates of protocols and terminals, which the service must not use.
const PROTOCOLS: &[&str] = &["axum", "clap", "http", "http-body", "hyper", "tower", "tower-http", "utoipa-axum"];

const LONGEST_FILE: usize = 500;

/// Rooms whose files may import each other in larger circles, and the roots of the program, which have no files below.
const TANGLED_ROOMS: &[&str] = &["main", "lib"];
/// The most files of a circle, and the most circles in the other rooms. Move a shared type to a file of its own instead.
const LARGEST_CIRCLE: usize = 4;
const MOST_CIRCLES: usize = 5;

#[test]
fn every_crate_depends_on_the_rooms_of_its_row() {
    for (room, row) in table() {
        if PROGRAM.contains(&room.as_str()) {
            continue;
        }
        let manifest = fs::read_to_string(root().join(format!("src/{room}/Cargo.toml"))).expect("a room is a crate");
        let (named, of_tests) = rooms_in(&manifest);
        assert_eq!(sorted(named), sorted(row.clone()), "src/{room}/Cargo.toml and its row in ARCHITECTURE.md");
        let beyond: Vec<&String> = of_tests.iter().filter(|other| !row.contains(other)).collect();
        assert!(beyond.is_empty(), "tests of {room} depend on {beyond:?}");
    }
}

#[test]
fn the_program_imports_the_rooms_of_its_rows() {
    let table = table();
    report("forbidden imports", each_source_file(|file, source| forbidden_imports(&table, file, source)));
}

#[test]
fn every_room_has_a_row() {
    let table = table();
    let rooms = each_source_file(|file, _| vec![room_and_module(file).0]);
    let missing: Vec<&String> =
        rooms.iter().filter(|room| *room != "lib" && !table.iter().any(|(name, _)| name == *room)).collect();
    assert!(missing.is_empty(), "no row in ARCHITECTURE.md: {missing:?}");
}

#[test]
fn the_core_is_pure() {
    let in_core = |file: &Path| room_and_module(file).0 == "core";
    let check = |file: &Path, source: &str| if in_core(file) { impurities(file, source) } else { Vec::new() };
    report("impurities in the core", each_source_file(check));
}

#[test]
fn import_circles_are_few_and_small() {
    let mut rooms: BTreeMap<String, ImportGraph> = BTreeMap::new();
    each_source_file(|file, source| {
        let (room, mut module) = room_and_module(file);
        let name = file.file_stem().unwrap().to_str().unwrap();
        let is_test = file.components().any(|part| part.as_os_str() == "tests") || name.ends_with("_tests");
        if !TANGLED_ROOMS.contains(&room.as_str()) && name != "tests" && !is_test {
            // A crate's own paths begin below its room; those of the program begin at it.
            let own = if PROGRAM.contains(&room.as_str()) { module } else { module.split_off(1) };
            rooms.entry(room).or_default().add(own, source);
        }
        Vec::new()
    });
    let mut circles = Vec::new();
    for (room, graph) in rooms {
        circles.extend(graph.circles().into_iter().map(|circle| format!("{room}: {}", circle.join(", "))));
    }
    let large = |circle: &&String| circle.split(", ").count() > LARGEST_CIRCLE;
    report("large import circles", circles.iter().filter(large).cloned().collect());
    assert!(circles.len() <= MOST_CIRCLES, "{} import circles:\n{}", circles.len(), circles.join("\n"));
}

#[test]
fn the_service_knows_no_protocol() {
    let manifest = fs::read_to_string(root().join("src/service/Cargo.toml")).unwrap();
    let named = manifest.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    let used: Vec<&str> = named.filter(|name| PROTOCOLS.contains(name)).collect();
    report("protocols in the service", used.into_iter().map(str::to_owned).collect());
}

#[test]
fn no_source_file_exceeds_the_maximum_length() {
    let too_long = each_source_file(|file, source| {
        let lines = source.lines().count();
        let finding =
            format!("{}: {lines} lines, more than {LONGEST_FILE}; which two ideas does it hold?", file.display());
        if lines > LONGEST_FILE { vec![finding] } else { Vec::new() }
    });
    report("long files", too_long);
}

#[test]
fn public_items_have_doc_comments_that_say_more_than_a_name() {
    report("public items without a doc comment", each_source_file(doc_comments::undocumented_items));
    report("doc comments that repeat a name", each_source_file(doc_comments::repeated_names));
}

#[test]
fn rooms_only_import_rooms_below_them() {
    let table = table();
    for (position, (room, row)) in table.iter().enumerate() {
        for target in row {
            let target_room = target.split("::").next().unwrap();
            let below = table[position + 1..].iter().any(|(lower, _)| *lower == target_room);
            assert!(below, "{room} may import {target}, which is not further down in the table");
        }
    }
}

/// The table of imports in ARCHITECTURE.md.
fn table() -> Table {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows: Vec<(&str, &str)> = text
        .split("```")
        .find(|block| block.lines().any(|line| line.starts_with("core ") && line.ends_with("-> nothing")))
        .expect("a block with the table of imports")
        .lines()
        .filter_map(|line| line.split_once("->"))
        .map(|(room, row)| (room.trim(), row.trim()))
        .collect();
    let rooms_below = |position: usize| rows[position + 1..].iter().map(|(room, _)| (*room).to_owned()).collect();
    let spelled = |(position, (room, row)): (usize, &(&str, &str))| {
        let row = match *row {
            "everything below" => rooms_below(position),
            "nothing" => Vec::new(),
            named => named.split(", ").map(str::to_owned).collect(),
        };
        ((*room).to_owned(), row)
    };
    let program = ("main".to_owned(), vec!["cli".to_owned()]);
    std::iter::once(program).chain(rows.iter().enumerate().map(spelled)).collect()
}

/// The rooms that a manifest names: as dependencies, and as dependencies of tests alone.
fn rooms_in(manifest: &str) -> (Vec<String>, Vec<String>) {
    let (mut named, mut of_tests, mut section) = (Vec::new(), Vec::new(), "");
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let Some(rest) = line.strip_prefix("toolgate-") else { continue };
        let room = rest.split(['.', ' ', '=']).next().unwrap().to_owned();
        if section == "[dev-dependencies]" { of_tests.push(room) } else { named.push(room) }
    }
    (named, of_tests)
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// Findings of the form `file:line: room may not import path`, in the rooms of the program.
fn forbidden_imports(table: &Table, file: &Path, source: &str) -> Vec<String> {
    let (room, module) = room_and_module(file);
    if !PROGRAM.contains(&room.as_str()) {
        return Vec::new(); // Crates, whose manifests say it, and `lib`, which lists the rooms.
    }
    let (_, allowed) = table.iter().find(|(name, _)| *name == room).expect("a row");
    let module: Vec<&str> = module.iter().map(String::as_str).collect();
    let tokens = tokens(source);
    let mut findings = Vec::new();
    for path in own_paths(&tokens, &module) {
        let stays = path.segments.first() == Some(&room);
        let target = path.segments.join("::");
        let permitted = allowed.iter().any(|entry| target == *entry || target.starts_with(&format!("{entry}::")));
        if !stays && !permitted {
            let place = format!("{}:{}", file.display(), path.line);
            findings
                .push(format!("{place}: {room} may not import crate::{target}; it may import {}", allowed.join(", ")));
        }
    }
    // The program names a room in one way, which is the one checked above.
    let crates = tokens.iter().filter(|token| token.text.starts_with("toolgate_"));
    findings.extend(crates.map(|token| {
        let room_named = token.text.trim_start_matches("toolgate_");
        format!("{}:{}: say crate::{room_named}; it is {}", file.display(), token.line, token.text)
    }));
    findings
}

/// Findings of the form `file:line: what`.
fn impurities(file: &Path, source: &str) -> Vec<String> {
    let tokens = tokens(source);
    let words = tokens.iter().filter(|token| IMPURE_WORDS.contains(&token.text.as_str()));
    let clocks = tokens.windows(2).filter(|pair| pair[0].text == "::" && pair[1].text == "now").map(|pair| &pair[1]);
    let named = words.chain(clocks).map(|Token { text, line }| (*line, text.clone()));
    let modules = paths_into("std", &tokens).into_iter().filter_map(|path| {
        let first = path.segments.first()?;
        IMPURE_STD.contains(&first.as_str()).then(|| (path.line, format!("std::{first}")))
    });
    named.chain(modules).map(|(line, what)| format!("{}:{line}: {what}", file.display())).collect()
}

/// The room a file of `src/` belongs to, and the module it is.
fn room_and_module(file: &Path) -> (String, Vec<String>) {
    let inside = file.strip_prefix("src").unwrap().with_extension("");
    let mut module: Vec<String> = inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    let room = module[0].clone();
    if module.last().is_some_and(|name| name == "mod") {
        module.pop();
    }
    if room == "main" || room == "lib" {
        module.clear();
    }
    (room, module)
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn each_source_file(mut check: impl FnMut(&Path, &str) -> Vec<String>) -> Vec<String> {
    let root = root();
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files);
    files.sort();
    assert!(files.len() > 20, "only {} files were found", files.len());
    files.iter().flat_map(|file| check(file.strip_prefix(root).unwrap(), &fs::read_to_string(file).unwrap())).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The laws are integration tests of the core.
        if path.ends_with("src/core/tests") {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn report(what: &str, findings: Vec<String>) {
    assert!(findings.is_empty(), "{} {what}:\n{}", findings.len(), findings.join("\n"));
}

mod the_checker {
    use super::*;

    fn imports(file: &str, source: &str) -> Vec<String> {
        let cut = |finding: String| finding.split(';').next().unwrap().to_owned();
        forbidden_imports(&table(), Path::new(file), source).into_iter().map(cut).collect()
    }

    #[test]
    fn finds_a_forbidden_edge_with_its_line() {
        let source = "use crate::core::id;\n\nuse crate::stores::Memory;";
        assert_eq!(imports("src/cli/step.rs", source), ["src/cli/step.rs:3: cli may not import crate::stores::Memory"]);
    }

    #[test]
    fn allows_imports_of_the_room_itself_and_of_its_row() {
        let source = "use crate::{core::{id, json}, ports::Model as Port, cli::Watch}; use super::x; use self::y::Z;";
        assert_eq!(imports("src/cli/watch.rs", source), [""; 0]);
    }

    #[test]
    fn spells_out_nested_braces() {
        let source = "use crate::{\n core::id,\n mcp::{demo::Server, client::{Client, self}},\n};";
        assert_eq!(
            imports("src/cli/serve.rs", source),
            [
                "src/cli/serve.rs:3: cli may not import crate::mcp::client::Client",
                "src/cli/serve.rs:3: cli may not import crate::mcp::client"
            ]
        );
    }

    #[test]
    fn sees_paths_in_code_and_in_macros() {
        let source = "fn f() { select! { _ = crate::driver::step() => {} } }\nmacro_rules! m { () => { $crate::stores::start() } }";
        assert_eq!(
            imports("src/cli/chat.rs", source),
            [
                "src/cli/chat.rs:1: cli may not import crate::driver::step",
                "src/cli/chat.rs:2: cli may not import crate::stores::start"
            ]
        );
    }

    #[test]
    fn follows_super_out_of_the_room() {
        let source = "use super::super::driver::Step;\nuse super::{pool::Pool, super::gateway::Watch};\nmod tests { use super::*; use super::super::super::stores; }";
        assert_eq!(
            imports("src/cli/client.rs", source),
            [
                "src/cli/client.rs:1: cli may not import crate::driver::Step",
                "src/cli/client.rs:2: cli may not import crate::gateway::Watch",
                "src/cli/client.rs:3: cli may not import crate::stores"
            ]
        );
        assert_eq!(
            imports("src/cli/mod.rs", "use super::driver;"),
            ["src/cli/mod.rs:1: cli may not import crate::driver"]
        );
    }

    #[test]
    fn ignores_comments_strings_and_visibility() {
        let source = r##"
            //! See crate::driver::Step.
            /* use crate::driver::Step; */
            pub(crate) struct A<'a>(&'a str); // crate::driver
            pub(super) fn f(&self) -> char { let _ = ("crate::driver::x", r#"crate::"driver"#); '"' }
        "##;
        assert_eq!(imports("src/cli/memory.rs", source), [""; 0]);
    }

    #[test]
    fn refuses_the_whole_crate_under_any_name() {
        let source = "use crate::*;\nuse crate as house;\nuse toolgate::driver;";
        assert_eq!(
            imports("src/cli/id.rs", source),
            [
                "src/cli/id.rs:1: cli may not import crate::*",
                "src/cli/id.rs:2: cli may not import crate::",
                "src/cli/id.rs:3: cli may not import crate::driver"
            ]
        );
    }

    #[test]
    fn lets_the_command_line_use_the_bundled_server_only() {
        assert_eq!(imports("src/cli/demo.rs", "use crate::mcp::demo::serve;"), [""; 0]);
        assert_eq!(imports("src/cli/demo.rs", "use crate::mcp::demonstration;").len(), 1);
    }

    #[test]
    fn refuses_a_crate_under_its_own_name() {
        assert_eq!(imports("src/cli/id.rs", "use toolgate_stores::Memory;"), ["src/cli/id.rs:1: say crate::stores"]);
        assert_eq!(
            imports("src/main.rs", "fn main() { toolgate::cli::run(); toolgate::driver::step() }"),
            ["src/main.rs:1: main may not import crate::driver::step"]
        );
    }

    #[test]
    fn reads_the_rooms_of_a_manifest() {
        let manifest = "[dependencies]\ntoolgate-core.workspace = true\ntoolgate-ports = { workspace = true }\nserde = \"1\"\n\n[dev-dependencies]\ntoolgate-stores.workspace = true\n";
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(rooms_in(manifest), (names(&["core", "ports"]), names(&["stores"])));
    }

    #[test]
    fn finds_what_the_core_must_not_know() {
        let source = "use std::{fmt, env, collections::BTreeMap};\n// tokio, async\nasync fn f() { g().await }\nfn h() { Timestamp::now(); let now = 1; std::time::Instant::x(); ::std::fs::read() }";
        let found: Vec<String> =
            impurities(Path::new("src/core/id.rs"), source).iter().map(|f| f.replace("src/core/id.rs:", "")).collect();
        assert_eq!(found, ["3: async", "3: await", "4: Instant", "4: now", "1: std::env", "4: std::fs"]);
    }
}
