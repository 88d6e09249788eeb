//! Rules about the results of calls.

const CALLING: Option<&str> = Some("server/tools#calling-tools");
const RESULT: Option<&str> = Some("server/tools#tool-result");
const ERRORS: Option<&str> = Some("server/tools#error-handling");
const STRUCTURED: Option<&str> = Some("server/tools#structured-content");
const OUTPUT: Option<&str> = Some("server/tools#output-schema");
const SECURITY: Option<&str> = Some("server/tools#security-considerations");
const CANCEL: Option<&str> = Some("basic/utilities/cancellation");
const CANCEL_MODERN: Option<&str> = Some("basic/patterns/cancellation");
const PROGRESS: Option<&str> = Some("basic/utilities/progress");
const PROGRESS_MODERN: Option<&str> = Some("basic/patterns/progress");

rules! {
    CALL_CRASH = "call-crash", Calls, Error, "Exit because of a call", ERRORS, ERRORS,
        why: "The client loses all calls under way, and may repeat the call that caused it.",
        fix: "Catch the error of the call, and answer with `isError: true` and a text.";
    BAD_INPUT_CRASH = "bad-input-crash", Calls, Error, "Exit because of bad arguments", ERRORS, ERRORS,
        why: "Models send wrong arguments every day. A server that exits loses all calls under way.",
        fix: "Validate arguments against the inputSchema, and answer with `isError: true`.";
    CALL_UNANSWERED = "call-unanswered", Calls, Error, "Call without an answer", CALLING, CALLING,
        why: "The agent waits until its time limit, and does not learn what happened.",
        fix: "Answer every call, with an error after a time limit of your own.";
    ARGUMENTS_UNVALIDATED = "arguments-unvalidated", Calls, Warning, "Bad arguments that succeed", ERRORS, SECURITY,
        why: "The call did something other than the model intended, and the model does not learn about it.",
        fix: "Validate arguments against the inputSchema, and answer with `isError: true` and what to correct.";
    UNKNOWN_TOOL_SUCCEEDS = "unknown-tool-succeeds", Calls, Error, "Unknown tool that succeeds", ERRORS, ERRORS,
        why: "A misspelled tool seems to work, so the model builds on a result that does not exist.",
        fix: "Answer calls of unknown tools with the error -32602.";
    ERROR_AS_SUCCESS = "error-as-success", Calls, Warning, "Error reported as success", ERRORS, ERRORS,
        why: "The text says that the call failed, but `isError` is not set. Agents, traces and retries treat it as a success. \
              This rule is a heuristic.",
        fix: "Set `isError: true` in results of failed calls.";
    SUCCESS_AS_ERROR = "success-as-error", Calls, Note, "Valid call that fails", ERRORS, ERRORS,
        why: "Arguments that fit the schema were refused. Either the schema lacks a rule, or the tool does not work. The \
              arguments were generated, so a value may not exist.",
        fix: "Declare the missing rule (format, enum, pattern, examples), or correct the tool.";
    RESULT_SCHEMA_MISMATCH = "result-schema-mismatch", Calls, Error, "Structured content that violates the outputSchema", OUTPUT, OUTPUT,
        why: "Clients validate structured content and reject the result, so the call fails although it took effect.",
        fix: "Correct the result or the outputSchema.";
    STRUCTURED_MISSING = "structured-missing", Calls, Error, "outputSchema without structured content", OUTPUT, OUTPUT,
        why: "A tool with an outputSchema has to return structured content. Clients reject the result.",
        fix: "Return `structuredContent`, or remove the outputSchema.";
    TEXT_MIRROR_MISSING = "text-mirror-missing", Calls, Warning, "Structured content without a text", STRUCTURED, STRUCTURED,
        why: "Clients that do not read structured content give the model an empty result.",
        fix: "Return the same JSON in a text block as well.";
    CONTENT_BROKEN = "content-broken", Calls, Error, "Media that cannot be decoded", Some("server/tools#image-content"), Some("server/tools#image-content"),
        why: "Providers reject the whole request with an image that is not valid base64 or not of its mimeType.",
        fix: "Encode the bytes as base64 without a `data:` prefix, and name their real type.";
    CONTENT_TYPE_UNKNOWN = "content-type-unknown", Calls, Error, "Content of an unknown type", RESULT, RESULT,
        why: "Strict SDKs reject the whole result; others drop the block.",
        fix: "Use text, image, audio, resource or resource_link.";
    RESULT_TOO_LARGE = "result-too-large", Calls, Warning, "Very large result", RESULT, RESULT,
        why: "No model reads a result of this size, many clients limit a message to a few megabytes, and each byte takes \
              memory in every process on the way.",
        fix: "Return a part with a way to ask for more, or a resource link.";
    RESULT_SECRET = "result-secret", Calls, Warning, "Secret in a result", SECURITY, SECURITY,
        why: "Results are sent to model providers, and stored in transcripts and traces. This rule recognizes known formats \
              of keys, and values of the variables that the server was started with.",
        fix: "Remove credentials from results, and revoke those that were shown.";
    CANCEL_IGNORED = "cancel-ignored", Calls, Note, "Cancelled call that is answered", CANCEL, CANCEL_MODERN,
        why: "The work continues although no client waits for it.",
        fix: "Stop the work on notifications/cancelled, and send no answer.";
    PROGRESS_NOT_INCREASING = "progress-not-increasing", Calls, Error, "Progress that does not increase", PROGRESS, PROGRESS_MODERN,
        why: "The revision requires increasing values. Clients show a bar that jumps, or drop the notification.",
        fix: "Report a value that is larger than the one before.";
    PROGRESS_TOKEN_UNKNOWN = "progress-token-unknown", Calls, Error, "Progress under an unknown token", PROGRESS, PROGRESS_MODERN,
        why: "Clients drop the notification, or close the connection.",
        fix: "Use the progress token of the request, with its type, and only until its answer.";
    CONCURRENCY_ERRORS = "concurrency-errors", Calls, Warning, "Calls that fail when they run at the same time", CALLING, CALLING,
        why: "Agents send several calls at once. The same call succeeds alone.",
        fix: "Protect shared state, and queue calls that cannot run in parallel.";
}
