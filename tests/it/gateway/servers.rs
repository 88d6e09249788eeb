//! MCP servers are listed, refreshed and restarted, in a program opened from a configuration.

use std::path::PathBuf;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toolgate::app::App;
use toolgate::config;

use super::served::HttpAnswer;

/// The program, opened from a configuration and served.
pub(super) struct Program {
    _folder: tempfile::TempDir,
    address: String,
    app: App,
    _serving: JoinSet<()>,
}

/// An example of this repository.
pub(super) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(program.exists(), "build it with `cargo build --example {name}`, or run all of `cargo test`");
    program
}

/// The bundled example server, and one that cannot start.
async fn program() -> Program {
    let servers = json!({
        "demo": {"start": "eager", "stdio": {"command": example("mcp_demo_server")}},
        "gone": {"stdio": {"command": "no-such-program-anywhere"}},
    });
    Program::with(servers, json!([])).await
}

impl Program {
    /// An agent `clerk` with these servers, whose model says this, and that may do anything.
    pub(super) async fn with(servers: Value, turns: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<&String> = servers.as_object().unwrap().keys().collect();
        let config = json!({
            "store": {"memory": {}},
            "gateway": {"anonymous": true},
            "models": {"played": {"scripted": {"file": "script.json"}}},
            "servers": servers,
            "agents": {"clerk": {"model": "played", "servers": names, "policy": "bypass"}},
        });
        let file = folder.path().join("toolgate.yaml");
        std::fs::write(&file, config.to_string()).unwrap();
        std::fs::write(folder.path().join("script.json"), json!({"turns": turns}).to_string()).unwrap();
        let settings = config::load(Some(&file), &|_: &str| None).unwrap();
        let app = App::open_server(settings).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = app.gateway(address).await.unwrap().router();
        let address = format!("http://{address}");
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { _folder: folder, address, app, _serving: serving }
    }

    pub(super) async fn get(&self, path: &str) -> HttpAnswer {
        self.ask(Method::GET, path).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> HttpAnswer {
        let request = reqwest::Client::new().post(format!("{}{path}", self.address)).header("prefer", "wait=30");
        HttpAnswer::of(request.json(&body).send().await.unwrap()).await
    }

    pub(super) async fn close(self) {
        self.app.close().await;
    }

    async fn ask(&self, method: Method, path: &str) -> HttpAnswer {
        let request = reqwest::Client::new().request(method, format!("{}{path}", self.address));
        HttpAnswer::of(request.send().await.unwrap()).await
    }
}

#[tokio::test]
async fn a_server_is_started_looked_at_refreshed_and_restarted() {
    let program = program().await;
    let idle = program.ask(Method::GET, "/v1/servers/demo").await;
    assert_eq!((idle.text("state"), idle.text("transport"), &idle.body["tools"]), ("idle", "stdio", &json!(null)));

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
    assert_eq!(tools.body["skipped"][0]["server"], "gone", "{tools:?}");
    program.app.close().await;
}

#[tokio::test]
async fn a_server_that_never_lists_its_tools_is_listing_and_says_why() {
    for (fault, reason) in
        [("hang-at-list", "did not list its tools"), ("list-fails-otherwise", "refused to list its tools")]
    {
        let words = ["--stdio", "--fault", fault];
        let server = json!({"start_timeout_s": 1, "stdio": {"command": example("fault_server"), "args": words}});
        let program = Program::with(json!({"odd": server}), json!([])).await;
        let refused = program.ask(Method::POST, "/v1/servers/odd/refresh").await;
        assert_eq!(refused.problem(), "tool_unavailable", "{refused:?}");

        let health = program.get("/v1/servers/odd").await;

        assert_eq!((health.text("state"), &health.body["tools"]), ("listing", &json!(null)), "{health:?}");
        let told = health.body["last_error"]["message"].as_str().unwrap_or_default();
        assert!(told.starts_with("the MCP server `odd`") && told.contains(reason), "{health:?}");
        program.close().await;
    }
}
