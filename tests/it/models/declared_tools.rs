//! Which tools a server is told of, and that it is never told to call one that it was not told of.

use serde_json::{Value, json};
use toolgate::models::{HttpModel, Settings, ToolChoice, anthropic, gemini, openai_chat, openai_responses};

use super::asking::{Ask, ask, user};

fn sent(model: &HttpModel, asked: &Ask) -> Value {
    serde_json::from_slice(&model.body(&asked.request()).unwrap()).unwrap()
}

#[test]
fn a_tool_that_is_to_be_called_is_named_only_if_it_is_declared() {
    let settings = Settings { tool_choice: ToolChoice::Tool("ext_look".into()), ..Settings::new("http://h/v1", "m") };
    let chosen = |model: HttpModel, place: &str, names: &[&str]| {
        sent(&model, &ask([user("a")]).with_tools(names)).pointer(place).cloned()
    };
    let chat = || openai_chat::model(&settings).unwrap();
    let named = json!({"type": "function", "function": {"name": "ext_look"}});
    assert_eq!(chosen(chat(), "/tool_choice", &["look"]), Some(named));
    assert_eq!(chosen(chat(), "/tool_choice", &["else"]), None);
    let responses = || openai_responses::model(&settings).unwrap();
    assert_eq!(chosen(responses(), "/tool_choice", &["look"]), Some(json!({"type": "function", "name": "ext_look"})));
    assert_eq!(chosen(responses(), "/tool_choice", &["else"]), None);
    let anthropic = || anthropic::model(&settings).unwrap();
    assert_eq!(chosen(anthropic(), "/tool_choice", &["look"]), Some(json!({"type": "tool", "name": "ext_look"})));
    assert_eq!(chosen(anthropic(), "/tool_choice", &["else"]), None);
    let gemini = || gemini::model(&settings).unwrap();
    assert_eq!(
        chosen(gemini(), "/toolConfig/functionCallingConfig", &["look"]),
        Some(json!({"mode": "ANY", "allowedFunctionNames": ["ext_look"]}))
    );
    assert_eq!(chosen(gemini(), "/toolConfig", &["else"]), None);
}
