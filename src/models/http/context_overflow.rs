//! Context overflow in the words of servers that have no error code for it. A text decides only if there is no code and
//! the request was refused as such, or the error came within a stream. A wrong match costs one compaction: the turn is
//! tried once more, and then its failure counts.

use super::error_body::ErrorBody;

/// Fragments that a message contains together, in lower case.
type Wording = &'static [&'static str];

const WORDINGS: [Wording; 19] = [
    // OpenAI, vLLM, DeepSeek, OpenRouter, Mistral, mlx-serve.
    &["maximum context length"],
    // SGLang, LM Studio, Ollama.
    &["longer than the", "context length"],
    &["greater than the context length"],
    &["fit in context length"],
    &["context length", "exceed"],
    // OpenAI, MiniMax, oMLX, LiteLLM.
    &["context window", "exceed"],
    &["contextwindowexceedederror"],
    // llama.cpp.
    &["context size", "exceed"],
    // Anthropic, also behind Bedrock and Vertex.
    &["context limit", "exceed"],
    &["prompt is too long"],
    // Bedrock, Ollama's cloud.
    &["input is too long"],
    &["prompt too long"],
    // Gemini: "exceeds the maximum number of tokens" or "the model only supports up to".
    &["input token count", "exceeds"],
    &["input token count", "only supports up to"],
    // Groq, Cerebras.
    &["reduce the length of the messages"],
    // xAI.
    &["maximum prompt length"],
    // TGI, Together.
    &["`inputs` tokens", "must be"],
    // Cohere.
    &["too many tokens", "prompt"],
    // Kimi.
    &["exceeded model token limit"],
];

/// The word of an output limit that is too large for the model: shortening the conversation does not help.
const OUTPUT_LIMIT: &str = "completion_tokens' is too large";

/// Codes that say no more than the status.
const GENERAL: [&str; 6] =
    ["invalid_request_error", "invalid_argument", "invalid_request", "bad_request", "BadRequest", "BadRequestError"];

/// Whether this error without a code of its own says that the conversation is too long. `status` is absent for an error
/// within a stream.
pub(super) fn is_reported(error: &ErrorBody) -> bool {
    let is_coded = error.code.as_deref().is_some_and(|code| !GENERAL.contains(&code));
    // TGI answers 422.
    if is_coded || !matches!(error.status, None | Some(400 | 413 | 422)) {
        return false;
    }
    let text = error.text.as_deref().unwrap_or_default().to_ascii_lowercase();
    let matches = |wording: &Wording| wording.iter().all(|part| text.contains(part));
    WORDINGS.iter().any(matches) && !text.contains(OUTPUT_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn is_reported_by(error: &Value, status: Option<u16>) -> bool {
        let body = ErrorBody::of_error(error);
        is_reported(&ErrorBody { status: status.or(body.status), ..body })
    }

    #[test]
    fn servers_without_a_code_report_an_overflow_in_their_own_words() {
        for text in [
            "This model's maximum context length is 32768 tokens. However, you requested 0 output tokens and your prompt contains at least 32769 input tokens.",
            "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens.",
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            "The input (33000 tokens) is longer than the model's context length (32768 tokens).",
            "The number of tokens to keep from the initial prompt is greater than the context length",
            "Input does not fit in context length. The input has 31430 tokens, but the context length only supports 30000 tokens.",
            "Requested token count exceeds the model's maximum context length of 32768 tokens.",
            "prompt too long; exceeded max context length by 540451 tokens",
            "Prompt too long: 41911 tokens exceeds max context window of 32768 tokens",
            "invalid params, context window exceeds limit (2013)",
            "litellm.ContextWindowExceededError: litellm.BadRequestError: too long",
            "the request exceeds the available context size, try increasing it",
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
            "prompt is too long: 213462 tokens > 200000 maximum",
            "Input is too long for requested model.",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",
            "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576.",
            "Please reduce the length of the messages or completion.",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
            "too many tokens: total number of tokens in the prompt cannot exceed 4081",
            "Invalid request: Your request exceeded model token limit: 8192",
        ] {
            assert!(is_reported_by(&json!({"message": text, "type": "BadRequestError", "code": 400}), None), "{text}");
            assert!(is_reported_by(&json!({"message": text, "code": "invalid_request_error"}), Some(413)), "{text}");
            assert!(is_reported_by(&json!(text), None), "within a stream: {text}");
        }
    }

    #[test]
    fn a_code_another_status_or_an_output_limit_is_no_overflow() {
        let text = "prompt is too long: 213462 tokens > 200000 maximum";
        assert!(!is_reported_by(&json!({"message": text, "code": "model_overloaded"}), Some(400)));
        for status in [401, 404, 429, 500, 529] {
            assert!(!is_reported_by(&json!({"message": text}), Some(status)), "{status}");
        }
        let output = "'max_tokens' or 'max_completion_tokens' is too large: 40000. This model's maximum context length is 32768 tokens";
        assert!(!is_reported_by(&json!({"message": output}), Some(400)));
        assert!(!is_reported_by(&json!({"message": "The tool name is too long."}), Some(400)));
    }
}
