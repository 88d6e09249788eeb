//! The names of attributes, each once. OpenInference 0.1.42; OpenTelemetry GenAI and MCP 1.41.1; `toolgate.*` is ours.
#![allow(missing_docs)]

// OpenInference: every span
pub(super) const SPAN_KIND: &str = "openinference.span.kind";
pub(super) const SESSION_ID: &str = "session.id";
pub(super) const USER_ID: &str = "user.id";
pub(super) const METADATA: &str = "metadata";
pub(super) const TAGS: &str = "tag.tags";
pub(super) const INPUT_VALUE: &str = "input.value";
pub(super) const INPUT_MIME: &str = "input.mime_type";
pub(super) const OUTPUT_VALUE: &str = "output.value";
pub(super) const OUTPUT_MIME: &str = "output.mime_type";

// OpenInference: agent, model, tool
pub(super) const AGENT_NAME: &str = "agent.name";
pub(super) const LLM_SYSTEM: &str = "llm.system";
pub(super) const LLM_PROVIDER: &str = "llm.provider";
pub(super) const LLM_MODEL: &str = "llm.model_name";
pub(super) const LLM_REQUEST_MODEL: &str = "llm.request.model_name";
pub(super) const LLM_RESPONSE_MODEL: &str = "llm.response.model_name";
pub(super) const LLM_PARAMETERS: &str = "llm.invocation_parameters";
pub(super) const LLM_FINISH_REASON: &str = "llm.finish_reason";
pub(super) const LLM_INPUT_MESSAGES: &str = "llm.input_messages";
pub(super) const LLM_OUTPUT_MESSAGES: &str = "llm.output_messages";
pub(super) const LLM_TOOLS: &str = "llm.tools";
pub(super) const TOKENS_PROMPT: &str = "llm.token_count.prompt";
pub(super) const TOKENS_COMPLETION: &str = "llm.token_count.completion";
pub(super) const TOKENS_TOTAL: &str = "llm.token_count.total";
pub(super) const TOKENS_CACHE_READ: &str = "llm.token_count.prompt_details.cache_read";
pub(super) const TOKENS_CACHE_WRITE: &str = "llm.token_count.prompt_details.cache_write";
pub(super) const TOKENS_REASONING: &str = "llm.token_count.completion_details.reasoning";
pub(super) const COST_TOTAL: &str = "llm.cost.total";
pub(super) const TOOL_NAME: &str = "tool.name";
pub(super) const TOOL_DESCRIPTION: &str = "tool.description";
pub(super) const TOOL_PARAMETERS: &str = "tool.parameters";
pub(super) const TOOL_ID: &str = "tool.id";
pub(super) const TOOL_CALL_ID: &str = "tool_call.id";
pub(super) const TOOL_JSON_SCHEMA: &str = "tool.json_schema";

// OpenInference: within a message
pub(super) const MESSAGE_ROLE: &str = "message.role";
pub(super) const MESSAGE_CONTENT: &str = "message.content";
pub(super) const MESSAGE_CONTENTS: &str = "message.contents";
pub(super) const MESSAGE_NAME: &str = "message.name";
pub(super) const MESSAGE_TOOL_CALL_ID: &str = "message.tool_call_id";
pub(super) const MESSAGE_TOOL_CALLS: &str = "message.tool_calls";
pub(super) const TOOL_CALL_NAME: &str = "tool_call.function.name";
pub(super) const TOOL_CALL_ARGUMENTS: &str = "tool_call.function.arguments";
pub(super) const CONTENT_TYPE: &str = "message_content.type";
pub(super) const CONTENT_TEXT: &str = "message_content.text";
pub(super) const CONTENT_IMAGE_URL: &str = "message_content.image.image.url";
pub(super) const CONTENT_AUDIO_URL: &str = "message_content.audio.audio.url";
pub(super) const CONTENT_AUDIO_MIME: &str = "message_content.audio.audio.mime_type";

// OpenTelemetry
pub(super) const ERROR_TYPE: &str = "error.type";
pub(super) const EXCEPTION: &str = "exception";
pub(super) const EXCEPTION_TYPE: &str = "exception.type";
pub(super) const EXCEPTION_MESSAGE: &str = "exception.message";

// OpenTelemetry GenAI
pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const GEN_AI_AGENT: &str = "gen_ai.agent.name";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
pub(super) const REQUEST_TOP_P: &str = "gen_ai.request.top_p";
pub(super) const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(super) const REQUEST_SEED: &str = "gen_ai.request.seed";
pub(super) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const RESPONSE_FINISH: &str = "gen_ai.response.finish_reasons";
pub(super) const RESPONSE_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub(super) const USAGE_INPUT: &str = "gen_ai.usage.input_tokens";
pub(super) const USAGE_OUTPUT: &str = "gen_ai.usage.output_tokens";
pub(super) const USAGE_CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const USAGE_CACHE_WRITE: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(super) const USAGE_REASONING: &str = "gen_ai.usage.reasoning.output_tokens";
pub(super) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(super) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(super) const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub(super) const TOOL_DEFINITIONS: &str = "gen_ai.tool.definitions";
pub(super) const GEN_AI_TOOL: &str = "gen_ai.tool.name";
pub(super) const GEN_AI_TOOL_TYPE: &str = "gen_ai.tool.type";
pub(super) const GEN_AI_TOOL_DESCRIPTION: &str = "gen_ai.tool.description";
pub(super) const GEN_AI_CALL_ID: &str = "gen_ai.tool.call.id";
pub(super) const GEN_AI_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const GEN_AI_CALL_RESULT: &str = "gen_ai.tool.call.result";

// OpenTelemetry MCP
pub(super) const MCP_METHOD: &str = "mcp.method.name";

// ours
pub(super) const RUN_ID: &str = "toolgate.run.id";
pub(super) const RUN_OUTCOME: &str = "toolgate.run.outcome";
pub(super) const RUN_RESUMED: &str = "toolgate.run.resumed";
pub(super) const RUN_FORKED_FROM: &str = "toolgate.run.forked_from";
pub(super) const ITERATION: &str = "toolgate.iteration";
pub(super) const BUDGET_USED: &str = "toolgate.budget.used";
pub(super) const BUDGET_MAX: &str = "toolgate.budget.max";
pub(super) const MCP_CALLS: &str = "toolgate.mcp_calls";
pub(super) const TOTAL_INPUT: &str = "toolgate.usage.input_tokens";
pub(super) const TOTAL_OUTPUT: &str = "toolgate.usage.output_tokens";
pub(super) const TOTAL_COST: &str = "toolgate.usage.cost_usd";
pub(super) const ATTEMPTS: &str = "toolgate.llm.attempts";
pub(super) const INSTEAD_OF: &str = "toolgate.llm.instead_of";
pub(super) const OFFER: &str = "toolgate.llm.offer";
pub(super) const SERVER_KIND: &str = "toolgate.tool.server_kind";
pub(super) const SERVER: &str = "toolgate.tool.server";
pub(super) const ORIGINAL_NAME: &str = "toolgate.tool.original_name";
pub(super) const PRIORITY: &str = "toolgate.tool.priority";
pub(super) const PUT_ASIDE: &str = "toolgate.tool.put_aside";
pub(super) const EDITED: &str = "toolgate.tool.arguments_edited";
pub(super) const GUARDRAIL: &str = "toolgate.guardrail";
