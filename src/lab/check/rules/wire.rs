//! Rules about the process of a server and about the bytes that it writes.

const START: Places = (Some("basic/lifecycle#initialization"), Some("server/discover"));
const STDIO: Places = (Some("basic/transports#stdio"), Some("basic/transports/stdio"));
const SHUTDOWN: Places = (Some("basic/lifecycle#shutdown"), Some("basic/transports/stdio#shutdown"));

rules! { Wire;
    SERVER_NOT_STARTED = "server-not-started", Error, "Server that does not start", START,
        why: "Clients show the server as failed, with no tools. The last lines of stderr usually name the cause.",
        fix: "Start the command in a terminal, correct the error that it prints, and answer the first request.";
    SLOW_INITIALIZE = "slow-initialize", Warning, "Slow answer to the first request", START,
        why: "Clients limit the time for a start, some to 10 seconds. A server that loads data or connects to a service \
              before its first answer is often reported as failed, above all on a busy machine.",
        fix: "Answer initialize first, and load or connect when the first call needs it.";
    STDOUT_NOISE = "stdout-noise", Error, "Output on stdout that is not a message", STDIO,
        why: "stdout carries messages only. Strict clients close the connection at the first other line (`Unexpected \
              token … is not valid JSON`), and tolerant ones may lose the message on the same line.",
        fix: "Write logs to stderr: `console.error` in Node, `file=sys.stderr` for `print` in Python.";
    STDOUT_BANNER = "stdout-banner", Error, "Banner on stdout before the first message", STDIO,
        why: "A greeting before the first answer makes strict clients close the connection during the handshake, so that \
              the server never works with them.",
        fix: "Write the banner to stderr, or leave it out when stdout is not a terminal.";
    INVALID_UTF8 = "invalid-utf8", Error, "Bytes on stdout that are not UTF-8", STDIO,
        why: "Messages are UTF-8. Clients reject a line in another encoding, or read wrong characters.",
        fix: "Set the encoding of stdout to UTF-8 (`PYTHONIOENCODING=utf-8`, `chcp 65001`, or in code).";
    BYTE_ORDER_MARK = "byte-order-mark", Error, "Byte order mark before a message", STDIO,
        why: "Most JSON parsers reject a text that begins with a byte order mark, so the first message is lost.",
        fix: "Write UTF-8 without a byte order mark.";
    JSON_MALFORMED = "json-malformed", Error, "Message that is not valid JSON", STDIO,
        why: "A client cannot read the message and waits for the answer until its time limit.",
        fix: "Write messages with a JSON library, each completely and with one write.";
    JSON_MULTILINE = "json-multiline", Error, "Message on several lines", STDIO,
        why: "The line feed ends a message on stdio. Clients read each line of an indented message as a broken one.",
        fix: "Serialize messages without indentation.";
    JSON_NAN = "json-nan", Error, "NaN or Infinity in a message", STDIO,
        why: "JSON has no NaN and no Infinity. Clients reject the whole message, so a call with such a number seems to hang.",
        fix: "Send null or a text in place of such a number (`json.dumps(…, allow_nan=False)` in Python finds them).";
    JSON_LONE_SURROGATE = "json-lone-surrogate", Error, "Half of a character in a message", STDIO,
        why: "An escape like `\\ud83d` without its second half is no Unicode text. Strict parsers reject the whole \
              message. The usual cause is a text cut in the middle of an emoji.",
        fix: "Cut texts between characters, and replace unpaired surrogates before sending.";
    JSON_DUPLICATE_KEY = "json-duplicate-key", Warning, "Member that a message has twice", both("basic#messages"),
        why: "Parsers disagree on which of the two values counts.",
        fix: "Write each member of an object once.";
    MESSAGE_TOO_LARGE = "message-too-large", Error, "Message of more than 64 MiB", STDIO,
        why: "Clients limit the size of a message, many to 16 MiB or less. They drop a larger one and wait for the answer \
              until their time limit, or close the connection.",
        fix: "Return large data in parts or as a resource link, and end each message with a line feed.";
    IGNORES_END_OF_INPUT = "ignores-end-of-input", Warning, "Server that keeps running when its input ends", SHUTDOWN,
        why: "A client ends a server by closing its stdin. A server that keeps running has to be killed, which takes the \
              client seconds at every end, and it stays behind when the client crashes.",
        fix: "Exit when stdin ends (`process.stdin.on('end', …)` in Node).";
    IGNORES_SIGTERM = "ignores-sigterm", Error, "Server that never exits", SHUTDOWN,
        why: "Neither the end of its input nor SIGTERM ends the server. Only SIGKILL does, without a chance to clean up.",
        fix: "Exit on SIGTERM, and in a container pass the signal on (`exec`, or `tini`).";
    SECOND_START_FAILS = "second-start-fails", Error, "Server that starts only once at a time", STDIO,
        why: "Users run several clients at the same time, and each starts its own process. A fixed port or a lock makes \
              the second one fail.",
        fix: "Take a free port, and lock only what two processes cannot share.";
    SERVER_CRASHED = "server-crashed", Error, "Server that exits during a session", STDIO,
        why: "The client loses all calls under way, and everything that the process held in memory.",
        fix: "Catch the error where it occurs and answer the request with it.";
    MEMORY_HIGH = "memory-high", Note, "Large memory of an idle server", NOWHERE,
        why: "Users start several servers, each in its own process, for every client.",
        fix: "Load models and data when the first call needs them.";
}
