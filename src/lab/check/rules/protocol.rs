//! Rules about JSON-RPC, the handshake and the lists of a server.

const VERSIONS: Places =
    (Some("basic/lifecycle#version-negotiation"), Some("basic/versioning#protocol-version-negotiation"));
const RESPONSES: Places = both("basic#responses");
const NOTIFICATIONS: Places = both("basic#notifications");
const ERRORS: Places = (Some("basic#responses"), Some("basic#error-codes"));
const INITIALIZE: Places = (Some("basic/lifecycle#initialization"), None);
const START: Places = (Some("basic/lifecycle#initialization"), Some("server/discover"));
const CAPABILITIES: Places = (Some("basic/lifecycle#capability-negotiation"), Some("server/discover"));
const LISTING: Places = both("server/tools#listing-tools");
const PAGINATION: Places = both("server/utilities/pagination");

rules! { Protocol;
    VERSION_ECHOED = "version-echoed", Error, "Unknown protocol version agreed to", VERSIONS,
        why: "The server repeated a version that does not exist. A client of a later revision would believe that the \
              server speaks it, and both would misread each other.",
        fix: "Answer an unknown version with the latest version that the server supports.";
    VERSION_UNSUPPORTED = "version-unsupported", Error, "Protocol version that does not exist", VERSIONS,
        why: "Clients disconnect from a server that selects a version which they do not know.",
        fix: "Answer with the requested version, or with the latest published one that the server supports.";
    VERSION_REFUSED = "version-refused", Warning, "Error in place of a protocol version", VERSIONS,
        why: "The server has to propose a version that it supports. With an error the client cannot tell whether another \
              version would work, and shows the server as failed.",
        fix: "Answer initialize with the latest version that the server supports, whatever the client requested.";
    MESSAGE_INVALID = "message-invalid", Error, "Message that violates the schema of its revision", both("basic#messages"),
        why: "SDKs parse messages into types. They reject a message with a wrong or missing member, and with it the whole \
              answer.",
        fix: "Correct the member at the pointer; the schema of the revision lists the members of each message.";
    ID_TYPE_CHANGED = "id-type-changed", Error, "Answer with an id of another type", RESPONSES,
        why: "A request with the id 1 is not answered by the id \"1\". Strict clients wait for the answer until their time \
              limit.",
        fix: "Return the id of the request unchanged, with its type.";
    ID_UNKNOWN = "id-unknown", Error, "Answer to no request", RESPONSES,
        why: "The client ignores the answer, and the request that it was meant for stays open.",
        fix: "Return the id of the request, and answer each request once.";
    RESPONSE_DUPLICATE = "response-duplicate", Error, "Request answered twice", RESPONSES,
        why: "The second answer has no request. Clients log an error, and some close the connection.",
        fix: "Answer each request once.";
    RESULT_AND_ERROR = "result-and-error", Error, "Answer with a result and an error", RESPONSES,
        why: "Clients disagree on whether such a request succeeded.",
        fix: "Send either `result` or `error`.";
    NOTIFICATION_ANSWERED = "notification-answered", Error, "Answer to a notification", NOTIFICATIONS,
        why: "A notification has no id and no answer. Clients report an answer without a request as an error.",
        fix: "Send nothing in reply to a message without an id.";
    PING_UNANSWERED = "ping-unanswered", Error, "Ping without an answer", (Some("basic/utilities/ping"), None),
        why: "Clients use ping to find out whether a server is alive, and restart it when it is silent.",
        fix: "Answer ping with an empty result.";
    METHOD_UNKNOWN_CRASH = "method-unknown-crash", Error, "Exit because of an unknown method", ERRORS,
        why: "Clients of later revisions send methods that a server does not know, `server/discover` among them.",
        fix: "Answer unknown methods with the error -32601.";
    METHOD_UNKNOWN_UNANSWERED = "method-unknown-unanswered", Error, "Unknown method without an answer", ERRORS,
        why: "The client waits until its time limit. A client that probes for a later revision delays every start by it.",
        fix: "Answer unknown methods with the error -32601.";
    METHOD_UNKNOWN_SUCCEEDS = "method-unknown-succeeds", Error, "Unknown method answered with a result", ERRORS,
        why: "A client believes that the server supports the method, and misreads what follows.",
        fix: "Answer unknown methods with the error -32601.";
    METHOD_UNKNOWN_CODE = "method-unknown-code", Warning, "Unknown method with another error code", ERRORS,
        why: "Clients recognize an unsupported method by the code -32601. With another code they treat the server as broken.",
        fix: "Use the code -32601 (method not found).";
    EARLY_REQUEST_CRASH = "early-request-crash", Error, "Exit because of a request before initialize", INITIALIZE,
        why: "A request that arrives too early should be refused. A server that exits is reported as failed.",
        fix: "Answer requests before initialize with an error.";
    EARLY_REQUEST_UNANSWERED = "early-request-unanswered", Note, "Request before initialize without an answer", INITIALIZE,
        why: "A client that sent a request too early waits until its time limit.",
        fix: "Answer requests before initialize with an error.";
    DISCOVER_CRASH = "discover-crash", Error, "Exit because of server/discover", START,
        why: "Clients of the revision 2026-07-28 send server/discover first. They have to start a server that exits twice.",
        fix: "Answer unknown methods with the error -32601, also before initialize.";
    DISCOVER_UNANSWERED = "discover-unanswered", Warning, "server/discover without an answer", START,
        why: "Clients of the revision 2026-07-28 send server/discover first, and wait for their time limit before they fall \
              back to initialize.",
        fix: "Answer unknown methods with the error -32601, also before initialize.";
    VERSION_ERROR_CODE = "version-error-code", Warning, "Unsupported version with another error code", (None, Some("basic/versioning#protocol-version-negotiation")),
        why: "Clients read the supported versions from the error -32022. With another error they cannot continue.",
        fix: "Answer a request of an unsupported version with the error -32022, and list the versions in `data.supported`.";
    CAPABILITY_UNDECLARED = "capability-undeclared", Error, "Feature that is not declared", CAPABILITIES,
        why: "Clients request only what a server declares, so its users never see the feature.",
        fix: "Declare the capability in the answer to initialize or server/discover.";
    CAPABILITY_UNIMPLEMENTED = "capability-unimplemented", Error, "Declared feature that is missing", CAPABILITIES,
        why: "Clients request what a server declares, and report the error to their users.",
        fix: "Implement the list method of the capability, or do not declare it.";
    LIST_CHANGED_UNDECLARED = "list-changed-undeclared", Warning, "Change notification that is not declared", both("server/tools#capabilities"),
        why: "Clients that trust the capability ignore the notification and keep the old list.",
        fix: "Declare `listChanged: true` in the capability, or do not send the notification.";
    LOG_UNDECLARED = "log-undeclared", Warning, "Log message without the logging capability", (Some("server/utilities/logging#capabilities"), Some("server/utilities/logging")),
        why: "The revision requires the capability for log messages. Clients drop messages that they do not expect.",
        fix: "Declare the capability `logging`, or write to stderr.";
    NOTIFICATION_UNKNOWN = "notification-unknown", Note, "Notification that the revision does not have", NOTIFICATIONS,
        why: "Clients ignore it. Notifications of an extension are fine if the client announced it.",
        fix: "Send it only to clients that announced the extension.";
    REQUEST_UNINVITED = "request-uninvited", Error, "Request that the client cannot answer", (Some("basic/lifecycle#capability-negotiation"), Some("basic/patterns/mrtr")),
        why: "The client announced no such capability, so it refuses the request. A server that depends on the answer fails.",
        fix: "Check the client's capabilities before sending roots/list, sampling/createMessage or elicitation/create.";
    LIST_FAILED = "list-failed", Error, "List without a usable answer", LISTING,
        why: "Clients show the server without tools, or as failed.",
        fix: "Answer the request with the list.";
    LIST_ENDLESS = "list-endless", Error, "Pages without an end", PAGINATION,
        why: "Clients read pages until one has no `nextCursor`. A repeated cursor makes them loop until memory or time ends.",
        fix: "Leave `nextCursor` out on the last page, and return another cursor for each page.";
    LIST_UNSTABLE = "list-unstable", Warning, "Order of tools that changes", LISTING,
        why: "A list in another order is another prompt: providers' prompt caches do not apply, and each request costs more.",
        fix: "Sort the tools, for example by name.";
    SLOW_LIST = "slow-list", Warning, "Slow list of tools", LISTING,
        why: "Clients list tools at each start and after each change, and users wait for it.",
        fix: "Build the list once, and keep requests to other services out of it.";
    CURSOR_UNCHECKED = "cursor-unchecked", Note, "Unknown cursor accepted", PAGINATION,
        why: "A client whose cursor expired reads the first page again and believes it is the next one.",
        fix: "Answer an unknown cursor with the error -32602.";
    ERAS_DIFFER = "eras-differ", Warning, "Other tools in another revision", VERSIONS,
        why: "Users see other tools depending on the revision that their client speaks.",
        fix: "Serve both revisions from the same registry of tools.";
}
