//! More tools than a model's provider accepts: they are named before the run and in it.

use serde_json::{Value, json};

use super::costs::toolgate;
use super::desk::Desk;
use crate::models::model_server::{ModelServer, Prepared};

const REPLY: &str = r#"{"choices": [{"message": {"content": "Done."}, "finish_reason": "stop"}]}"#;

/// An agent with 200 tools and a model at api.openai.com, which this server is the proxy to.
async fn desk() -> (ModelServer, Desk) {
    let server = ModelServer::answering([Prepared::json(REPLY)]).await;
    let desk = Desk::empty();
    let proxy = server.base_url.strip_suffix("/v1").unwrap();
    let tools: Vec<Value> = (0..200).map(|number| json!({"name": format!("t{number:03}")})).collect();
    let config = json!({
        "models": {
            "main": {"openai_chat": {"base_url": "http://api.openai.com/v1", "proxy": proxy, "model": "m", "stream": false}},
            "other": {"openai_chat": {"base_url": "http://vllm.example/v1", "model": "m"}},
        },
        "agents": {"clerk": {"model": "main", "external_tools": tools, "priorities": {"ext_t199": 1}}},
    });
    desk.write("toolgate.yaml", &config.to_string());
    (server, desk)
}

#[tokio::test]
async fn tools_beyond_the_models_limit_are_named_before_the_run() {
    let (_server, desk) = desk().await;
    let fits = toolgate(&desk, &["tools", "--for", "main"]).await.expect(0).out;
    assert!(fits.contains("200 tools: 128 as they are, 0 with losses, 72 left out"), "{fits}");
    assert!(fits.contains("✓ ext_t126\n✗ ext_t127\n    left out: model `main` accepts 128 tools"), "{fits}");
    assert!(fits.contains("✓ ext_t199"), "its priority is higher: {fits}");
    let fits = toolgate(&desk, &["tools", "--for", "other"]).await.expect(0).out;
    assert!(fits.contains("200 tools: 200 as they are"), "{fits}");

    let listed = toolgate(&desk, &["tools"]).await.expect(0);
    assert!(listed.out.contains("128 tools"), "{}", listed.out);
    let line = listed.err.lines().find(|line| line.contains("left out")).unwrap();
    assert!(line.starts_with("left out: 72 tools (t127, t128, "), "{line}");
    assert!(line.contains("`tools: { allow: [...] }`"), "{line}");
}

#[tokio::test]
async fn tools_beyond_the_models_limit_are_named_in_the_run() {
    let (server, desk) = desk().await;
    let lines = toolgate(&desk, &["run", "--json", "Go"]).await.expect(0).json_lines();
    let listed = lines.iter().find(|line| line["type"] == "tools.listed").unwrap();
    let left_out = listed["skipped"].as_array().unwrap();
    assert_eq!((listed["tools"].as_array().unwrap().len(), left_out.len()), (128, 72));
    assert_eq!(left_out[0]["name"], "t127");
    let sent = server.asked().remove(0).json();
    let declared: Vec<&str> =
        sent["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(json!(declared), listed["tools"]);
    assert!(declared.contains(&"ext_t199") && !declared.contains(&"ext_t127"));
    let shown = toolgate(&desk, &["runs", "show", "last"]).await.expect(0).out;
    assert!(shown.contains("left out: 72 tools (t127, "), "{shown}");
}
