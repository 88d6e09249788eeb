//! SIGHUP: a new configuration for a running server.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::server::{Server, desk, until};
use super::with_agents;

#[tokio::test(flavor = "multi_thread")]
async fn new_runs_use_a_reloaded_configuration_if_it_is_valid() {
    let desk = desk(&with_agents("desk: {}"), "turns: [{ latency_ms: 1500, say: Hello. }]");
    let mut server = Server::at(&desk).await;
    let under_way = server.start(json!({"input": "Hello"})).await;
    let new_run = |agent: &str| json!({"agent": agent, "input": "Hello"});
    assert_eq!(server.post("/v1/runs", "respond-async", new_run("other")).await.0, 422);

    desk.write("toolgate.yaml", &with_agents("desk: { model: unknown }"));
    server.send(Signal::HUP);
    server.line("the old one stays in use").await;
    assert_eq!(server.post("/v1/runs", "respond-async", new_run("desk")).await.0, 202);

    desk.write("toolgate.yaml", &with_agents("other: {}").replace("lease_s: 600", "lease_s: 5"));
    server.send(Signal::HUP);
    let taken: Value = serde_json::from_str(&server.line("configuration reloaded").await).unwrap();
    assert_eq!(taken["not_taken"], "lease_s");
    assert_eq!(server.post("/v1/runs", "respond-async", new_run("other")).await.0, 202);
    assert_eq!(server.post("/v1/runs", "respond-async", new_run("desk")).await.0, 422);
    server.sees(&under_way, "completed").await;
    assert_eq!(server.get("/v1/agents").await.1["data"][0]["id"], "other");
}

/// Two servers, or one of them. `VARIANT` changes the settings of a server and keeps its name.
fn with_servers(servers: &[(&str, &str)]) -> String {
    let server = |(name, variant): &(&str, &str)| {
        let env = format!("{{ NAMED: {name}, VARIANT: '{variant}' }}");
        format!(
            "  {name}: {{ stdio: {{ command: toolgate, args: [demo-server], env: {env} }}, trusted: true, start: eager }}\n"
        )
    };
    let names: Vec<&str> = servers.iter().map(|(name, _)| *name).collect();
    let agent = with_agents(&format!("desk: {{ servers: [{}], policy: accept-edits }}", names.join(", ")));
    format!("{agent}servers:\n{}", servers.iter().map(server).collect::<String>())
}

/// The processes of MCP servers with that name.
fn processes(of: &Server, named: &str) -> BTreeSet<u32> {
    let has = |file: &Path, words: &[u8]| {
        std::fs::read(file).is_ok_and(|text| text.split(|byte| *byte == 0 || *byte == b'\n').any(|part| part == words))
    };
    let (parent, name) = (format!("PPid:\t{}", of.child.id()), format!("NAMED={named}"));
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let theirs = all.filter(|process| {
        has(&process.join("status"), parent.as_bytes()) && has(&process.join("environ"), name.as_bytes())
    });
    theirs.filter_map(|process| process.file_name()?.to_str()?.parse().ok()).collect()
}

async fn one_process(of: &Server, named: &str) -> u32 {
    until(async || Some(processes(of, named)).filter(|found| found.len() == 1)).await.into_iter().next().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_reload_keeps_unchanged_servers_and_ends_unused_ones() {
    let call = "calls: [{ id: find, name: mcp_gone_find_customer, arguments: { name: Ada } }]";
    let turns = format!("turns: [{{ latency_ms: 1500, {call} }}, {{ say: '{{{{last_result}}}}' }}]");
    let desk = desk(&with_servers(&[("kept", ""), ("gone", ""), ("other", "old")]), &turns);
    let mut server = Server::at(&desk).await;
    let (kept, gone) = (one_process(&server, "kept").await, one_process(&server, "gone").await);
    let other = one_process(&server, "other").await;
    let run = server.start(json!({"input": "Find Ada"})).await;

    desk.write("toolgate.yaml", &with_servers(&[("kept", ""), ("other", "new")]));
    server.send(Signal::HUP);
    server.line("configuration reloaded").await;

    let (_, shown) = server.get("/v1/servers").await;
    let shown: Vec<&str> =
        shown["data"].as_array().unwrap().iter().map(|server| server["id"].as_str().unwrap()).collect();
    assert_eq!(shown, ["kept", "other"]);
    assert_eq!(processes(&server, "gone"), BTreeSet::from([gone]), "a run uses it");
    let ended = server.sees(&run, "completed").await;
    assert!(ended["output"]["text"].as_str().unwrap().contains("Lindqvist"), "its server answered: {ended}");
    until(async || processes(&server, "gone").is_empty().then_some(())).await;
    until(async || (one_process(&server, "other").await != other).then_some(())).await;
    assert_eq!(processes(&server, "kept"), BTreeSet::from([kept]));
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_configuration_keeps_all_servers() {
    let desk = desk(&with_servers(&[("kept", "")]), "turns: [{ say: Hello. }]");
    let mut server = Server::at(&desk).await;
    let kept = one_process(&server, "kept").await;

    let webhooks = "webhooks: [{ url: 'https://example.com/hooks', secret: whsec_short }]";
    let wrong = with_servers(&[("another", "")]).replace("anonymous: true", &format!("anonymous: true, {webhooks}"));
    desk.write("toolgate.yaml", &wrong);
    server.send(Signal::HUP);

    let told = server.line("the old one stays in use").await;
    assert!(told.contains("number 1") && !told.contains("example.com"), "{told}");
    let (_, shown) = server.get("/v1/servers").await;
    assert_eq!(shown["data"][0]["id"], "kept");
    assert_eq!((processes(&server, "kept"), processes(&server, "another")), (BTreeSet::from([kept]), BTreeSet::new()));
    assert_eq!(server.post("/v1/runs", "wait=20", json!({"input": "Hello"})).await.1["status"], "completed");
}
