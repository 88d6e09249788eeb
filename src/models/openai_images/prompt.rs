//! Image prompt: the text of the user's last message, and no other content (FEATURES 3.16).

use toolgate_core::chat::{Message, Part, Role};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_ports::ModelRequest;

/// The prompt, or why the request is invalid.
pub(super) fn prompt(request: &ModelRequest<'_>) -> Result<String, Failure> {
    let refused = |why: String| Err(Failure::new(ErrorCode::Validation, format!("an image model {why}")));
    if request.tools.iter().next().is_some() {
        return refused("does not call tools; use an agent without servers and external tools".into());
    }
    if request.output_schema.is_some() {
        return refused("has no structured output; remove the output schema".into());
    }
    if !request.system.trim().is_empty() {
        return refused("takes no instructions; put everything into the message".into());
    }
    let message = request.messages.last().filter(|message| message.role == Role::User);
    if let Some(kind) = message.and_then(|message| beside_text(message)) {
        return refused(format!("takes only text, and the message holds {kind}"));
    }
    let prompt = message.map(|message| message.text()).unwrap_or_default();
    if prompt.trim().is_empty() {
        return refused("needs a prompt, and the message has no text; describe the image".into());
    }
    Ok(prompt)
}

/// The content of the message that is not text.
fn beside_text(message: &Message) -> Option<&'static str> {
    message.content.iter().find_map(|part| match part {
        Part::Text { .. } => None,
        Part::Image(_) => Some("an image"),
        Part::Audio(_) => Some("audio"),
        Part::Resource { .. } => Some("a file"),
        Part::Reasoning { .. } => Some("reasoning"),
        Part::ToolUse { .. } | Part::ToolResult { .. } => Some("a tool call or its result"),
    })
}
