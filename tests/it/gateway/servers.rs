//! MCP servers are listed, refreshed and restarted, in a program opened from a configuration.

use std::path::PathBuf;

use reqwest::Method;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toolgate::app::App;
use toolgate::config;

use super::served::Answer;

struct Program {
    _folder: tempfile::TempDir,
    address: String,
    app: App,
    _serving: JoinSet<()>,
}

/// The bundled example server, and one that cannot start.
async fn program() -> Program {
    let test = std::env::current_exe().unwrap();
    let demo: PathBuf = test.ancestors().nth(2).unwrap().join("examples/mcp_demo_server");
    assert!(demo.exists(), "build it with `cargo build --example mcp_demo_server`, or run all of `cargo test`");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolgate.yaml");
    let text = format!(
        "store: {{ memory: {{}} }}\ngateway: {{ anonymous: true }}\nmodels:\n  played: {{ scripted: {{ file: script.json }} }}\nservers:\n  demo:\n    start: \
         eager\n    stdio: {{ command: {} }}\n  gone:\n    stdio: {{ command: no-such-program-anywhere }}\nagents:\n  \
         clerk: {{ model: played, servers: [demo, gone] }}\n",
        demo.display()
    );
    std::fs::write(&file, text).unwrap();
    std::fs::write(folder.path().join("script.json"), r#"{"turns": []}"#).unwrap();
    let settings = config::load(Some(&file), &|_: &str| None).unwrap();
    let app = App::open(settings, Vec::new()).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = app.gateway(address).await.unwrap().router();
    let address = format!("http://{address}");
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
    Program { _folder: folder, address, app, _serving: serving }
}

impl Program {
    async fn ask(&self, method: Method, path: &str) -> Answer {
        let request = reqwest::Client::new().request(method, format!("{}{path}", self.address));
        Answer::of(request.send().await.unwrap()).await
    }
}

#[tokio::test]
async fn a_server_is_started_looked_at_refreshed_and_restarted() {
    let program = program().await;
    let idle = program.ask(Method::GET, "/v1/servers/demo").await;
    assert_eq!((idle.text("state"), idle.text("transport"), idle.body.get("tools")), ("idle", "stdio", None));

    program.app.start_servers();
    let refreshed = program.ask(Method::POST, "/v1/servers/demo/refresh").await;
    assert_eq!((refreshed.status.as_u16(), refreshed.text("state")), (200, "ready"), "{refreshed:?}");
    assert!(refreshed.body["tools"].as_u64().unwrap() > 0, "{refreshed:?}");
    let listed = program.ask(Method::GET, "/v1/servers").await;
    let states: Vec<&Value> = listed.body["data"].as_array().unwrap().iter().map(|server| &server["state"]).collect();
    assert_eq!(states, ["ready", "idle"], "the other one starts when it is needed");

    let restarted = program.ask(Method::POST, "/v1/servers/demo/restart").await;
    assert_eq!((restarted.text("state"), &restarted.body["restarts"]), ("ready", &Value::from(1)), "{restarted:?}");
    let gone = program.ask(Method::POST, "/v1/servers/gone/refresh").await;
    assert_eq!((gone.status.as_u16(), gone.problem()), (503, "tool_unavailable"));
    assert!(gone.text("detail").contains("no-such-program-anywhere"), "{gone:?}");
    assert_eq!(program.ask(Method::POST, "/v1/servers/none/restart").await.problem(), "not_found");

    let models = program.ask(Method::GET, "/v1/models").await;
    assert_eq!((&models.body["data"][0]["id"], &models.body["data"][0]["object"]), (&"played".into(), &"model".into()));
    let tools = program.ask(Method::GET, "/v1/tools").await;
    assert_eq!(tools.body["left_out"][0]["server"], "gone", "{tools:?}");
    program.app.close().await;
}
