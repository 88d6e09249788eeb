//! Turn authors: the replay state of a turn goes only to the model and server that wrote it.

use serde_json::{Value, json};
use toolgate::core::chat::{Message, Part, ProviderState, Role};
use toolgate::models::{HttpModel, Settings, anthropic, gemini, openai_chat, openai_responses};
use toolgate::ports::Model;

use super::asking::{ask, origin, user};
use super::fixtures::of;
use super::model_server::{ModelServer, Prepared};

const HOME: &str = "http://home:8080/v1";

/// A wire, with an item of replay state that only its author may read.
struct Keeping {
    wire: &'static str,
    model: fn(&Settings) -> HttpModel,
    item: Value,
}

fn every_wire() -> [Keeping; 4] {
    [
        Keeping {
            wire: anthropic::WIRE,
            model: |settings| anthropic::model(settings).unwrap(),
            item: json!({"type": "thinking", "thinking": "hm", "signature": "sealed-canary"}),
        },
        Keeping {
            wire: gemini::WIRE,
            model: |settings| gemini::model(settings).unwrap(),
            item: json!({"text": "So far.", "thoughtSignature": "sealed-canary"}),
        },
        Keeping {
            wire: openai_responses::WIRE,
            model: |settings| openai_responses::model(settings).unwrap(),
            item: json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed-canary"}),
        },
        Keeping {
            wire: openai_chat::WIRE,
            model: |settings| openai_chat::model(settings).unwrap(),
            item: json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "sealed-canary"}],
                "tool_calls": []}),
        },
    ]
}

impl Keeping {
    fn at_home(&self) -> HttpModel {
        (self.model)(&Settings::new(HOME, "m"))
    }

    /// A turn that this server wrote.
    fn turn_of(&self, origin: Option<&str>) -> Message {
        let items = vec![self.item.clone()];
        let origin = origin.map(str::to_owned);
        let state = ProviderState { wire: self.wire.into(), model: "m".into(), origin, items };
        Message { role: Role::Assistant, content: vec![Part::text("So far.")], provider_state: Some(state) }
    }
}

fn sent(model: &HttpModel, messages: impl IntoIterator<Item = Message>) -> String {
    String::from_utf8(model.body(&ask(messages).request()).unwrap()).unwrap()
}

#[test]
fn a_turn_is_replayed_only_to_the_server_that_wrote_it() {
    for keeping in every_wire() {
        let sent_after = |origin| sent(&keeping.at_home(), [user("go"), keeping.turn_of(origin), user("on")]);
        assert!(sent_after(Some("home:8080")).contains("sealed-canary"), "{}", keeping.wire);
        for foreign in [Some("home"), Some("home:8081"), Some("elsewhere:8080"), None] {
            let sent = sent_after(foreign);
            assert!(!sent.contains("sealed-canary"), "{} of {foreign:?}: {sent}", keeping.wire);
            assert!(sent.contains("So far."), "{} of {foreign:?}: {sent}", keeping.wire);
        }
    }
}

#[tokio::test]
async fn every_reply_names_its_server_without_credentials() {
    let fixture = of(&["anthropic"]).into_iter().find(|known| known.id == "anthropic/thinking_and_tool_call").unwrap();
    let server = ModelServer::answering([Prepared::json(fixture.body())]).await;
    let with_password = server.base_url.replace("http://", "http://user:pass-canary@");
    let model = anthropic::model(&Settings { stream: false, ..Settings::new(with_password, "m") }).unwrap();
    let reply = ask([user("go")]).of(&mut *model.converse()).await.unwrap();
    assert_eq!(reply.provider_state.unwrap().origin, Some(origin(&server.base_url)));
}

/// The roles in a request, and its last text.
fn last_said(model: &HttpModel, messages: impl IntoIterator<Item = Message>) -> (Vec<String>, String) {
    let body: Value = serde_json::from_str(&sent(model, messages)).unwrap();
    let said = ["messages", "contents", "input"].into_iter().find_map(|name| body[name].as_array()).unwrap();
    let roles = said.iter().map(|said| said["role"].as_str().unwrap_or("assistant").replace("model", "assistant"));
    (roles.collect(), said.last().unwrap().to_string())
}

#[test]
fn a_model_is_asked_to_continue_another_models_turn() {
    for keeping in every_wire() {
        let stopped = keeping.turn_of(Some("elsewhere"));
        let (roles, last) = last_said(&keeping.at_home(), [user("go"), stopped.clone()]);
        assert_eq!(roles, ["user", "assistant", "user"], "{}", keeping.wire);
        assert!(last.contains("[continue]"), "{}: {last}", keeping.wire);
        let (roles, last) = last_said(&keeping.at_home(), [user("go"), stopped, user("on")]);
        assert_eq!(roles, ["user", "assistant", "user"], "{}", keeping.wire);
        assert!(!last.contains("[continue]"), "{}: {last}", keeping.wire);
    }
}

#[test]
fn a_paused_model_continues_its_own_turn() {
    let [anthropic, gemini, ..] = every_wire();
    let (roles, _) = last_said(&anthropic.at_home(), [user("go"), anthropic.turn_of(Some("home:8080"))]);
    assert_eq!(roles, ["user", "assistant"]);
    let mut paused = gemini.turn_of(Some("home:8080"));
    paused.provider_state.as_mut().unwrap().items.push(json!({"continuationToken": "dG9r"}));
    let (roles, _) = last_said(&gemini.at_home(), [user("go"), paused]);
    assert_eq!(roles, ["user"]);
}
