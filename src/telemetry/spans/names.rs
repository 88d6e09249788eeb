//! Attribute names, each defined once. OpenInference 0.1.42; OpenTelemetry GenAI and MCP 1.41.1; `toolgate.*` is our
//! own namespace.
#![allow(missing_docs)]

// OpenInference: every span
pub const SPAN_KIND: &str = "openinference.span.kind";
pub const SESSION_ID: &str = "session.id";
pub const USER_ID: &str = "user.id";
pub const METADATA: &str = "metadata";
pub const TAGS: &str = "tag.tags";
pub const INPUT_VALUE: &str = "input.value";
pub const INPUT_MIME: &str = "input.mime_type";
pub const OUTPUT_VALUE: &str = "output.value";
pub const OUTPUT_MIME: &str = "output.mime_type";

// OpenInference: agent, model, tool
pub const AGENT_NAME: &str = "agent.name";
pub const LLM_SYSTEM: &str = "llm.system";
pub const LLM_PROVIDER: &str = "llm.provider";
pub const LLM_MODEL: &str = "llm.model_name";
pub const LLM_REQUEST_MODEL: &str = "llm.request.model_name";
pub const LLM_RESPONSE_MODEL: &str = "llm.response.model_name";
pub const LLM_PARAMETERS: &str = "llm.invocation_parameters";
pub const LLM_FINISH_REASON: &str = "llm.finish_reason";
pub const LLM_INPUT_MESSAGES: &str = "llm.input_messages";
pub const LLM_OUTPUT_MESSAGES: &str = "llm.output_messages";
pub const LLM_TOOLS: &str = "llm.tools";
pub const TOKENS_PROMPT: &str = "llm.token_count.prompt";
pub const TOKENS_COMPLETION: &str = "llm.token_count.completion";
pub const TOKENS_TOTAL: &str = "llm.token_count.total";
pub const TOKENS_CACHE_READ: &str = "llm.token_count.prompt_details.cache_read";
pub const TOKENS_CACHE_WRITE: &str = "llm.token_count.prompt_details.cache_write";
pub const TOKENS_REASONING: &str = "llm.token_count.completion_details.reasoning";
pub const COST_TOTAL: &str = "llm.cost.total";
pub const COST_PROMPT: &str = "llm.cost.prompt";
pub const COST_COMPLETION: &str = "llm.cost.completion";
pub const COST_INPUT: &str = "llm.cost.prompt_details.input";
pub const COST_CACHE_READ: &str = "llm.cost.prompt_details.cache_read";
pub const COST_CACHE_WRITE: &str = "llm.cost.prompt_details.cache_write";
pub const COST_OUTPUT: &str = "llm.cost.completion_details.output";
pub const COST_REASONING: &str = "llm.cost.completion_details.reasoning";
pub const PROMPT_ID: &str = "prompt.id";
pub const PROMPT_VERSION: &str = "llm.prompt_template.version";
pub const TOOL_NAME: &str = "tool.name";
pub const TOOL_DESCRIPTION: &str = "tool.description";
pub const TOOL_PARAMETERS: &str = "tool.parameters";
pub const TOOL_ID: &str = "tool.id";
pub const TOOL_CALL_ID: &str = "tool_call.id";
pub const TOOL_JSON_SCHEMA: &str = "tool.json_schema";

// OpenInference: within a message
pub const MESSAGE_ROLE: &str = "message.role";
pub const MESSAGE_CONTENT: &str = "message.content";
pub const MESSAGE_CONTENTS: &str = "message.contents";
pub const MESSAGE_NAME: &str = "message.name";
pub const MESSAGE_TOOL_CALL_ID: &str = "message.tool_call_id";
pub const MESSAGE_TOOL_CALLS: &str = "message.tool_calls";
pub const TOOL_CALL_NAME: &str = "tool_call.function.name";
pub const TOOL_CALL_SIGNATURE: &str = "tool_call.reasoning_signature";
pub const TOOL_CALL_ARGUMENTS: &str = "tool_call.function.arguments";
pub const CONTENT_TYPE: &str = "message_content.type";
pub const CONTENT_TEXT: &str = "message_content.text";
pub const CONTENT_ID: &str = "message_content.id";
pub const CONTENT_SIGNATURE: &str = "message_content.signature";
pub const CONTENT_ENCRYPTED: &str = "message_content.encrypted_content";
pub const CONTENT_DATA: &str = "message_content.data";
pub const CONTENT_IMAGE: &str = "message_content.image";
pub const CONTENT_IMAGE_URL: &str = "message_content.image.image.url";
pub const CONTENT_AUDIO_URL: &str = "message_content.audio.audio.url";
pub const CONTENT_AUDIO_MIME: &str = "message_content.audio.audio.mime_type";

// OpenTelemetry
pub const ERROR_TYPE: &str = "error.type";
pub const EXCEPTION: &str = "exception";
pub const EXCEPTION_TYPE: &str = "exception.type";
pub const EXCEPTION_MESSAGE: &str = "exception.message";

// OpenTelemetry GenAI
pub const OPERATION: &str = "gen_ai.operation.name";
pub const PROVIDER: &str = "gen_ai.provider.name";
pub const CONVERSATION: &str = "gen_ai.conversation.id";
pub const GEN_AI_AGENT: &str = "gen_ai.agent.name";
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
pub const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
pub const REQUEST_TOP_P: &str = "gen_ai.request.top_p";
pub const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub const REQUEST_SEED: &str = "gen_ai.request.seed";
pub const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub const RESPONSE_ID: &str = "gen_ai.response.id";
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub const RESPONSE_FINISH: &str = "gen_ai.response.finish_reasons";
pub const RESPONSE_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
pub const USAGE_INPUT: &str = "gen_ai.usage.input_tokens";
pub const USAGE_OUTPUT: &str = "gen_ai.usage.output_tokens";
pub const USAGE_CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
pub const USAGE_CACHE_WRITE: &str = "gen_ai.usage.cache_creation.input_tokens";
pub const USAGE_REASONING: &str = "gen_ai.usage.reasoning.output_tokens";
pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub const TOOL_DEFINITIONS: &str = "gen_ai.tool.definitions";
pub const GEN_AI_TOOL: &str = "gen_ai.tool.name";
pub const GEN_AI_TOOL_TYPE: &str = "gen_ai.tool.type";
pub const GEN_AI_TOOL_DESCRIPTION: &str = "gen_ai.tool.description";
pub const GEN_AI_CALL_ID: &str = "gen_ai.tool.call.id";
pub const GEN_AI_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub const GEN_AI_CALL_RESULT: &str = "gen_ai.tool.call.result";

// OpenTelemetry MCP
pub const MCP_METHOD: &str = "mcp.method.name";
pub const MCP_PROTOCOL: &str = "mcp.protocol.version";

// OpenTelemetry JSON-RPC, RPC, network and server, as the MCP conventions require
pub const REQUEST_ID: &str = "jsonrpc.request.id";
pub const RPC_STATUS: &str = "rpc.response.status_code";
pub const NETWORK_TRANSPORT: &str = "network.transport";
pub const NETWORK_PROTOCOL: &str = "network.protocol.name";
pub const SERVER_ADDRESS: &str = "server.address";
pub const SERVER_PORT: &str = "server.port";

// ours
pub const RUN_ID: &str = "toolgate.run.id";
pub const RUN_OUTCOME: &str = "toolgate.run.outcome";
pub const RUN_RESUMED: &str = "toolgate.run.resumed";
pub const RUN_FORKED_FROM: &str = "toolgate.run.forked_from";
pub const ITERATION: &str = "toolgate.iteration";
pub const BUDGET_USED: &str = "toolgate.budget.used";
pub const BUDGET_MAX: &str = "toolgate.budget.max";
pub const MCP_CALLS: &str = "toolgate.mcp_calls";
pub const TOTAL_INPUT: &str = "toolgate.usage.input_tokens";
pub const TOTAL_OUTPUT: &str = "toolgate.usage.output_tokens";
pub const TOTAL_COST: &str = "toolgate.usage.cost_usd";
pub const RUN_INPUT: &str = "toolgate.run.usage.input_tokens";
pub const RUN_OUTPUT: &str = "toolgate.run.usage.output_tokens";
pub const RUN_COST: &str = "toolgate.run.usage.cost_usd";
pub const ATTEMPTS: &str = "toolgate.llm.attempts";
pub const INSTEAD_OF: &str = "toolgate.llm.instead_of";
pub const LEFT_OUT: &str = "toolgate.llm.messages_left_out";
pub const OFFER: &str = "toolgate.llm.offer";
pub const SERVER_KIND: &str = "toolgate.tool.server_kind";
pub const SERVER: &str = "toolgate.tool.server";
pub const ORIGINAL_NAME: &str = "toolgate.tool.original_name";
pub const PRIORITY: &str = "toolgate.tool.priority";
pub const PUT_ASIDE: &str = "toolgate.tool.put_aside";
pub const EDITED: &str = "toolgate.tool.arguments_edited";
pub const GUARDRAIL: &str = "toolgate.guardrail";
pub const WAIT_MS: &str = "toolgate.wait_ms";
pub const DECIDED: &str = "toolgate.approval.answer";
pub const DECIDED_BY: &str = "toolgate.approval.by";
pub const DECIDED_VIA: &str = "toolgate.approval.via";
pub const DECIDED_SCOPE: &str = "toolgate.approval.scope";
pub const DECIDED_RULE: &str = "toolgate.approval.rule";
pub const DIFFERS: &str = "toolgate.drift.differs";
pub const LISTED_SERVERS: &str = "toolgate.listing.servers";
pub const LISTED_TOOLS: &str = "toolgate.listing.tools";
pub const LISTED_LEFT_OUT: &str = "toolgate.listing.left_out";
