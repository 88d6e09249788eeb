//! Attribute names, each defined once. OpenInference 0.1.42; OpenTelemetry GenAI and MCP 1.41.1; `toolgate.*` is our
//! own namespace.

// OpenInference: every span
/// The kind of a span in OpenInference, such as `LLM`.
pub const SPAN_KIND: &str = "openinference.span.kind";
pub(crate) const SESSION_ID: &str = "session.id";
pub(crate) const USER_ID: &str = "user.id";
pub(crate) const METADATA: &str = "metadata";
pub(crate) const TAGS: &str = "tag.tags";
pub(crate) const INPUT_VALUE: &str = "input.value";
pub(crate) const INPUT_MIME: &str = "input.mime_type";
pub(crate) const OUTPUT_VALUE: &str = "output.value";
pub(crate) const OUTPUT_MIME: &str = "output.mime_type";

// OpenInference: agent, model, tool
pub(crate) const AGENT_NAME: &str = "agent.name";
pub(crate) const LLM_SYSTEM: &str = "llm.system";
pub(crate) const LLM_PROVIDER: &str = "llm.provider";
pub(crate) const LLM_MODEL: &str = "llm.model_name";
pub(crate) const LLM_REQUEST_MODEL: &str = "llm.request.model_name";
pub(crate) const LLM_RESPONSE_MODEL: &str = "llm.response.model_name";
pub(crate) const LLM_PARAMETERS: &str = "llm.invocation_parameters";
pub(crate) const LLM_FINISH_REASON: &str = "llm.finish_reason";
pub(crate) const LLM_INPUT_MESSAGES: &str = "llm.input_messages";
pub(crate) const LLM_OUTPUT_MESSAGES: &str = "llm.output_messages";
pub(crate) const LLM_TOOLS: &str = "llm.tools";
/// The input tokens of a model call, cached ones included.
pub const TOKENS_PROMPT: &str = "llm.token_count.prompt";
/// The output tokens of a model call.
pub const TOKENS_COMPLETION: &str = "llm.token_count.completion";
pub(crate) const TOKENS_TOTAL: &str = "llm.token_count.total";
pub(crate) const TOKENS_CACHE_READ: &str = "llm.token_count.prompt_details.cache_read";
pub(crate) const TOKENS_CACHE_WRITE: &str = "llm.token_count.prompt_details.cache_write";
pub(crate) const TOKENS_REASONING: &str = "llm.token_count.completion_details.reasoning";
pub(crate) const COST_TOTAL: &str = "llm.cost.total";
pub(crate) const COST_PROMPT: &str = "llm.cost.prompt";
pub(crate) const COST_COMPLETION: &str = "llm.cost.completion";
pub(crate) const COST_INPUT: &str = "llm.cost.prompt_details.input";
pub(crate) const COST_CACHE_READ: &str = "llm.cost.prompt_details.cache_read";
pub(crate) const COST_CACHE_WRITE: &str = "llm.cost.prompt_details.cache_write";
pub(crate) const COST_OUTPUT: &str = "llm.cost.completion_details.output";
pub(crate) const COST_REASONING: &str = "llm.cost.completion_details.reasoning";
pub(crate) const PROMPT_ID: &str = "prompt.id";
pub(crate) const PROMPT_VERSION: &str = "llm.prompt_template.version";
pub(crate) const TOOL_NAME: &str = "tool.name";
pub(crate) const TOOL_DESCRIPTION: &str = "tool.description";
pub(crate) const TOOL_PARAMETERS: &str = "tool.parameters";
pub(crate) const TOOL_ID: &str = "tool.id";
pub(crate) const TOOL_CALL_ID: &str = "tool_call.id";
pub(crate) const TOOL_JSON_SCHEMA: &str = "tool.json_schema";

// OpenInference: feedback
pub(crate) const ANNOTATION_NAME: &str = "annotations.0.annotation.name";
pub(crate) const ANNOTATION_SCORE: &str = "annotations.0.annotation.score";
pub(crate) const ANNOTATION_LABEL: &str = "annotations.0.annotation.label";
pub(crate) const ANNOTATION_EXPLANATION: &str = "annotations.0.annotation.explanation";
pub(crate) const ANNOTATION_IDENTIFIER: &str = "annotations.0.annotation.identifier";
pub(crate) const ANNOTATOR_KIND: &str = "annotations.0.annotation.annotator_kind";

// OpenInference: within a message
pub(crate) const MESSAGE_ROLE: &str = "message.role";
pub(crate) const MESSAGE_CONTENT: &str = "message.content";
pub(crate) const MESSAGE_CONTENTS: &str = "message.contents";
pub(crate) const MESSAGE_NAME: &str = "message.name";
pub(crate) const MESSAGE_TOOL_CALL_ID: &str = "message.tool_call_id";
pub(crate) const MESSAGE_TOOL_CALLS: &str = "message.tool_calls";
pub(crate) const TOOL_CALL_NAME: &str = "tool_call.function.name";
pub(crate) const TOOL_CALL_SIGNATURE: &str = "tool_call.reasoning_signature";
pub(crate) const TOOL_CALL_ARGUMENTS: &str = "tool_call.function.arguments";
pub(crate) const CONTENT_TYPE: &str = "message_content.type";
pub(crate) const CONTENT_TEXT: &str = "message_content.text";
pub(crate) const CONTENT_ID: &str = "message_content.id";
pub(crate) const CONTENT_SIGNATURE: &str = "message_content.signature";
pub(crate) const CONTENT_ENCRYPTED: &str = "message_content.encrypted_content";
pub(crate) const CONTENT_DATA: &str = "message_content.data";
pub(crate) const CONTENT_IMAGE: &str = "message_content.image";
pub(crate) const CONTENT_IMAGE_URL: &str = "message_content.image.image.url";
pub(crate) const CONTENT_AUDIO_URL: &str = "message_content.audio.audio.url";
pub(crate) const CONTENT_AUDIO_MIME: &str = "message_content.audio.audio.mime_type";

// OpenTelemetry
/// The kind of the error that ended a span.
pub const ERROR_TYPE: &str = "error.type";
pub(crate) const EXCEPTION: &str = "exception";
pub(crate) const EXCEPTION_TYPE: &str = "exception.type";
pub(crate) const EXCEPTION_MESSAGE: &str = "exception.message";

// OpenTelemetry GenAI
pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(crate) const GEN_AI_AGENT: &str = "gen_ai.agent.name";
pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
pub(crate) const REQUEST_TOP_P: &str = "gen_ai.request.top_p";
pub(crate) const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(crate) const REQUEST_SEED: &str = "gen_ai.request.seed";
pub(crate) const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub(crate) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(crate) const RESPONSE_FINISH: &str = "gen_ai.response.finish_reasons";
pub(crate) const RESPONSE_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub(crate) const USAGE_INPUT: &str = "gen_ai.usage.input_tokens";
pub(crate) const USAGE_OUTPUT: &str = "gen_ai.usage.output_tokens";
pub(crate) const USAGE_CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
pub(crate) const USAGE_CACHE_WRITE: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(crate) const USAGE_REASONING: &str = "gen_ai.usage.reasoning.output_tokens";
pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(crate) const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub(crate) const TOOL_DEFINITIONS: &str = "gen_ai.tool.definitions";
pub(crate) const GEN_AI_TOOL: &str = "gen_ai.tool.name";
pub(crate) const GEN_AI_TOOL_TYPE: &str = "gen_ai.tool.type";
pub(crate) const GEN_AI_TOOL_DESCRIPTION: &str = "gen_ai.tool.description";
pub(crate) const GEN_AI_CALL_ID: &str = "gen_ai.tool.call.id";
pub(crate) const GEN_AI_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const GEN_AI_CALL_RESULT: &str = "gen_ai.tool.call.result";

pub(crate) const EVALUATION_RESULT: &str = "gen_ai.evaluation.result";
pub(crate) const EVALUATION_NAME: &str = "gen_ai.evaluation.name";
pub(crate) const EVALUATION_SCORE: &str = "gen_ai.evaluation.score.value";
pub(crate) const EVALUATION_LABEL: &str = "gen_ai.evaluation.score.label";
pub(crate) const EVALUATION_EXPLANATION: &str = "gen_ai.evaluation.explanation";

// OpenTelemetry MCP
pub(crate) const MCP_METHOD: &str = "mcp.method.name";
pub(crate) const MCP_PROTOCOL: &str = "mcp.protocol.version";

// OpenTelemetry JSON-RPC, RPC, network and server, as the MCP conventions require
pub(crate) const REQUEST_ID: &str = "jsonrpc.request.id";
pub(crate) const RPC_STATUS: &str = "rpc.response.status_code";
pub(crate) const NETWORK_TRANSPORT: &str = "network.transport";
pub(crate) const NETWORK_PROTOCOL: &str = "network.protocol.name";
pub(crate) const SERVER_ADDRESS: &str = "server.address";
pub(crate) const SERVER_PORT: &str = "server.port";

// ours
pub(crate) const RUN_ID: &str = "toolgate.run.id";
/// The outcome of a run.
pub const RUN_OUTCOME: &str = "toolgate.run.outcome";
/// The codes of the warnings about the result of a run.
pub const RUN_WARNINGS: &str = "toolgate.run.warnings";
pub(crate) const RUN_RESUMED: &str = "toolgate.run.resumed";
pub(crate) const RUN_FORKED_FROM: &str = "toolgate.run.forked_from";
pub(crate) const RUN_RETRY_OF: &str = "toolgate.run.retry_of";
pub(crate) const ITERATION: &str = "toolgate.iteration";
pub(crate) const BUDGET_USED: &str = "toolgate.budget.used";
pub(crate) const BUDGET_MAX: &str = "toolgate.budget.max";
pub(crate) const MCP_CALLS: &str = "toolgate.mcp_calls";
pub(crate) const TOTAL_INPUT: &str = "toolgate.usage.input_tokens";
pub(crate) const TOTAL_OUTPUT: &str = "toolgate.usage.output_tokens";
pub(crate) const TOTAL_COST: &str = "toolgate.usage.cost_usd";
pub(crate) const RUN_INPUT: &str = "toolgate.run.usage.input_tokens";
pub(crate) const RUN_OUTPUT: &str = "toolgate.run.usage.output_tokens";
pub(crate) const RUN_COST: &str = "toolgate.run.usage.cost_usd";
pub(crate) const ATTEMPTS: &str = "toolgate.llm.attempts";
pub(crate) const INSTEAD_OF: &str = "toolgate.llm.instead_of";
/// The number of values that were longer than the limit.
pub(crate) const TRUNCATED_VALUES: &str = "toolgate.truncated_values";
pub(crate) const LEFT_OUT: &str = "toolgate.llm.messages_left_out";
pub(crate) const MODEL_OPERATION: &str = "toolgate.operation";
pub(crate) const TOOL_ACCESS: &str = "toolgate.llm.tool_access";
pub(crate) const SERVER_KIND: &str = "toolgate.tool.server_kind";
pub(crate) const SERVER: &str = "toolgate.tool.server";
pub(crate) const ORIGINAL_NAME: &str = "toolgate.tool.original_name";
pub(crate) const PRIORITY: &str = "toolgate.tool.priority";
/// Why a tool call is suspended: `input_required` or `task`.
pub const TOOL_SUSPENDED: &str = "toolgate.tool.suspended";
/// The call that this call undoes.
pub const TOOL_UNDOES: &str = "toolgate.tool.undoes";
/// The violated rules of arguments that do not match the tool's schema, at a server whose validation is advisory.
pub(crate) const ARGUMENT_PROBLEMS: &str = "toolgate.tool.argument_problems";
/// On the event `validation.failed`.
pub(crate) const PROBLEMS: &str = "toolgate.problems";
pub(crate) const EDITED: &str = "toolgate.tool.arguments_edited";
pub(crate) const GUARDRAIL: &str = "toolgate.guardrail";
/// How long a pending item waited, in milliseconds.
pub const WAIT_MS: &str = "toolgate.wait_ms";
pub(crate) const DECIDED: &str = "toolgate.approval.answer";
pub(crate) const DECIDED_BY: &str = "toolgate.approval.by";
pub(crate) const DECIDED_VIA: &str = "toolgate.approval.via";
pub(crate) const DECIDED_SCOPE: &str = "toolgate.approval.scope";
pub(crate) const DECIDED_RULE: &str = "toolgate.approval.rule";
pub(crate) const DIFFERS: &str = "toolgate.drift.differs";
/// The annotator of feedback.
pub(crate) const ANNOTATOR_ID: &str = "toolgate.feedback.annotator";
/// When feedback was given: its span is a point in the time of the judged span.
pub(crate) const FEEDBACK_AT: &str = "toolgate.feedback.given_at";
pub(crate) const LISTED_SERVER: &str = "toolgate.listing.server";
/// How long opening the connection took, of a listing that opened one, in milliseconds.
pub(crate) const CONNECT_MS: &str = "toolgate.listing.connect_ms";
/// The number of listed tools.
pub const LISTED_TOOLS: &str = "toolgate.listing.tools";
pub(crate) const LISTED_LEFT_OUT: &str = "toolgate.listing.left_out";
