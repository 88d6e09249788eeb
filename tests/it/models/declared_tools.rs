//! Declared tools: each server gets its limit of tools, and `tool_choice` never names an undeclared one.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::core::tool::{ExternalTool, Toolset, ToolsetRules};
use toolgate::models::{HttpModel, Settings, ToolChoice, anthropic, gemini, openai_chat, openai_responses};

use super::asking::{Ask, ask, user};

fn sent(model: &HttpModel, asked: &Ask) -> Value {
    serde_json::from_slice(&model.body(&asked.request()).unwrap()).unwrap()
}

#[test]
fn tool_choice_names_only_a_declared_tool() {
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

/// That many tools, and the names under which they are declared.
fn many(count: usize) -> (Ask, Vec<String>) {
    let names: Vec<String> = (0..count).map(|number| format!("look_{number:03}")).collect();
    let shown = names.iter().map(|name| format!("ext_{name}")).collect();
    (ask([user("a")]).with_tools(&names.iter().map(String::as_str).collect::<Vec<_>>()), shown)
}

fn names_in(body: &Value, place: &str) -> Vec<String> {
    let tools = body["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool.pointer(place).unwrap().as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_server_gets_as_many_tools_as_it_accepts() {
    let (asked, shown) = many(220);
    for (host, told) in [
        ("api.openai.com", 128),
        ("x.openai.azure.com", 128),
        ("api.groq.com", 128),
        ("api.x.ai", 200),
        ("vllm.example", 220),
    ] {
        let settings = Settings::new(format!("https://{host}/v1"), "m");
        let chat = sent(&openai_chat::model(&settings).unwrap(), &asked);
        assert_eq!(names_in(&chat, "/function/name"), shown[..told], "{host}");
        let responses = sent(&openai_responses::model(&settings).unwrap(), &asked);
        assert_eq!(names_in(&responses, "/name"), shown[..told], "{host}");
    }
}

#[test]
fn gemini_gets_512_tools() {
    let (asked, _) = many(513);
    let body = sent(&gemini::model(&Settings::new("https://generativelanguage.googleapis.com", "m")).unwrap(), &asked);
    assert_eq!(body["tools"][0]["functionDeclarations"].as_array().unwrap().len(), 512);
}

#[test]
fn the_tools_with_the_lowest_priority_are_left_out() {
    let (asked, shown) = many(130);
    let tool = |name: &String| serde_json::from_value(json!({"name": name.trim_start_matches("ext_")})).unwrap();
    let external: Vec<ExternalTool> = shown.iter().map(tool).collect();
    let rules = ToolsetRules { priorities: vec![("ext_look_129".into(), 1)], ..ToolsetRules::default() };
    let asked = Ask { tools: Arc::new(Toolset::assemble(&external, &[], &rules)), ..asked };
    let body = sent(&openai_chat::model(&Settings::new("https://api.openai.com/v1", "m")).unwrap(), &asked);
    let kept = [&shown[..127], &shown[129..]].concat();
    assert_eq!(names_in(&body, "/function/name"), kept);
}

#[test]
fn tool_choice_never_names_a_tool_beyond_the_limit() {
    let (asked, shown) = many(129);
    let settings = |tool: &String| Settings {
        tool_choice: ToolChoice::Tool(tool.clone()),
        ..Settings::new("https://api.openai.com/v1", "m")
    };
    let chosen = |tool| sent(&openai_chat::model(&settings(tool)).unwrap(), &asked).get("tool_choice").is_some();
    assert_eq!((chosen(&shown[127]), chosen(&shown[128])), (true, false));
}

#[test]
fn anthropic_tools_beyond_the_strict_limit_are_not_strict() {
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let tool = |name: &String| ExternalTool {
        name: name.clone(),
        description: "looks".into(),
        input_schema: schema.clone(),
        result_schema: None,
        priority: 0,
        deadline_s: None,
    };
    let tools: Vec<ExternalTool> = (0..22).map(|number| tool(&format!("look_{number:03}"))).collect();
    let asked = Ask { tools: Arc::new(Toolset::assemble(&tools, &[], &ToolsetRules::default())), ..ask([user("a")]) };
    let settings = Settings { strict_tools: true, ..Settings::new("http://h/v1", "m") };
    let body = sent(&anthropic::model(&settings).unwrap(), &asked);
    let strict: Vec<Option<&Value>> = body["tools"].as_array().unwrap().iter().map(|tool| tool.get("strict")).collect();
    assert_eq!(strict, [[Some(&json!(true)); 20].as_slice(), [None; 2].as_slice()].concat());
}
