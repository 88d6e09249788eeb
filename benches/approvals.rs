//! Cost of the batched grant lookup per turn: 300 guarded tools, a store with 10,000 grants, the cache warm and cold.
//! The floor is a lookup of the same tools in a map.
//!
//! `cargo bench --bench approvals` prints a table and one line of JSON.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::indexing_slicing)]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;
use toolgate::approvals::CachedApprovals;
use toolgate::core::id::{GrantId, Tenant};
use toolgate::core::run::Channel;
use toolgate::core::tool::{Origin, ToolName};
use toolgate::ports::{ApprovalCache, Grant, GrantContext, GuardedTool};
use toolgate::stores::{Durability, SqliteStore};

const TOOLS: usize = 300;
const GRANTS: usize = 10_000;
/// One in three tools is granted.
const GRANTED_EVERY: usize = 3;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    // Without cargo's `--bench` this is `cargo test --benches`: one iteration is enough.
    let turns = if std::env::args().any(|argument| argument == "--bench") { 300 } else { 1 };
    let directory = tempfile::TempDir::new().unwrap();
    let store =
        SqliteStore::open_with_durability(&directory.path().join("runs.db"), Durability::ProcessCrash).await.unwrap();
    for number in 0..GRANTS {
        store.grant(&grant(number)).await.unwrap();
    }
    let store: Arc<dyn ApprovalCache> = Arc::new(store);
    let cache = CachedApprovals::new(store.clone(), Duration::from_secs(3600), Duration::from_secs(3600));
    let tools: Vec<GuardedTool> = (0..TOOLS).map(guarded).collect();
    let map: HashMap<GuardedTool, GrantId> =
        tools.iter().step_by(GRANTED_EVERY).map(|tool| (tool.clone(), "grant".into())).collect();
    let held: Vec<GrantId> = (0..8).map(|number| grant(number * GRANTED_EVERY).id).collect();

    let floor = median(turns, async || tools.iter().filter(|tool| map.contains_key(*tool)).count()).await;
    let warm = median(turns, async || found(&cache, &tools).await).await;
    let cold = median(turns, async || found(&*store, &tools).await).await;
    let hold = median(turns, async || {
        store.hold(&held, Timestamp::now()).await.unwrap().into_iter().filter(|holds| *holds).count()
    })
    .await;
    let rows = [
        ("a map, the floor", floor),
        ("the cache, warm", warm),
        ("the store, nothing cached", cold),
        ("whether 8 grants hold, before a tier", hold),
    ];
    println!("\n{TOOLS} guarded tools, {GRANTS} grants in SQLite\n");
    for (name, took) in rows {
        println!("{name:40} {:>9.1} us a turn  {:>8.1} x the floor", micros(took), micros(took) / micros(floor));
    }
    let rows: Vec<_> = rows.iter().map(|(name, took)| json!({"row": name, "us": micros(*took)})).collect();
    println!("\n{}", json!({"bench": "approvals", "unit": "us a turn", "rows": rows}));
}

async fn found(cache: &dyn ApprovalCache, tools: &[GuardedTool]) -> usize {
    let context =
        GrantContext { tenant: Tenant::default(), session: "talk".into(), agent: "desk".into(), principal: None };
    cache.granted(&context, tools, Timestamp::now()).await.unwrap().len()
}

/// The median of this many turns, after one warm-up turn. Each turn must find a grant.
async fn median(turns: usize, turn: impl AsyncFn() -> usize) -> Duration {
    assert!(black_box(turn().await) > 0, "nothing is granted");
    let mut took = Vec::with_capacity(turns);
    for _ in 0..turns {
        let begun = Instant::now();
        black_box(turn().await);
        took.push(begun.elapsed());
    }
    took.sort();
    took[took.len() / 2]
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn guarded(number: usize) -> GuardedTool {
    GuardedTool { tool: name(number), definition: format!("sha256:{number:064x}") }
}

fn name(number: usize) -> ToolName {
    ToolName::parse(&format!("mcp_server_tool_{number}")).unwrap()
}

/// Most grants belong to tools that are not available to this run.
fn grant(number: usize) -> Grant {
    let is_asked = number < TOOLS && number.is_multiple_of(GRANTED_EVERY);
    let definition = if is_asked { guarded(number).definition } else { format!("sha256:other{number}") };
    Grant {
        id: format!("grant_{number}").into(),
        session: None,
        tenant: Tenant::default(),
        agent: "desk".into(),
        principal: None,
        tool: name(number),
        origin: Origin::Mcp { server: "server".into(), tool: format!("tool_{number}") },
        definition,
        arguments: None,
        when: None,
        asked_by: None,
        summary: "server: tool(path: \"a\")".into(),
        by: "ann".into(),
        via: Channel::CommandLine,
        reason: None,
        given_with: None,
        created_at: Timestamp::UNIX_EPOCH,
        expires_at: None,
        revoked: None,
    }
}
