//! An image from a prompt to a file, with the real binary and a fake images server.

use serde_json::json;

use super::desk::Desk;
use crate::models::model_server::{ModelServer, Prepared};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

fn painter(base_url: &str) -> Desk {
    let desk = Desk::empty();
    let model = format!("openai_images: {{ model: gpt-image-2, base_url: '{base_url}', extra: {{ quality: low }} }}");
    desk.write("toolgate.yaml", &format!("models: {{ artist: {{ {model} }} }}\nagents: {{ painter: {{}} }}\n"));
    desk
}

fn drawn() -> Prepared {
    let usage = json!({"input_tokens": 9, "output_tokens": 1056});
    Prepared::json(json!({"data": [{"b64_json": "iVBORw0KGgo="}], "usage": usage}).to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_becomes_a_handle_and_the_handle_a_file() {
    let server = ModelServer::answering([drawn()]).await;
    let desk = painter(&server.base_url);

    let ended = desk.toolgate(&["run", "A cat"]).expect(0);

    let handle = ended.out.trim_end().strip_prefix("image/png, 8 bytes: ").expect("a line for the image").to_owned();
    desk.toolgate(&["blobs", "save", &handle, "-o", "cat.png"]).expect(0);
    assert_eq!(std::fs::read(desk.path().join("cat.png")).unwrap(), PNG);
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].json(), json!({"model": "gpt-image-2", "quality": "low", "prompt": "A cat"}));
    let shown = desk.toolgate(&["runs", "show", "last"]).expect(0);
    assert!(shown.out.contains("9 → 1056 tokens") && shown.out.contains(&handle), "{}", shown.out);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_with_more_than_a_prompt_fails_as_validation_and_costs_nothing() {
    let server = ModelServer::answering([]).await;
    let desk = painter(&server.base_url);
    desk.write("notes.md", "Blue.");
    desk.write("schema.json", r#"{"type": "object"}"#);
    for arguments in [["--attach", "notes.md"], ["--output-schema", "schema.json"]] {
        let ended = desk.toolgate(&[&["run", "--json", "A cat"], &arguments[..]].concat()).expect(1);
        assert_eq!(ended.result()["error"]["code"], "validation", "{}", ended.out);
    }
    assert_eq!(server.asked().len(), 0);
}
