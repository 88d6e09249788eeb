//! Canary secrets: each secret of a deployment has a known value, and the tests search all output of the process for
//! it.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;

use super::desk::Desk;

const CONFIG: &str = "
models:
  played: { scripted: { file: conversation.yaml } }
  away:
    openai_chat: { base_url: 'http://127.0.0.1:9', model: m, api_key: '${MODEL_KEY}', headers: { X-Team-Token: '${TEAM_TOKEN}' } }
servers:
  shop:
    stdio:
      command: sh
      args: [-c, 'echo \"started with $SHOP_TOKEN\" >&2; exec toolgate demo-server']
      env: { SHOP_TOKEN: '${SHOP_TOKEN}', SHOP_REGION: canary-region-is-no-secret }
    trusted: true
agents:
  desk:
    model: played
    servers: [shop]
    policy: bypass
    external_tools:
      - name: log_in
        description: Log in.
        input_schema:
          type: object
          properties: { user: { type: string }, pin: { type: string, writeOnly: true }, word: { type: string, format: password } }
telemetry:
  headers: { authorization: 'Bearer ${COLLECTOR_TOKEN}' }
  redact: { keys: [iban] }
";

const SAID: &str = "
turns:
  - say: I log in and note what I was told.
    calls:
      - { id: in, name: ext_log_in, arguments: { user: ada, pin: canary-marked-pin, word: canary-marked-word, password: canary-by-name, IBAN: canary-configured } }
      - { id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: 'api-key: canary-in-prose' } }
      - { id: wrong, name: mcp_shop_fly, arguments: { password: canary-in-a-mistake } }
      - { id: kept, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: canary-of-the-server } }
  - { say: 'The keys are canary-of-the-model, canary-of-the-team and canary-of-the-collector.' }
";

const VARIABLES: [(&str, &str); 4] = [
    ("MODEL_KEY", "canary-of-the-model"),
    ("TEAM_TOKEN", "canary-of-the-team"),
    ("SHOP_TOKEN", "canary-of-the-server"),
    ("COLLECTOR_TOKEN", "canary-of-the-collector"),
];

#[tokio::test]
async fn no_api_key_from_a_header_reaches_a_log_a_store_or_a_response() {
    let desk = Desk::playing("turns: [{ say: Hello. }]");
    let key = desk.toolgate(&["keys", "create", "ci", "--all"]).expect(0).out.trim().to_owned();
    let shown = [key.as_str(), "tg_canary-of-a-guess", "eyJhbGciOiJub25lIn0.canary-of-a-token.x"];
    let mut command = desk.command(&["serve", "--listen", "127.0.0.1:0"]);
    let log = std::fs::File::create(desk.path().join("log")).unwrap();
    let mut server = command.env("RUST_LOG", "trace").stderr(log).spawn().unwrap();
    let read = |name: &str| String::from_utf8_lossy(&std::fs::read(desk.path().join(name)).unwrap()).into_owned();
    let url = loop {
        let told = read("log");
        let address = told.split_once("listening at ").and_then(|(_, rest)| rest.split_once('\n'));
        match address {
            Some((address, _)) => break address.split_whitespace().next().unwrap().to_owned(),
            None => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
        }
    };
    let client = reqwest::Client::new();
    for secret in shown {
        let request = client.post(format!("{url}/v1/runs")).bearer_auth(secret).header("idempotency-key", "k");
        let answer = request.json(&serde_json::json!({"input": "Hello"})).send().await.unwrap();
        assert_eq!(answer.status() == 201, secret == key, "{answer:?}");
        let headers = format!("{:?}", answer.headers());
        let said = headers + &answer.text().await.unwrap();
        assert!(!said.contains(secret), "{said}");
    }
    // A thread of its own writes the log, so a line may follow the response that it describes.
    while !read("log").contains("unknown API key") {
        assert!(server.try_wait().unwrap().is_none(), "the server ended: {}", read("log"));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    server.kill().unwrap();
    server.wait().unwrap();
    let kept: Vec<String> = std::fs::read_dir(desk.path().join(".toolgate"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned())
        .collect();
    assert!(kept.iter().any(|file| file.contains("key:ci")), "the store was looked at");
    for secret in shown {
        assert!(!read("log").contains(&secret[3..]), "{secret} in the log");
        assert!(kept.iter().all(|file| !file.contains(&secret[3..])), "{secret} in the store");
    }
}

/// All data that the collector receives.
#[derive(Clone, Default)]
pub(super) struct Collected(Arc<Mutex<Vec<u8>>>);

impl Collected {
    pub(super) async fn listen(&self) -> String {
        let all = self.0.clone();
        let take = move |body: Bytes| async move { all.lock().unwrap().extend_from_slice(&body) };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(take)).await });
        format!("http://{address}")
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// The positions of a canary, with the text around it.
pub(super) fn found<'a>(text: &'a str, but_for: &str) -> Vec<&'a str> {
    let around = |at: usize| {
        let start = (0..=at).rev().find(|start| at - start >= 40 && text.is_char_boundary(*start)).unwrap_or(0);
        let end = (at..=text.len()).find(|end| end - at >= 40 && text.is_char_boundary(*end)).unwrap_or(text.len());
        &text[start..end]
    };
    text.match_indices("canary-")
        .filter(|(at, _)| !text[*at..].starts_with(but_for))
        .map(|(at, _)| around(at))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_configured_or_marked_secret_reaches_a_span_or_a_log() {
    let collected = Collected::default();
    let endpoint = collected.listen().await;
    let ran = tokio::task::spawn_blocking(move || {
        let desk = Desk::empty();
        desk.write("toolgate.yaml", CONFIG);
        desk.write("conversation.yaml", SAID);
        let toolgate = |arguments: &[&str], code: i32| {
            let mut command = desk.command(arguments);
            command.envs(VARIABLES).env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint).env("RUST_LOG", "trace");
            let output = command.output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(code), "{told}");
            told
        };
        let begun = toolgate(&["run", "--json", "Log in"], 10);
        begun + &toolgate(&["resume", "last", "--json", "--result", "in={\"cookie\": \"canary-in-a-result\"}"], 0)
    });
    let log = ran.await.unwrap();

    let spans = collected.text();
    for shown in ["execute_tool ext_log_in", "execute_tool mcp_shop_add_note", "__REDACTED__", "ada"] {
        assert!(spans.contains(shown), "the spans were sent: {shown}");
    }
    assert_eq!(found(&spans, "nothing"), [""; 0], "in spans");
    assert!(log.contains("DEBUG") || log.contains("TRACE"), "the log is loud: {log}");
    assert_eq!(found(&log, "canary-region"), [""; 0], "in logs");
}
