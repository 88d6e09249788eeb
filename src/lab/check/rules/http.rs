//! Rules about streamable HTTP.

const SECURITY: Places =
    (Some("basic/transports#security-warning"), Some("basic/transports/streamable-http#security--endpoint"));
const SENDING: Places = (
    Some("basic/transports#sending-messages-to-the-server"),
    Some("basic/transports/streamable-http#sending-messages"),
);
const SESSIONS: Places = (Some("basic/transports#session-management"), None);

rules! { Http;
    HTTP_ORIGIN = "http-origin", Error, "Request of a foreign web page accepted", SECURITY,
        why: "A web page that the user visits can call the tools of a server on the user's machine (DNS rebinding). The \
              header `Origin` reveals such a request.",
        fix: "Answer requests with an `Origin` that is not allowed with HTTP 403.";
    HTTP_HOST = "http-host", Warning, "Request for a foreign host accepted", SECURITY,
        why: "With DNS rebinding a web page reaches a server on localhost under the page's own host name. The header \
              `Host` reveals it.",
        fix: "Answer requests for another host than localhost and the server's own names with HTTP 403.";
    HTTP_ACCEPT = "http-accept", Warning, "Event stream for a client that accepts JSON only", SENDING,
        why: "The client said that it cannot read event streams, and gets one.",
        fix: "Answer with JSON, or with HTTP 406.";
    HTTP_CONTENT_TYPE = "http-content-type", Error, "Answer of another content type", SENDING,
        why: "Clients read `application/json` and `text/event-stream`. They reject everything else as an answer of a proxy.",
        fix: "Set the content type to application/json or text/event-stream.";
    HTTP_VERSION_HEADER = "http-version-header", Error, "Unsupported version in a header accepted", (Some("basic/transports#protocol-version-header"), Some("basic/transports/streamable-http#server-validation")),
        why: "The header names the revision in which the client reads the answer. A server that ignores it answers in another.",
        fix: "Answer an unsupported `MCP-Protocol-Version` with HTTP 400.";
    HTTP_HEADER_MISMATCH = "http-header-mismatch", Error, "Headers that contradict the body accepted", (None, Some("basic/transports/streamable-http#server-validation")),
        why: "Proxies authorize and route by the headers `Mcp-Method`, `Mcp-Name` and `Mcp-Param-…`. A request whose body \
              says something else passes their checks.",
        fix: "Answer a request whose headers differ from its body with HTTP 400 and the error -32020.";
    HTTP_SESSION_UNKNOWN = "http-session-unknown", Error, "Unknown session without HTTP 404", SESSIONS,
        why: "A client recognizes by HTTP 404 that its session ended, for example after a restart, and begins a new one. \
              With another answer it fails until its user restarts it.",
        fix: "Answer requests of an unknown or ended session with HTTP 404.";
    HTTP_DELETE = "http-delete", Warning, "Session that cannot be ended", SESSIONS,
        why: "Clients end their session with DELETE. A session that stays takes memory until the server restarts.",
        fix: "End the session on DELETE, or answer it with HTTP 405; afterwards answer its requests with HTTP 404.";
    HTTP_MALFORMED_JSON = "http-malformed-json", Warning, "Malformed body without HTTP 400", SENDING,
        why: "A client or a proxy that truncated a request gets an answer that does not say so.",
        fix: "Answer a body that is not JSON with HTTP 400 and the error -32700.";
    HTTP_METHOD_UNKNOWN = "http-method-unknown", Warning, "Unknown method without HTTP 404", (None, Some("basic/transports/streamable-http#sending-messages")),
        why: "Since 2026-07-28 the HTTP status tells proxies and clients that a method does not exist.",
        fix: "Answer unknown methods with HTTP 404 and the error -32601.";
    HTTP_VERB = "http-verb", Warning, "HTTP method that is not refused", SENDING,
        why: "The endpoint supports POST, and in earlier revisions GET and DELETE. Another answer than HTTP 405 misleads \
              clients that probe for what is supported.",
        fix: "Answer other HTTP methods with HTTP 405.";
    HTTP_NOTIFICATION = "http-notification", Warning, "Notification without HTTP 202", SENDING,
        why: "Clients treat another status than 202 as a refusal, or wait for a body.",
        fix: "Answer notifications with HTTP 202 and without a body.";
    HTTP_GET = "http-get", Warning, "GET without an event stream", (Some("basic/transports#listening-for-messages-from-the-server"), None),
        why: "Clients open a stream for notifications with GET. An answer that is neither a stream nor HTTP 405 looks like a \
              broken server. The stateless revision has no such stream.",
        fix: "Answer GET with an event stream, or with HTTP 405; in the stateless revision with HTTP 405.";
    HTTP_SERVER_ERROR = "http-server-error", Error, "HTTP 5xx for a valid request", SENDING,
        why: "Clients and proxies repeat requests that failed with 5xx, or report the server as unavailable.",
        fix: "Answer with a JSON-RPC error, and keep 5xx for an outage.";
    HTTP_AUTH_METADATA = "http-auth-metadata", Error, "Authorization without metadata", (Some("basic/authorization#authorization-server-location"), Some("basic/authorization")),
        why: "Clients find the login by the protected resource metadata (RFC 9728). Without it users cannot log in.",
        fix: "Send `WWW-Authenticate: Bearer resource_metadata=\"…\"` with HTTP 401, and serve that document.";
}
