//! Rules about the definitions of tools, and about what model providers accept of them.

const TOOL: Places = both("server/tools#tool");
const SCHEMAS: Places = both("basic#json-schema-usage");
const OUTPUT: Places = both("server/tools#output-schema");
const NAMES: Places = both("server/tools#tool-names");

rules! { Tools;
    INPUT_SCHEMA_MISSING = "input-schema-missing", Error, "Tool without an inputSchema", TOOL,
        why: "Most SDKs reject the whole list of tools because of one tool without an `inputSchema`.",
        fix: "Declare `inputSchema`; for a tool without parameters write {\"type\": \"object\", \"additionalProperties\": false}.";
    INPUT_SCHEMA_NOT_OBJECT = "input-schema-not-object", Error, "inputSchema that does not describe an object", TOOL,
        why: "Arguments are an object. SDKs and providers reject a schema whose root is not `\"type\": \"object\"`, some of them \
              with the whole list.",
        fix: "Write \"type\": \"object\" at the root, and the parameters below `properties`.";
    INPUT_SCHEMA_INVALID = "input-schema-invalid", Error, "inputSchema that is invalid in its dialect", SCHEMAS,
        why: "Clients that validate arguments cannot compile the schema, so every call of the tool fails.",
        fix: "Correct the keyword at the pointer; without `$schema` the dialect is 2020-12.";
    OUTPUT_SCHEMA_NOT_OBJECT = "output-schema-not-object", Error, "outputSchema that does not describe an object", OUTPUT,
        why: "Up to 2025-11-25 structured content is an object. SDKs reject a tool whose `outputSchema` has another type.",
        fix: "Wrap the value: {\"type\": \"object\", \"properties\": {\"result\": …}, \"required\": [\"result\"]}.";
    OUTPUT_SCHEMA_INVALID = "output-schema-invalid", Error, "outputSchema that is invalid in its dialect", OUTPUT,
        why: "Clients that validate results cannot compile the schema, so every result of the tool is rejected.",
        fix: "Correct the keyword at the pointer; without `$schema` the dialect is 2020-12.";
    SCHEMA_DIALECT_UNKNOWN = "schema-dialect-unknown", Warning, "Unknown dialect in $schema", SCHEMAS,
        why: "Clients guess how to read the schema, or reject it.",
        fix: "Use https://json-schema.org/draft/2020-12/schema, or leave `$schema` out.";
    SCHEMA_REF_UNRESOLVED = "schema-ref-unresolved", Error, "$ref without a target", SCHEMAS,
        why: "The schema cannot be compiled, so every call of the tool fails, and providers reject the request.",
        fix: "Copy the definition below `$defs` of the same schema, and correct the pointer.";
    SCHEMA_REF_REMOTE = "schema-ref-remote", Error, "$ref to another document", (Some("basic#json-schema-usage"), Some("basic#ref-resolution")),
        why: "Clients must not fetch schemas from the network. They reject the tool.",
        fix: "Copy the definition below `$defs` of the same schema.";
    SCHEMA_ROOT_UNION = "schema-root-union", Warning, "Alternatives at the root of an inputSchema", TOOL,
        why: "OpenAI and Anthropic reject a tool whose schema has `oneOf`, `anyOf` or `allOf` at its root, and many clients \
              send it unchanged: the whole request then fails.",
        fix: "Move the alternatives into one property, or list all parameters and state the combinations in the description.";
    REQUIRED_UNKNOWN = "required-unknown", Warning, "Required property that does not exist", TOOL,
        why: "Models do not see the property, leave it out, and every call fails validation.",
        fix: "Declare the property below `properties`, or remove it from `required`.";
    DEFAULT_MISMATCH = "default-mismatch", Warning, "Default that does not fit its schema", TOOL,
        why: "Clients and models send the default, and the server refuses it.",
        fix: "Correct the default, or the type of the parameter.";
    PARAMETER_UNDESCRIBED = "parameter-undescribed", Warning, "Parameters without a description", TOOL,
        why: "Models guess format and meaning from the name alone, which costs failed calls.",
        fix: "Describe format, unit and an example of each parameter in one sentence.";
    TOOL_NAME_INVALID = "tool-name-invalid", Warning, "Tool name outside of the specification", NAMES,
        why: "The specification recommends 1 to 128 letters, digits, `_`, `-` and `.`. Clients rename or drop other tools.",
        fix: "Use letters, digits and `_` only.";
    TOOL_NAME_TOO_LONG = "tool-name-too-long", Warning, "Tool name longer than 64 characters", NAMES,
        why: "Model providers accept 64 characters, and clients add the name of the server in front. Longer names are \
              truncated or refused.",
        fix: "Use at most 40 characters.";
    TOOL_NAME_NOT_PORTABLE = "tool-name-not-portable", Warning, "Tool name that providers refuse", NAMES,
        why: "OpenAI and Anthropic accept letters, digits, `_` and `-`. Clients that send the name unchanged get an error for \
              the whole request.",
        fix: "Use letters, digits and `_` only.";
    TOOL_DUPLICATE = "tool-duplicate", Error, "Tools with the same name", NAMES,
        why: "Clients keep one of them, and which one differs; providers reject a request with two tools of one name.",
        fix: "Give each tool a name of its own.";
    DESCRIPTION_DUPLICATE = "description-duplicate", Note, "Tools with the same description", TOOL,
        why: "Models cannot tell the tools apart, and choose by chance.",
        fix: "State in each description what distinguishes the tool.";
    DESCRIPTION_MISSING = "description-missing", Warning, "Tool without a description", TOOL,
        why: "Models choose tools by their descriptions. A tool without one is called rarely, or wrongly.",
        fix: "Describe in two or three sentences what the tool does, when to use it, and what it returns.";
    DESCRIPTION_TOO_LONG = "description-too-long", Warning, "Very long description", TOOL,
        why: "The description is part of every request to the model. Some clients truncate it, so its end is never read.",
        fix: "Keep the description below 2,000 characters; move reference text into a resource or another tool.";
    DESCRIPTION_INSTRUCTIONS = "description-instructions", Warning, "Hidden instructions in a description", both("server/tools#security-considerations"),
        why: "Text that orders the model to hide something, to ignore other instructions or to read files is how malicious \
              servers take over an agent. Scanners and reviewers block such a server. This rule is a heuristic.",
        fix: "Describe what the tool does, without commands to the model and without invisible characters.";
    ANNOTATION_TYPE = "annotation-type", Error, "Annotation of a wrong type", TOOL,
        why: "Strict SDKs reject the whole list; others ignore the hint, so a harmless tool needs approvals.",
        fix: "Use booleans for hints (true, not \"true\") and a text for the title.";
    ANNOTATION_CONTRADICTION = "annotation-contradiction", Warning, "Annotations that contradict each other", TOOL,
        why: "Clients decide by annotations which calls need approval. A read-only tool that is destructive is one of both.",
        fix: "Leave destructiveHint and idempotentHint out of read-only tools, or correct readOnlyHint.";
    ANNOTATION_NAME_MISMATCH = "annotation-name-mismatch", Warning, "Annotations that contradict the name", TOOL,
        why: "A tool called delete that claims to be read-only runs without approval in clients that trust annotations.",
        fix: "Set readOnlyHint to false for a tool that changes something, or rename the tool.";
    ANNOTATIONS_MISSING = "annotations-missing", Note, "Tools without annotations", TOOL,
        why: "Without readOnlyHint clients assume that a tool changes and destroys things, and ask for approval of every call.",
        fix: "Declare readOnlyHint, and for other tools destructiveHint and idempotentHint.";
    HEADER_INVALID = "x-mcp-header-invalid", Error, "Invalid x-mcp-header", (None, Some("server/tools#x-mcp-header")),
        why: "Clients of the revision 2026-07-28 must drop a tool with an invalid `x-mcp-header`.",
        fix: "Use a header name of letters, digits and `-`, once per tool, on a parameter of a simple type.";
    PROVIDER_REFUSES = "provider-refuses", Warning, "Tool that a provider refuses", TOOL,
        why: "The provider rejects the request with this tool. Clients that do not adapt schemas then fail with all tools.",
        fix: "Change the schema at the pointer.";
    PROVIDER_LOSES = "provider-loses", Note, "Rules that a provider does not understand", TOOL,
        why: "Clients remove these keywords for the provider, so the model does not see the rules and sends arguments that \
              fail validation.",
        fix: "State the rules in the descriptions of the parameters as well.";
    PROVIDER_NOT_STRICT = "provider-not-strict", Note, "Tools that OpenAI cannot bind strictly", NOWHERE,
        why: "Without a strict schema the provider does not guarantee arguments that fit.",
        fix: "Close objects (`additionalProperties: false`), require all properties, and allow null for optional ones.";
    TOKENS_HIGH = "tokens-high", Warning, "Tools that take many tokens", NOWHERE,
        why: "The list is part of every request to the model: it costs money, fills the context, and makes models choose worse.",
        fix: "Shorten descriptions and schemas, and merge or split tools so that each list is small.";
    TASK_SUPPORT_UNDECLARED = "task-support-undeclared", Warning, "Tool with tasks that the server does not declare", (Some("basic/utilities/tasks#tool-level-negotiation"), None),
        why: "Clients must not run a tool as a task if the capability `tasks.requests.tools.call` is missing. A tool that \
              requires a task can then never be called.",
        fix: "Declare the capability `tasks.requests.tools.call`, or remove `execution.taskSupport`.";
}
