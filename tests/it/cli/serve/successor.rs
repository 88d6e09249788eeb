//! Two servers on one store. The first one stops, the second one resumes its runs, and event streams continue without a
//! gap.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use super::server::{Server, desk};
use super::with_agents;
use crate::cli::desk::Desk;
use crate::gateway::streamed::ids;

const SHOP: &str = "servers: { shop: { stdio: { command: toolgate, args: [demo-server] }, trusted: true } }\n";

fn shop(turns: &str) -> Desk {
    desk(&format!("{}{SHOP}", with_agents("desk: { servers: [shop], policy: accept-edits }")), turns)
}

fn count(desk: &Desk, run: &str, kind: &str) -> usize {
    desk.journal(run).iter().filter(|fact| fact["type"] == kind).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_successor_resumes_runs_and_streams_without_a_gap() {
    let call =
        |id: u8| format!("calls: [{{ id: call_{id}, name: mcp_shop_get_invoice, arguments: {{ order_id: A-1077 }} }}]");
    let turns = format!(
        "turns: [{{ {} }}, {{ latency_ms: 800, {} }}, {{ latency_ms: 800, {} }}, {{ say: Done. }}]",
        call(1),
        call(2),
        call(3)
    );
    let desk = shop(&turns);
    let (first, second) = (Server::at(&desk).await, Server::at(&desk).await);
    let run = first.start(json!({"input": "Hello"})).await;
    let mut before = first.watch(&run, None).await;
    let mut seen = before.up_to("tool.mcp.executing").await;

    first.send(Signal::TERM);
    seen.extend(before.rest().await);
    let stopped = Instant::now();
    let last = ids(&seen).last().copied().unwrap().to_owned();
    let after = second.watch(&run, Some(&last)).await.rest().await;

    assert!(stopped.elapsed() < Duration::from_secs(15), "waited for the lease of ten minutes");
    assert_eq!(first.ended().await, Some(0));
    assert_eq!(after.last().unwrap().event, "execution.completed", "{after:#?}");
    let whole = second.watch(&run, None).await.rest().await;
    let parts: Vec<&str> = ids(&seen).into_iter().chain(ids(&after)).collect();
    assert_eq!(parts, ids(&whole), "exactly one server sends each event");
    assert_eq!(count(&desk, &run, "execution.resumed"), 1, "the second server resumed the run");
    assert_eq!((count(&desk, &run, "tool.started"), count(&desk, &run, "tool.completed")), (3, 3));
    assert_eq!(count(&desk, &run, "llm.call.completed"), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_successor_executes_the_queued_runs_of_a_stopped_server() {
    let turns = "turns: [{ latency_ms: 700, say: Done. }]";
    let one_at_a_time = with_agents("desk: {}").replace("gateway: {", "gateway: { runs: { max_active: 1 },");
    let desk = desk(&one_at_a_time, turns);
    let first = Server::at(&desk).await;
    let mut runs = Vec::new();
    for _ in 0..51 {
        runs.push(first.start(json!({"input": "Hello"})).await);
    }

    let began = Instant::now();
    first.send(Signal::TERM);

    assert_eq!(first.ended().await, Some(0));
    assert!(began.elapsed() < Duration::from_secs(10), "waited for fifty turns: {:?}", began.elapsed());
    desk.write("toolgate.yaml", &with_agents("desk: {}"));
    let second = Server::at(&desk).await;
    for run in &runs {
        let ended = second.sees(run, "completed").await;
        assert_eq!(ended["budget"]["iterations"], 1, "{ended}");
    }
}
