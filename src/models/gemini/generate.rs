//! `generateContent` request: the body around the conversation.

use serde_json::{Map, Value, json};
use toolgate_core::chat::{Message, Role};
use toolgate_core::error::ErrorCode;
use toolgate_core::json::{MAX_DEPTH, is_deeper_than};
use toolgate_core::run::ToolAccess;
use toolgate_core::tool::Tool;
use toolgate_ports::ModelRequest;

use super::fold::GeminiFold;
use super::replay::WIRE;
use super::turns::Turns;
use super::{names, replay, schema, settings};
use crate::http::{
    Declared, ErrorBody, Fold, Members, Object, ProviderProtocol, RenderedParts, RequestPrefix, Settings,
    SettingsError, ToolChoice,
};

/// Fields of `generationConfig` that set the form of the answer.
const OUTPUT_FORM: [&str; 4] = ["responseMimeType", "responseSchema", "responseJsonSchema", "responseFormat"];

/// The most functions of a request: the API rejects more ("At most 512 function declarations can be specified").
const MOST_TOOLS: usize = 512;

/// The `generateContent` wire format, for one model.
#[derive(Debug)]
pub(super) struct Generate {
    prefix: RequestPrefix,
    streaming: bool,
    generation: Map<String, Value>,
    structured_output: Option<bool>,
    tool_choice: ToolChoice,
    strict_tools: bool,
    turns: Turns,
}

impl Generate {
    /// The format with these settings.
    pub(super) fn new(settings: &Settings) -> Result<Self, SettingsError> {
        settings::check(settings)?;
        let generation = settings::generation(settings);
        let has_form = OUTPUT_FORM.iter().any(|field| generation.contains_key(*field));
        Ok(Self {
            prefix: RequestPrefix::new(settings::beside(settings)),
            streaming: settings.stream,
            structured_output: if has_form { Some(false) } else { settings.structured_output },
            generation,
            tool_choice: settings.tool_choice.clone(),
            strict_tools: settings.strict_tools,
            turns: Turns::new(settings),
        })
    }
}

impl ProviderProtocol for Generate {
    fn name(&self) -> &'static str {
        WIRE
    }

    fn streams(&self) -> bool {
        self.streaming
    }

    fn message(
        &self,
        message: &Message,
        before: Option<&Message>,
        members: &mut Members,
    ) -> Result<(), serde_json::Error> {
        let is_continued = |message: &Message| replay::continued_by(message, &self.turns.model).is_some();
        match message.role {
            // The token of the request replaces it.
            Role::Assistant if is_continued(message) => Ok(()),
            Role::Assistant => members.push(&self.turns.of_model(message)),
            Role::User => {
                // The user added a message before the continuation, so the interrupted turn must be sent.
                if let Some(before) = before.filter(|before| is_continued(before)) {
                    members.push(&self.turns.of_model(before))?;
                }
                members.push(&self.turns.of_user(message, before))
            }
        }
    }

    fn declare(&self, tool: &Tool) -> Declared {
        let Tool { name, description, input_schema, .. } = tool;
        if !names::is_function_name(name.as_str()) {
            return Declared::Refused("its name begins with neither a letter nor an underscore".into());
        }
        if is_deeper_than(input_schema, MAX_DEPTH) {
            return Declared::Refused(format!("its schema is nested more than {MAX_DEPTH} levels deep"));
        }
        match schema::of_arguments(input_schema) {
            Some((schema, lost)) => Declared::As {
                json: json!({"name": name, "description": description, "parametersJsonSchema": schema}),
                lost,
            },
            None => Declared::Refused("its schema does not describe an object".into()),
        }
    }

    fn most_tools(&self) -> Option<usize> {
        Some(MOST_TOOLS)
    }

    fn body(&self, request: &ModelRequest<'_>, rendered: &RenderedParts<'_>) -> Result<Vec<u8>, serde_json::Error> {
        let tools = rendered.tools.unwrap_or_default();
        let mut body = Object::new(&self.prefix, request.system.len() + rendered.messages.len() + tools.len());
        if !request.system.is_empty() {
            body.field("systemInstruction", &json!({"parts": [{"text": request.system}]}))?;
        }
        body.rendered("contents", &[b"[", rendered.messages, b"]"]);
        if let Some(tools) = rendered.tools {
            body.rendered("tools", &[br#"[{"functionDeclarations":"#, tools, b"}]"]);
            if let Some(config) = self.calling(request.tool_access, rendered.choice(&self.tool_choice)) {
                body.field("toolConfig", &json!({"functionCallingConfig": config}))?;
            }
        }
        let mut generation = self.generation.clone();
        if let Some(schema) = request.output_schema.filter(|_| self.sends_schema(rendered)) {
            generation.insert("responseMimeType".into(), json!("application/json"));
            generation.insert("responseJsonSchema".into(), schema::of_output(schema));
        }
        if !generation.is_empty() {
            body.field("generationConfig", &generation)?;
        }
        let last = request.messages.last();
        if let Some(token) = last.and_then(|last| replay::continued_by(last, &self.turns.model)) {
            body.field("continuationToken", &token)?;
        }
        Ok(body.end())
    }

    fn fold(&self) -> Box<dyn Fold> {
        Box::new(GeminiFold::new(&self.turns.model))
    }

    /// An invalid key is a bad request in this API.
    fn classify(&self, error: &ErrorBody) -> Option<ErrorCode> {
        error.says("API_KEY_INVALID").then_some(ErrorCode::ProviderAuth)
    }
}

impl Generate {
    /// The calling mode. Tools that may not be called stay listed, because the prefix that the server caches must not
    /// change with the tool access.
    fn calling(&self, tool_access: ToolAccess, choice: &ToolChoice) -> Option<Value> {
        match (tool_access, choice) {
            (ToolAccess::BudgetExhausted | ToolAccess::Stopped | ToolAccess::FinalAnswer, _) => {
                Some(json!({"mode": "NONE"}))
            }
            // Forced calls are validated by their schema in any case.
            (ToolAccess::Enabled, ToolChoice::Auto) => self.strict_tools.then(|| json!({"mode": "VALIDATED"})),
            (ToolAccess::Enabled, ToolChoice::Required) => Some(json!({"mode": "ANY"})),
            (ToolAccess::Enabled, ToolChoice::Tool(name)) => {
                Some(json!({"mode": "ANY", "allowedFunctionNames": [name]}))
            }
        }
    }

    /// Models before Gemini 3 reject a response format together with tools.
    fn sends_schema(&self, rendered: &RenderedParts<'_>) -> bool {
        self.structured_output.unwrap_or(rendered.tools.is_none() || self.turns.is_gemini_3)
    }
}
