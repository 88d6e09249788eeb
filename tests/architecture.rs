//! Architecture tests: which room of `src/` may import from which, what the core must not use, how many files may
//! import each other in a circle, and the maximum length of a file. ARCHITECTURE.md explains the rules; this file
//! enforces them.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "architecture/circles.rs"]
mod circles;
#[path = "architecture/source.rs"]
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use circles::ImportGraph;
use source::{Token, own_paths, paths_into, tokens};

/// Each room with the rooms, or modules of rooms, that it may import. A room only names rooms further down.
const ROOMS: &[(&str, &[&str])] = &[
    ("main", &["cli"]),
    (
        "cli",
        &[
            "app",
            "service",
            "runner",
            "telemetry::logging",
            "telemetry::spans",
            "config",
            "core",
            "ports",
            "mcp::demo",
            "mcp::conformance",
        ],
    ),
    (
        "app",
        &[
            "gateway",
            "service",
            "runner",
            "driver",
            "models",
            "mcp",
            "stores",
            "approvals",
            "validation",
            "telemetry",
            "config",
            "ports",
            "core",
        ],
    ),
    ("gateway", &["service", "runner", "ports", "core"]),
    ("service", &["runner", "ports", "core"]),
    ("runner", &["driver", "ports", "core"]),
    ("driver", &["ports", "core"]),
    ("models", &["ports", "core"]),
    ("mcp", &["ports", "core"]),
    ("stores", &["ports", "core"]),
    ("approvals", &["ports", "core"]),
    ("validation", &["ports", "core"]),
    ("telemetry", &["ports", "core"]),
    ("config", &["core"]),
    ("ports", &["core"]),
    ("core", &[]),
];

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
const PROTOCOLS: &[&str] = &["axum", "clap", "http", "http_body", "hyper", "tower", "tower_http", "utoipa_axum"];

const LONGEST_FILE: usize = 500;

/// Rooms whose files hardly import each other in a circle.
const UNTANGLED_ROOMS: &[&str] =
    &["driver", "models", "mcp", "stores", "approvals", "validation", "telemetry", "config", "ports", "core"];
/// The most files of a circle, and the most circles in these rooms. Move a shared type to a file of its own instead.
const LARGEST_CIRCLE: usize = 4;
const MOST_CIRCLES: usize = 8;

#[test]
fn every_import_follows_the_table_of_rooms() {
    report("forbidden imports", each_source_file(forbidden_imports));
}

#[test]
fn the_core_is_pure() {
    let in_core = |file: &Path| room_and_module(file).0 == "core";
    let check = |file: &Path, source: &str| if in_core(file) { impurities(file, source) } else { Vec::new() };
    report("impurities in the core", each_source_file(check));
}

#[test]
fn import_circles_are_few_and_small() {
    let mut graph = ImportGraph::default();
    let files = each_source_file(|file, source| {
        let (room, module) = room_and_module(file);
        let name = file.file_stem().unwrap().to_str().unwrap();
        if UNTANGLED_ROOMS.contains(&room.as_str()) && name != "tests" && !name.ends_with("_tests") {
            graph.add(module, source);
        }
        Vec::new()
    });
    assert_eq!(files, [""; 0]);
    let circles: Vec<String> = graph.circles().into_iter().map(|circle| circle.join(", ")).collect();
    let large = |circle: &&String| circle.split(", ").count() > LARGEST_CIRCLE;
    report("large import circles", circles.iter().filter(large).cloned().collect());
    assert!(circles.len() <= MOST_CIRCLES, "{} import circles:\n{}", circles.len(), circles.join("\n"));
}

#[test]
fn the_service_knows_no_protocol() {
    let check = |file: &Path, source: &str| {
        if room_and_module(file).0 != "service" {
            return Vec::new();
        }
        let tokens = tokens(source);
        let used =
            PROTOCOLS.iter().flat_map(|name| paths_into(name, &tokens).into_iter().map(move |path| (name, path)));
        used.map(|(name, path)| format!("{}:{}: {name}", file.display(), path.line)).collect()
    };
    report("protocols in the service", each_source_file(check));
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
fn rooms_only_import_rooms_below_them() {
    for (position, (room, allowed)) in ROOMS.iter().enumerate() {
        for target in *allowed {
            let target_room = target.split("::").next().unwrap();
            let below = ROOMS[position + 1..].iter().any(|(lower, _)| *lower == target_room);
            assert!(below, "{room} may import {target}, which is not further down in the table");
        }
    }
}

/// Findings of the form `file:line: room may not import path`.
fn forbidden_imports(file: &Path, source: &str) -> Vec<String> {
    let (room, module) = room_and_module(file);
    if room == "lib" {
        return Vec::new(); // It lists the rooms and their public modules.
    }
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        return vec![format!("{}: `{room}` is not a room; give it a row in tests/architecture.rs", file.display())];
    };
    let module: Vec<&str> = module.iter().map(String::as_str).collect();
    let mut findings = Vec::new();
    for path in own_paths(&tokens(source), &module) {
        let stays = path.segments.first() == Some(&room);
        let target = path.segments.join("::");
        let permitted = allowed.iter().any(|entry| target == *entry || target.starts_with(&format!("{entry}::")));
        if !stays && !permitted {
            let may = if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") };
            let place = format!("{}:{}", file.display(), path.line);
            findings.push(format!("{place}: {room} may not import crate::{target}; it may import {may}"));
        }
    }
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

fn each_source_file(mut check: impl FnMut(&Path, &str) -> Vec<String>) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files);
    files.sort();
    assert!(files.len() > 20, "only {} files were found", files.len());
    files.iter().flat_map(|file| check(file.strip_prefix(root).unwrap(), &fs::read_to_string(file).unwrap())).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
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
        forbidden_imports(Path::new(file), source).into_iter().map(cut).collect()
    }

    #[test]
    fn finds_a_forbidden_edge_with_its_line() {
        let source = "use crate::core::id;\n\nuse crate::stores::Memory;";
        assert_eq!(
            imports("src/driver/step.rs", source),
            ["src/driver/step.rs:3: driver may not import crate::stores::Memory"]
        );
    }

    #[test]
    fn allows_imports_of_the_room_itself_and_of_its_row() {
        let source =
            "use crate::{core::{id, json}, ports::Model as Port, runner::Watch}; use super::x; use self::y::Z;";
        assert_eq!(imports("src/runner/watch.rs", source), [""; 0]);
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
        let source =
            "fn f() { select! { _ = crate::driver::step() => {} } }\nmacro_rules! m { () => { $crate::app::start() } }";
        assert_eq!(
            imports("src/models/chat.rs", source),
            [
                "src/models/chat.rs:1: models may not import crate::driver::step",
                "src/models/chat.rs:2: models may not import crate::app::start"
            ]
        );
    }

    #[test]
    fn follows_super_out_of_the_room() {
        let source = "use super::super::driver::Step;\nuse super::{pool::Pool, super::runner::Watch};\nmod tests { use super::*; use super::super::super::stores; }";
        assert_eq!(
            imports("src/mcp/client.rs", source),
            [
                "src/mcp/client.rs:1: mcp may not import crate::driver::Step",
                "src/mcp/client.rs:2: mcp may not import crate::runner::Watch",
                "src/mcp/client.rs:3: mcp may not import crate::stores"
            ]
        );
        assert_eq!(
            imports("src/mcp/mod.rs", "use super::driver;"),
            ["src/mcp/mod.rs:1: mcp may not import crate::driver"]
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
        assert_eq!(imports("src/stores/memory.rs", source), [""; 0]);
    }

    #[test]
    fn refuses_the_whole_crate_under_any_name() {
        let source = "use crate::*;\nuse crate as house;\nuse toolgate::driver;";
        assert_eq!(
            imports("src/core/id.rs", source),
            [
                "src/core/id.rs:1: core may not import crate::*",
                "src/core/id.rs:2: core may not import crate::",
                "src/core/id.rs:3: core may not import crate::driver"
            ]
        );
    }

    #[test]
    fn lets_the_command_line_use_the_bundled_server_only() {
        assert_eq!(imports("src/cli/demo.rs", "use crate::mcp::demo::serve;"), [""; 0]);
        assert_eq!(imports("src/cli/demo.rs", "use crate::mcp::demonstration;").len(), 1);
    }

    #[test]
    fn asks_for_a_row_when_a_room_is_new() {
        assert_eq!(imports("src/attic/mod.rs", ""), ["src/attic/mod.rs: `attic` is not a room"]);
        assert_eq!(
            imports("src/main.rs", "fn main() { toolgate::cli::run(); toolgate::driver::step() }"),
            ["src/main.rs:1: main may not import crate::driver::step"]
        );
    }

    #[test]
    fn finds_what_the_core_must_not_know() {
        let source = "use std::{fmt, env, collections::BTreeMap};\n// tokio, async\nasync fn f() { g().await }\nfn h() { Timestamp::now(); let now = 1; std::time::Instant::x(); ::std::fs::read() }";
        let found: Vec<String> =
            impurities(Path::new("src/core/id.rs"), source).iter().map(|f| f.replace("src/core/id.rs:", "")).collect();
        assert_eq!(found, ["3: async", "3: await", "4: Instant", "4: now", "1: std::env", "4: std::fs"]);
    }
}
