//! Servers that list badly, slowly, or not at all.

use std::time::{Duration, Instant};

use serde_json::json;
use toolgate::core::id::ServerId;
use toolgate::core::tool::LeftOut;
use toolgate::mcp::{ServerSettings, ServerState};

use super::support::*;

#[tokio::test]
async fn a_malformed_tool_among_good_ones_is_left_out_alone() {
    let servers = servers([("lister", python("lister.py", &["malformed"]))]);
    let listed = list(&servers, &["lister"]).await.remove(0);
    let kept: Vec<&str> = listed.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(kept, ["first", "last"]);
    let schema = json!({"type": "object", "z": 1, "a": {"$ref": "#/$defs/b"}, "$defs": {"b": {}}, "x-own": [null]});
    assert_eq!(listed.tools[1].input_schema.to_string(), schema.to_string(), "verbatim, in the server's order");
    assert_eq!(listed.tools[1].annotations.read_only_hint, Some(true));
    let left_out = |tool: &str, wrong: &str| LeftOut {
        server: Some(ServerId::from("lister")),
        tool: Some(tool.into()),
        reason: format!("its definition is malformed: {wrong}. Correct it in the server"),
    };
    assert_eq!(
        listed.left_out,
        [left_out("bare", "`inputSchema` is missing"), left_out("permissive", "`inputSchema` is true, not an object"),]
    );
    servers.close().await;
}

#[tokio::test]
async fn all_pages_are_read_and_an_endless_list_is_cut_with_a_reason() {
    let servers = servers([("paged", python("lister.py", &["paged"])), ("endless", python("lister.py", &["endless"]))]);
    assert_eq!(names(&servers, "paged").await, ["tool-0", "tool-1", "tool-2"]);
    let endless = list(&servers, &["endless"]).await.remove(0);
    let kept: Vec<&str> = endless.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(kept, ["page-again", "page-first"], "by name");
    assert_eq!(endless.left_out.len(), 1);
    assert!(endless.left_out[0].reason.contains("it gave the cursor `again` twice"), "{:?}", endless.left_out);
    servers.close().await;
}

#[tokio::test]
async fn noise_on_stdout_is_harmless_and_reported() {
    let servers = servers([("noisy", python("lister.py", &["noisy"]))]);
    assert_eq!(names(&servers, "noisy").await, ["only"]);
    let noise = status(&servers, "noisy").stdout_noise;
    let once = ["Listening on port 3000", r#"{"level":"info","msg":"hello"}"#, "[]", "{"];
    assert_eq!((&noise.first[..4], noise.first.len()), (&once.map(str::to_owned)[..], 5));
    assert_eq!(noise.lines % 4, 0, "it prints them before each message it reads: {noise:?}");
    let told = noise.describe().expect("there is noise");
    assert!(told.contains("the first: `Listening on port 3000`); they belong on stderr"), "{told}");
    servers.close().await;
}

#[tokio::test]
async fn a_list_that_is_none_and_a_refused_list_are_reasons() {
    let servers =
        servers([("broken", python("lister.py", &["broken"])), ("refusing", python("lister.py", &["refusing"]))]);
    let broken = missing(&servers, "broken").await;
    assert!(
        broken.contains(r#"`tools/list` with something that is no list of tools: `tools` is no list in {"items":[]}"#),
        "{broken}"
    );
    let refusing = missing(&servers, "refusing").await;
    assert!(refusing.contains("refused to list its tools: Method not found (JSON-RPC error -32601)"), "{refusing}");
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_dies_at_start_is_missing_with_its_exit_status_and_last_words() {
    let servers = servers([("shop", python("dies.py", &[]))]);
    assert_eq!(
        missing(&servers, "shop").await,
        "the MCP server `shop` ended before it was ready: its process ended with exit status: 3; last on its \
         stderr:\n  reading configuration\n  fatal: SHOP_TOKEN is not set"
    );
    let failed = status(&servers, "shop");
    assert!(matches!(failed.state, ServerState::BackingOff { failures: 1.., .. }), "{failed:?}");
    assert!(failed.last_error.expect("it failed").message.contains("its process ended with exit status: 3"));
    assert_eq!(failed.stderr, ["reading configuration", "fatal: SHOP_TOKEN is not set"]);
    servers.close().await;
}

#[tokio::test]
async fn a_handshake_that_is_refused_or_garbled_is_a_short_reason() {
    let servers =
        servers([("refusing", python("rude.py", &["refusing"])), ("garbling", python("rude.py", &["garbling"]))]);
    assert_eq!(
        missing(&servers, "refusing").await,
        "the MCP server `refusing` refused the handshake: I only speak to friends (JSON-RPC error -32602); it wrote \
         nothing to stderr"
    );
    let garbling = missing(&servers, "garbling").await;
    assert!(garbling.contains("answered `initialize` without a `protocolVersion`"), "{garbling}");
    assert!(garbling.len() < 500, "{}", garbling.len());
    servers.close().await;
}

#[tokio::test]
async fn a_command_or_directory_that_does_not_exist_is_named() {
    let mut nowhere = mute();
    if let toolgate::mcp::Transport::Stdio(stdio) = &mut nowhere.transport {
        stdio.cwd = Some("no/such/place".into());
    }
    let servers = servers([
        ("typo", ServerSettings::stdio("toolgate-no-such-command", ["-y"])),
        ("nowhere", nowhere),
        ("directory", ServerSettings::stdio(env!("CARGO_MANIFEST_DIR"), Vec::<String>::new())),
    ]);
    let typo = missing(&servers, "typo").await;
    assert!(typo.contains("the command `toolgate-no-such-command` was not found; install it"), "{typo}");
    let nowhere = missing(&servers, "nowhere").await;
    assert!(nowhere.contains("the working directory `no/such/place` does not exist"), "{nowhere}");
    let directory = missing(&servers, "directory").await;
    assert!(directory.contains("check that it is an executable file and that"), "{directory}");
    let unknown = missing(&servers, "unheard-of").await;
    assert!(unknown.contains("there is no MCP server `unheard-of` in the configuration"), "{unknown}");
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_never_answers_costs_only_its_own_start_budget() {
    const BUDGET: Duration = Duration::from_secs(4);
    let mut mute = mute();
    mute.start_timeout = BUDGET;
    let servers = servers([("mute", mute), ("quick", python("worker.py", &[]))]);
    list(&servers, &["quick"]).await;

    let started = Instant::now();
    let slow_list = async {
        let listed = list(&servers, &["mute", "quick"]).await;
        (listed, started.elapsed())
    };
    let quick_call = async {
        text(call(&servers, "quick", "hologram", json!({})).await);
        started.elapsed()
    };
    let ((listed, list_took), call_took) = tokio::join!(slow_list, quick_call);

    assert!(call_took < list_took, "the call took {call_took:?}");
    assert!((BUDGET..2 * BUDGET).contains(&list_took), "the list took {list_took:?}");
    assert_eq!((listed[0].tools.len(), listed[1].tools.len()), (0, 8));
    let reason = &listed[0].left_out[0].reason;
    let expected = "did not answer the handshake within 4 s; does it speak MCP on its stdin and stdout? If it is still \
                    installing, install it beforehand";
    assert!(reason.contains(expected), "{reason}");
    assert!(reason.ends_with("last on its stderr:\n  installing 212 packages"), "{reason}");
    servers.close().await;
}

#[tokio::test]
async fn two_who_need_a_server_that_does_not_start_wait_for_the_same_attempt() {
    let mut mute = mute();
    mute.start_timeout = Duration::from_millis(300);
    let servers = servers([("mute", mute)]);
    let started = Instant::now();
    let (first, second) = tokio::join!(missing(&servers, "mute"), missing(&servers, "mute"));
    assert_eq!(first, second);
    assert!(started.elapsed() < Duration::from_millis(580), "one after the other: {:?}", started.elapsed());
    servers.close().await;
}
