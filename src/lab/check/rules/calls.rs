//! Rules about the results of calls.

const ERRORS: Places = both("server/tools#error-handling");
const CALLING: Places = both("server/tools#calling-tools");
const OUTPUT: Places = both("server/tools#output-schema");
const RESULT: Places = both("server/tools#tool-result");
const PROGRESS: Places = (Some("basic/utilities/progress"), Some("basic/patterns/progress"));

rules! { Calls;
    CALL_CRASH = "call-crash", Error, "Exit because of a call", ERRORS,
        why: "The client loses all calls under way, and may repeat the call that caused it.",
        fix: "Catch the error of the call, and answer with `isError: true` and a text.";
    BAD_INPUT_CRASH = "bad-input-crash", Error, "Exit because of bad arguments", ERRORS,
        why: "Models send wrong arguments every day. A server that exits loses all calls under way.",
        fix: "Validate arguments against the inputSchema, and answer with `isError: true`.";
    CALL_UNANSWERED = "call-unanswered", Error, "Call without an answer", CALLING,
        why: "The agent waits until its time limit, and does not learn what happened.",
        fix: "Answer every call, with an error after a time limit of your own.";
    ARGUMENTS_UNVALIDATED = "arguments-unvalidated", Warning, "Bad arguments that succeed", (Some("server/tools#error-handling"), Some("server/tools#security-considerations")),
        why: "The call did something other than the model intended, and the model does not learn about it.",
        fix: "Validate arguments against the inputSchema, and answer with `isError: true` and what to correct.";
    UNKNOWN_TOOL_SUCCEEDS = "unknown-tool-succeeds", Error, "Unknown tool that succeeds", ERRORS,
        why: "A misspelled tool seems to work, so the model builds on a result that does not exist.",
        fix: "Answer calls of unknown tools with the error -32602.";
    ERROR_AS_SUCCESS = "error-as-success", Warning, "Error reported as success", ERRORS,
        why: "The text says that the call failed, but `isError` is not set. Agents, traces and retries treat it as a success. \
              This rule is a heuristic.",
        fix: "Set `isError: true` in results of failed calls.";
    SUCCESS_AS_ERROR = "success-as-error", Note, "Valid call that fails", ERRORS,
        why: "Arguments that fit the schema were refused. Either the schema lacks a rule, or the tool does not work. The \
              arguments were generated, so a value may not exist.",
        fix: "Declare the missing rule (format, enum, pattern, examples), or correct the tool.";
    RESULT_SCHEMA_MISMATCH = "result-schema-mismatch", Error, "Structured content that violates the outputSchema", OUTPUT,
        why: "Clients validate structured content and reject the result, so the call fails although it took effect.",
        fix: "Correct the result or the outputSchema.";
    STRUCTURED_MISSING = "structured-missing", Error, "outputSchema without structured content", OUTPUT,
        why: "A tool with an outputSchema has to return structured content. Clients reject the result.",
        fix: "Return `structuredContent`, or remove the outputSchema.";
    TEXT_MIRROR_MISSING = "text-mirror-missing", Warning, "Structured content without a text", both("server/tools#structured-content"),
        why: "Clients that do not read structured content give the model an empty result.",
        fix: "Return the same JSON in a text block as well.";
    CONTENT_BROKEN = "content-broken", Error, "Media that cannot be decoded", both("server/tools#image-content"),
        why: "Providers reject the whole request with an image that is not valid base64 or not of its mimeType.",
        fix: "Encode the bytes as base64 without a `data:` prefix, and name their real type.";
    CONTENT_TYPE_UNKNOWN = "content-type-unknown", Error, "Content of an unknown type", RESULT,
        why: "Strict SDKs reject the whole result; others drop the block.",
        fix: "Use text, image, audio, resource or resource_link.";
    RESULT_TOO_LARGE = "result-too-large", Warning, "Very large result", RESULT,
        why: "No model reads a result of this size, many clients limit a message to a few megabytes, and each byte takes \
              memory in every process on the way.",
        fix: "Return a part with a way to ask for more, or a resource link.";
    RESULT_SECRET = "result-secret", Warning, "Secret in a result", both("server/tools#security-considerations"),
        why: "Results are sent to model providers, and stored in transcripts and traces. This rule recognizes known formats \
              of keys, and values of the variables that the server was started with.",
        fix: "Remove credentials from results, and revoke those that were shown.";
    CANCEL_IGNORED = "cancel-ignored", Note, "Cancelled call that is answered", (Some("basic/utilities/cancellation"), Some("basic/patterns/cancellation")),
        why: "The work continues although no client waits for it.",
        fix: "Stop the work on notifications/cancelled, and send no answer.";
    PROGRESS_NOT_INCREASING = "progress-not-increasing", Error, "Progress that does not increase", PROGRESS,
        why: "The revision requires increasing values. Clients show a bar that jumps, or drop the notification.",
        fix: "Report a value that is larger than the one before.";
    PROGRESS_TOKEN_UNKNOWN = "progress-token-unknown", Error, "Progress under an unknown token", PROGRESS,
        why: "Clients drop the notification, or close the connection.",
        fix: "Use the progress token of the request, with its type, and only until its answer.";
    CONCURRENCY_ERRORS = "concurrency-errors", Warning, "Calls that fail when they run at the same time", CALLING,
        why: "Agents send several calls at once. The same call succeeds alone.",
        fix: "Protect shared state, and queue calls that cannot run in parallel.";
}
