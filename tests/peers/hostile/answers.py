"""Malformed answers: wrong bytes in place of an answer, over each transport, in each protocol version, at each moment."""

import json

from peer import encoded
from situation import Situation, answers, fails, misfits, times_out, tool_error, lists

UNREADABLE = r"read|JSON|answer|result|message|id\b"


def swapped(old, new):
    """The correct answer with some bytes replaced."""

    def build(exchange):
        data = encoded(exchange.answer(exchange.result()))
        assert old in data, (old, data)
        return data.replace(old, new, 1)

    return build


def text(new):
    """The text of the answer, or the description of a listed tool, as these raw bytes."""

    def build(exchange):
        method = exchange.message["method"]
        old = {"tools/call": b'"fine"', "tools/list": b'"Answers with fine."'}.get(method, b'"version":"0"')
        put = b'"version":"' + new + b'"' if old.startswith(b'"version') else b'"' + new + b'"'
        return swapped(old, put)(exchange)

    return build


def member(raw):
    """One more member of the result."""
    return lambda exchange: swapped(b'"result":{', b'"result":{' + raw + b",")(exchange)


def envelope(**changes):
    """The envelope with some members replaced, or left out where the value is ABSENT."""

    def build(exchange):
        message = {**exchange.answer(exchange.result()), **changes}
        return encoded({name: value for name, value in message.items() if value is not ABSENT})

    return build


def earlier(exchange):
    """The correct answer with the id of the list request."""
    return encoded({**exchange.answer(exchange.result()), "id": exchange.peer.ids["tools/list"]})


ABSENT = object()


def refusal(error, **changes):
    def build(exchange):
        message = {"jsonrpc": "2.0", "id": exchange.id, "error": error, **changes}
        return encoded({name: value for name, value in message.items() if value is not ABSENT})

    return build


def result(value):
    """Another result; a function receives the exchange."""
    return lambda exchange: encoded(exchange.answer(exchange.dressed(value) if isinstance(value, dict) else value))


def bare(value):
    return lambda exchange: encoded(exchange.answer(value))


def whole(change):
    """All bytes of the correct answer, changed."""
    return lambda exchange: change(encoded(exchange.answer(exchange.result())))


def indented(data):
    return json.dumps(json.loads(data), indent=2).encode()


def deep(levels):
    return b'"deep":' + b"[" * levels + b"]" * levels


def around(before=(), after=()):
    """Other messages before and after the correct one, each in its own frame. Only where a transport has several."""

    def act(exchange):
        for build in before:
            exchange.more(build(exchange))
        exchange.more(encoded(exchange.answer(exchange.result())))
        for build in after:
            exchange.more(build(exchange))
        finish = getattr(exchange, "finish", None)
        if finish:
            finish()

    return act


FINE = answers("fine")
# The bytes are unambiguous.
ONE_MEANING = (FINE,)
# No specification defines their meaning: an answer with the readable parts is good, and so is a failure with the
# reason.
EITHER = (answers(""), fails(UNREADABLE), misfits())
FAILS = (fails(UNREADABLE),)
# On stdio a line that looks like a log line is not an answer; over HTTP it is the response.
NOISE = (fails(), times_out(r"stdout|neither an answer"))

ISSUE = "issue 17, item 8"
RPC = "JSON-RPC 2.0, section 5"

# name -> (bytes, endings for a call, source). The fault lies below the level of MCP: every transport and moment has
# it.
WIRE = {
    "a lone high surrogate in its text": (text(b"fine \\ud83d"), ONE_MEANING, ISSUE),
    "a lone low surrogate in its text": (text(b"\\ude00 fine"), ONE_MEANING, ISSUE),
    "surrogates in the wrong order": (text(b"fine \\ude00\\ud83d"), ONE_MEANING, ISSUE),
    "a lone surrogate in the name of an unknown member": (member(b'"\\ud83d":1'), ONE_MEANING, ISSUE),
    "a surrogate pair, escaped": (text(b"fine \\ud83d\\ude00"), (answers("fine \N{GRINNING FACE}|fine .ud83d.ude00"),), ""),
    "an invalid UTF-8 byte": (text(b"fine \xff"), EITHER, ""),
    "Latin-1": (text("fine café".encode("latin-1")), EITHER, ISSUE),
    "a UTF-8 sequence that breaks off": (text(b"fine \xe2\x82"), EITHER, ""),
    "surrogates encoded as UTF-8": (text(b"fine \xed\xa0\xbd\xed\xb8\x80"), EITHER, ""),
    "UTF-16": (whole(lambda data: data.decode().encode("utf-16-le")), NOISE, ""),
    "1e400": (member(b'"n":1e400'), EITHER, ISSUE),
    "NaN": (member(b'"n":NaN'), EITHER, ISSUE),
    "Infinity": (member(b'"n":Infinity'), EITHER, ISSUE),
    "-Infinity": (member(b'"n":-Infinity'), EITHER, ISSUE),
    "-0": (member(b'"n":-0'), ONE_MEANING, "JSON"),
    "a number that underflows": (member(b'"n":1e-400'), ONE_MEANING, "JSON"),
    "an integer of 20 digits": (member(b'"n":36893488147419103232'), ONE_MEANING, "JSON"),
    "an integer of 400 digits": (member(b'"n":' + b"9" * 400), EITHER, ""),
    "100 levels of nesting": (member(deep(100)), EITHER, ""),
    "10,000 levels of nesting": (member(deep(10_000)), EITHER, ISSUE),
    "1,000,000 levels of nesting": (member(deep(1_000_000)), EITHER, ISSUE),
    "10,000 levels that are never closed": (whole(lambda data: data[:-1] + b',"x":' + b"[" * 10_000), FAILS, ISSUE),
    "a result and an error": (envelope(error={"code": -32000, "message": "both"}), FAILS, RPC),
    "neither a result nor an error": (envelope(result=ABSENT), FAILS, RPC),
    "the id null": (envelope(id=None), EITHER, "issue 17, item 7"),
    "no id": (envelope(id=ABSENT), EITHER, ISSUE),
    "an error under the id null": (refusal({"code": -32000, "message": "overloaded"}, id=None), (fails("overloaded"),), RPC),
    "an error without an id": (refusal({"code": -32000, "message": "overloaded"}, id=ABSENT), (fails("overloaded"),), "issue 17, item 7"),
    "an error under the id server-error": (refusal({"code": -32000, "message": "overloaded"}, id="server-error"),
                                           (fails("overloaded"),), "issue 17, item 7"),
    "its id as text": (lambda exchange: encoded({**exchange.answer(exchange.result()), "id": str(exchange.id)}), EITHER, ISSUE),
    "its id as a float": (lambda exchange: encoded({**exchange.answer(exchange.result()), "id": float(exchange.id)}), EITHER, ""),
    "an object as its id": (envelope(id={"n": 1}), EITHER, ""),
    "no jsonrpc": (envelope(jsonrpc=ABSENT), EITHER, ISSUE),
    "jsonrpc 1.0": (envelope(jsonrpc="1.0"), EITHER, ""),
    "jsonrpc as a number": (envelope(jsonrpc=2.0), EITHER, ""),
    "jsonrpc null": (envelope(jsonrpc=None), EITHER, ""),
    "a batch of one": (whole(lambda data: b"[" + data + b"]"), ONE_MEANING, "MCP 2025-03-26: MUST receive batches"),
    "a batch with a notification": (whole(lambda data: b'[{"jsonrpc":"2.0","method":"notifications/message","params":'
                                          b'{"level":"info","data":"x"}},' + data + b"]"), ONE_MEANING,
                                    "MCP 2025-03-26: MUST receive batches"),
    "an empty batch": (lambda exchange: b"[]", NOISE, ""),
    "a byte order mark": (whole(lambda data: b"\xef\xbb\xbf" + data), ONE_MEANING, ISSUE),
    "CRLF after it": (whole(lambda data: data + b"\r"), ONE_MEANING, "JSON whitespace"),
    "blanks and tabs around it": (whole(lambda data: b" \t " + data + b" \t "), ONE_MEANING, "JSON whitespace"),
    "a trailing comma": (whole(lambda data: data[:-1] + b",}"), EITHER, ""),
    "its second half missing": (whole(lambda data: data[:-20]), FAILS, ISSUE),
    "only its id and a comma": (lambda exchange: b'{"jsonrpc":"2.0","id":%d,' % exchange.id, FAILS, ISSUE),
    "a second message behind it": (whole(lambda data: data + b'{"jsonrpc":"2.0","method":"notifications/x"}'), EITHER, ""),
    "a comment": (whole(lambda data: data[:-1] + b"/* ok */}"), EITHER, ""),
    "single quotes": (lambda exchange: repr(exchange.answer(exchange.result())).encode(), (*NOISE, FINE), ""),
    "a raw tab in its text": (text(b"fine\tindeed"), EITHER, ""),
    "a raw NUL in its text": (text(b"fine\x00indeed"), EITHER, ""),
    "an escaped NUL in its text": (text(b"fine\\u0000indeed"), ONE_MEANING, "JSON"),
    "terminal escapes in its text": (text(b"fine\\u001b[31m\\u001b]0;x\\u0007"), ONE_MEANING, ""),
    "an invalid escape": (text(b"fine \\x"), EITHER, ""),
    "the same member twice": (whole(lambda data: data[:-1] + b',"id":1234567}'), (*EITHER, times_out()), ""),
    "unknown members": (envelope(extra={"a": [1]}, method_hint="x"), ONE_MEANING, "JSON-RPC"),
    "JSON within a JSON text": (whole(lambda data: json.dumps(data.decode()).encode()), (*NOISE, FINE), ""),
    "the JSON null": (lambda exchange: b"null", NOISE, ""),
    "HTML": (lambda exchange: b"<!DOCTYPE html><title>Sign in</title>", NOISE, ""),
    "a line of a log": (lambda exchange: b"2026-11-23 INFO all is well", NOISE, ""),
}

# The same, of the error object.
ERRORS = {
    "an error without a message": (refusal({"code": -32000}), (fails("-32000|message|error"),), ""),
    "an error without a code": (refusal({"message": "overloaded"}), (fails("overloaded"),), ""),
    "an error whose code is text": (refusal({"code": "E1", "message": "overloaded"}), (fails("overloaded"),), ""),
    "an error whose code is a float": (refusal({"code": -32000.0, "message": "overloaded"}), (fails("overloaded"),), ""),
    "an error whose code is a huge integer": (refusal({"code": 10**12, "message": "overloaded"}), (fails("overloaded"),), ""),
    "an error that is text": (refusal("overloaded"), (fails("overloaded"),), ""),
    "an error that is a list": (refusal(["overloaded"]), (fails("overloaded"),), ""),
    "an error null beside its result": (envelope(error=None), EITHER, "JSON-RPC 1.0"),
    "an error null alone": (refusal(None), FAILS, RPC),
    "an error whose message is an object": (refusal({"code": -32000, "message": {"why": "overloaded"}}), (fails("overloaded"),), ""),
    "an error with an empty message": (refusal({"code": -32000, "message": ""}), (fails("-32000"),), ""),
    "an error with terminal escapes": (refusal({"code": -32000, "message": "over\x1b[31mloaded"}), (fails("over.*loaded"),), ""),
    "an error with a message of 1 MB": (refusal({"code": -32000, "message": "overloaded " * 100_000}), (fails("overloaded"),), ""),
    "an error whose data is deep": (whole(lambda data: data.split(b'"result"')[0] + b'"error":{"code":-32000,"message":"overloaded",'
                                          b'"data":{' + deep(100) + b"}}}"), (fails("overloaded"),), ""),
}

BROKEN = (fails(), misfits())
PICTURE = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}


def content(*blocks, **more):
    return result({"content": list(blocks), **more})


# The result of a call is wrong. "mcp call does not exit 0 on broken content" is issue 17, item 11.
NOT_ZERO = "issue 17, item 11"
RESULTS = {
    "the result null": (bare(None), (fails(),), RPC),
    "the result a text": (bare("fine"), (fails(),), "MCP schema: Result is an object"),
    "the result a list": (bare([{"type": "text", "text": "fine"}]), (fails(),), "MCP schema: Result is an object"),
    "the result a number": (bare(7), (fails(),), "MCP schema: Result is an object"),
    "an empty result": (bare({}), (fails("content"),), "MCP schema: content is required"),
    "no content at all": (result({"content": []}), (answers(""),), "MCP schema"),
    "the content null": (result({"content": None}), BROKEN, NOT_ZERO),
    "the content a text": (result({"content": "fine"}), BROKEN, NOT_ZERO),
    "the content an object": (result({"content": {"type": "text", "text": "fine"}}), BROKEN, NOT_ZERO),
    "content that is null": (content(None), BROKEN, NOT_ZERO),
    "content that is text": (content("fine"), BROKEN, NOT_ZERO),
    "content without a type": (content({"text": "fine"}), BROKEN, NOT_ZERO),
    "content of an unknown type": (content({"type": "hologram", "data": "fine"}), (answers("hologram"), *BROKEN), ""),
    "a type that is a number": (content({"type": 1, "text": "fine"}), BROKEN, NOT_ZERO),
    "text content without text": (content({"type": "text"}), BROKEN, NOT_ZERO),
    "text content whose text is a number": (content({"type": "text", "text": 7}), BROKEN, NOT_ZERO),
    "text content whose text is null": (content({"type": "text", "text": None}), BROKEN, NOT_ZERO),
    "an empty text": (content({"type": "text", "text": ""}), (answers(""),), "MCP schema"),
    "an image with broken base64": (content({**PICTURE, "data": "!!!not base64!!!"}), BROKEN, NOT_ZERO),
    "an image without data": (content({"type": "image", "mimeType": "image/png"}), BROKEN, NOT_ZERO),
    "an image without a type of media": (content({"type": "image", "data": "iVBORw0KGgo="}), BROKEN, NOT_ZERO),
    "an image whose base64 has line breaks": (content({**PICTURE, "data": "iVBORw0K\r\nGgo="}), (answers("image"), *BROKEN), ""),
    "an image in URL-safe base64": (content({**PICTURE, "data": "_-_-"}), (answers("image"), *BROKEN), ""),
    "an image without padding": (content({**PICTURE, "data": "iVBORw0KGgo"}), (answers("image"), *BROKEN), ""),
    "an empty image": (content({**PICTURE, "data": ""}), (answers("image"), *BROKEN), ""),
    "an image with an odd type of media": (content({**PICTURE, "mimeType": "no type\r\nX: y"}), (answers(""), *BROKEN), ""),
    "a sound with broken base64": (content({"type": "audio", "mimeType": "audio/wav", "data": "%%%"}), BROKEN, NOT_ZERO),
    "a blob with broken base64": (content({"type": "resource", "resource": {"uri": "file:///a", "blob": "%%%"}}), BROKEN, NOT_ZERO),
    "a resource with neither text nor blob": (content({"type": "resource", "resource": {"uri": "file:///a"}}), BROKEN, NOT_ZERO),
    "a resource with text and blob": (content({"type": "resource", "resource": {"uri": "file:///a", "text": "a", "blob": "YQ=="}}),
                                      (answers(""), *BROKEN), ""),
    "a resource that is null": (content({"type": "resource", "resource": None}), BROKEN, NOT_ZERO),
    "a link that is no URI": (content({"type": "resource_link", "uri": "not a uri", "name": "a"}), (answers("not a uri"), *BROKEN), ""),
    "a link to a script": (content({"type": "resource_link", "uri": "javascript:alert(1)", "name": "a"}), (answers("javascript"), *BROKEN), ""),
    "a link with terminal escapes": (content({"type": "resource_link", "uri": "file:///\x1b[2J", "name": "a\x1b[2J"}),
                                     (answers(""), *BROKEN), ""),
    "a link of 1 MB": (content({"type": "resource_link", "uri": "file:///" + "a" * 1_000_000, "name": "a"}), (answers("aaa"), *BROKEN), ""),
    "a link without a name": (content({"type": "resource_link", "uri": "file:///a"}), (answers("file:///a"), *BROKEN), ""),
    "a link without a URI": (content({"type": "resource_link", "name": "a"}), BROKEN, NOT_ZERO),
    "annotations of the wrong type": (content({"type": "text", "text": "fine", "annotations": 7}), (answers("fine"), *BROKEN), ""),
    "10,000 pieces of content": (content(*[{"type": "text", "text": "fine"}] * 10_000), (answers("fine"),), ""),
    "isError as text": (content({"type": "text", "text": "fine"}, isError="true"), (fails("isError"), misfits("isError")), "MCP schema"),
    "isError as a number": (content({"type": "text", "text": "fine"}, isError=1), (fails("isError"), misfits("isError")), "MCP schema"),
    "isError null": (content({"type": "text", "text": "fine"}, isError=None), (answers("fine"), *BROKEN), ""),
    "isError and no content": (result({"content": [], "isError": True}), (tool_error(),), "MCP schema"),
    "isError with a reason": (content({"type": "text", "text": "no such order"}, isError=True), (tool_error("no such order"),), "MCP"),
    "structured content beside a schema that was not declared": (content({"type": "text", "text": "fine"}, structuredContent={"n": 1}),
                                                                 (answers("fine"),), "MCP"),
    "structured content that is text": (content({"type": "text", "text": "fine"}, structuredContent="fine"), (answers("fine"), *BROKEN), ""),
    "structured content null": (content({"type": "text", "text": "fine"}, structuredContent=None), (answers("fine"), *BROKEN), ""),
    "structured content with 10,000 members": (content({"type": "text", "text": "fine"},
                                                       structuredContent={f"m{n}": n for n in range(10_000)}), (answers("fine"),), ""),
    "a text of 40 MB": (lambda exchange: result({"content": [{"type": "text", "text": "fine" * 10_000_000}]})(exchange),
                        (answers("fine"), fails("MiB|long")), "docs/fault-server.md: everything is bounded"),
    "a text of 100 MB": (lambda exchange: result({"content": [{"type": "text", "text": "fine" * 25_000_000}]})(exchange),
                         (answers("fine"), fails("MiB|long")), "docs/fault-server.md: everything is bounded"),
}

# Of the tool `add`, which declares an outputSchema.
STRUCTURED = {
    "what its schema forbids": (content({"type": "text", "text": "three"}, structuredContent={"sum": "three"}), (misfits("sum"),)),
    "nothing structured": (content({"type": "text", "text": "three"}), (misfits("structuredContent"),)),
    "structured content null": (content({"type": "text", "text": "three"}, structuredContent=None), (misfits(),)),
    "a list where an object was declared": (content({"type": "text", "text": "three"}, structuredContent=[3]), (misfits(), fails())),
    "a float that is an integer": (content({"type": "text", "text": "three"}, structuredContent={"sum": 3.0}), (answers("three"),)),
    "what its schema asks for": (content({"type": "text", "text": "three"}, structuredContent={"sum": 3}), (answers("three"),)),
    "structured content and no text": (result({"structuredContent": {"sum": 3}}), (answers("sum"), fails("content"), misfits("content"))),
    "an error without structured content": (content({"type": "text", "text": "no such order"}, isError=True), (tool_error("no such order"),)),
}

# Only the stateless protocol version.
MODERN_RESULTS = {
    "no resultType": (lambda exchange: encoded(exchange.answer({"content": [{"type": "text", "text": "fine"}]})),
                      (answers("fine"), fails("resultType")), "MCP 2026-07-28: resultType is required"),
    "an unknown resultType": (lambda exchange: encoded(exchange.answer({"resultType": "later", "content": [{"type": "text", "text": "fine"}]})),
                              (fails("later|resultType"),), "MCP 2026-07-28: an unrecognized resultType is an error"),
    "a resultType that is a number": (lambda exchange: encoded(exchange.answer({"resultType": 1, "content": [{"type": "text", "text": "fine"}]})),
                                      (fails("resultType"),), "MCP 2026-07-28"),
    "questions that are not there": (lambda exchange: encoded(exchange.answer({"resultType": "input_required"})),
                                     (fails(), times_out()), "MCP 2026-07-28"),
    "questions that are a list": (lambda exchange: encoded(exchange.answer({"resultType": "input_required", "inputRequests": [1]})),
                                  (fails(),), "MCP 2026-07-28"),
    "a question of an unknown method": (lambda exchange: encoded(exchange.answer(
        {"resultType": "input_required", "inputRequests": {"a": {"method": "x/y", "params": {}}}})), (fails(),), "MCP 2026-07-28"),
    "a task without an id": (lambda exchange: encoded(exchange.answer({"resultType": "task"})), (fails(),), "MCP 2026-07-28, tasks"),
    "a _meta of the wrong type": (lambda exchange: encoded(exchange.answer(
        {"resultType": "complete", "_meta": 7, "content": [{"type": "text", "text": "fine"}]})), (answers("fine"), fails()), ""),
}

# Several messages for one request: only where the transport carries several.
SEQUENCES = {
    "its answer twice": (around(after=[lambda exchange: encoded(exchange.answer(exchange.called("again")))]), (FINE,)),
    "an answer under a foreign id first": (around(before=[envelope(id=987654)]), (FINE,)),
    "an answer under the id of the list first": (around(before=[earlier]), (FINE,)),
    "an answer without an id first": (around(before=[envelope(id=ABSENT)]), EITHER),
    "an error under the id null first": (around(before=[refusal({"code": -32600, "message": "id?"}, id=None)]), (FINE,)),
    "an error under the id server-error first": (around(before=[refusal({"code": -32600, "message": "id?"}, id="server-error")]), (FINE,)),
    "an unreadable answer without an id first": (around(before=[lambda exchange: b'{"jsonrpc":"2.0","result":{"a']), (FINE,)),
    "half a notification first": (around(before=[lambda exchange: b'{"jsonrpc":"2.0","method":"notif']), (FINE,)),
    "an empty batch first": (around(before=[lambda exchange: b"[]"]), (FINE,)),
    "an empty line first": (around(before=[lambda exchange: b""]), (FINE,)),
    "a log line first": (around(before=[lambda exchange: b"INFO 1 of 3"]), (FINE,)),
    "a JSON log line first": (around(before=[lambda exchange: b'{"level":"info","message":"x"}']), (FINE,)),
    "a JSON log line with an id first": (around(before=[lambda exchange: b'{"level":"info","id":%d,"message":"x"}' % exchange.id]), EITHER),
    "a log line after it": (around(after=[lambda exchange: b"INFO done"]), (FINE,)),
    "a batch of notifications first": (around(before=[lambda exchange: b'[{"jsonrpc":"2.0","method":"notifications/x"}]']), (FINE,)),
    "a request that is no JSON-RPC first": (around(before=[lambda exchange: b'{"method":"ping","id":77}']), (FINE,)),
}

# The rows of WIRE that the list and the handshake have as well: those that the message parser decides.
ELSEWHERE = ["a lone high surrogate in its text", "an invalid UTF-8 byte", "1e400", "NaN", "10,000 levels of nesting",
             "a result and an error", "neither a result nor an error", "the id null", "no id", "an error under the id null",
             "an error without an id", "an error under the id server-error", "its id as text", "no jsonrpc", "a batch of one",
             "a byte order mark", "its second half missing", "only its id and a comma", "a trailing comma", "HTML", "an empty batch",
             "-0", "100 levels of nesting"]
ERRORS_ELSEWHERE = ["an error without a message", "an error that is text", "an error null alone", "an error whose code is text"]

HOW = {"stdio": "over stdio", "json": "over HTTP", "sse": "in an event stream"}


def raw(build):
    return lambda exchange: exchange.raw(build(exchange))


def only_http(endings):
    """Over HTTP a response belongs to one request: an unreadable response fails it at once."""
    return tuple(ending for ending in endings if ending.label != "times out")


def endings_for(transport, endings):
    return endings if transport == "stdio" else only_http(endings)


def rows():
    for version, transport in [("2025-11-25", "stdio"), ("2025-11-25", "json"), ("2025-11-25", "sse"), ("2026-07-28", "json"), ("2026-07-28", "stdio")]:
        tag = HOW[transport] + (" without sessions" if version == "2026-07-28" else "")
        full = (version, transport) in [("2025-11-25", "stdio"), ("2025-11-25", "json")]
        for name, (build, good, source) in WIRE.items():
            if not full and name not in ELSEWHERE:
                continue
            revision = "2025-03-26" if "batch" in name and version == "2025-11-25" else None
            if "batch" in name and version == "2026-07-28":
                good = (*good, *EITHER)
            yield Situation(f"a call is answered with {name} {tag}", transport, {"tools/call": raw(build)}, endings_for(transport, good),
                            group="answers", version=version, source=source, revision=revision)
        if transport == "sse":
            continue
        errors = ERRORS if version == "2025-11-25" else {name: ERRORS[name] for name in ERRORS_ELSEWHERE}
        for name, (build, good, source) in errors.items():
            yield Situation(f"a call is answered with {name} {tag}", transport, {"tools/call": raw(build)}, good,
                            group="answers", version=version, source=source)
    for version, transport in [("2025-11-25", "stdio"), ("2026-07-28", "json")]:
        tag = HOW[transport] + (" without sessions" if version == "2026-07-28" else "")
        for name, (build, good, source) in RESULTS.items():
            big = "MB" in name and "text of" in name
            yield Situation(f"a call returns {name} {tag}", transport, {"tools/call": raw(build)}, good, group="results", version=version,
                            source=source, memory=700 if big else 300, slack=60 if big else 0, bound=120 if big else None,
                            # A debug build on a loaded machine reads some megabytes a second.
                            settings={"call_timeout_s": 60, "total_timeout_s": 90} if big else None)
        for name, (build, good) in STRUCTURED.items():
            yield Situation(f"a tool with a schema returns {name} {tag}", transport, {"tools/call": raw(build)}, good, group="results",
                            version=version, tool="add", source="MCP: structuredContent MUST conform; docs/mcp-servers.md, exit code 7")
    for transport in ("json", "stdio"):
        for name, (build, good, source) in MODERN_RESULTS.items():
            yield Situation(f"a call returns {name} {HOW[transport]}", transport, {"tools/call": raw(build)}, good, group="results",
                            version="2026-07-28", source=source, calls=40)
    for transport in ("stdio", "sse"):
        for name, (act, good) in SEQUENCES.items():
            if transport == "sse" and name.startswith(("an answer", "an error", "an unreadable answer")):
                good = (*EITHER, fails("id"))  # The stream belongs to one request, so an answer to another request is not its answer.
            yield Situation(f"a call gets {name} {HOW[transport]}", transport, {"tools/call": act}, good, group="answers")
        # Over HTTP a missing answer cannot arrive once the stream ended; over stdio it still may.
        for name, build in [("a foreign id", envelope(id=987654)), ("the id of the list", earlier)]:
            good = (fails(),) if transport == "sse" else (fails(), times_out())
            yield Situation(f"a call is only answered under {name} {HOW[transport]}", transport, {"tools/call": raw(build)}, good,
                            group="answers", source="issue 17, item 7")
    for name, build in [("a foreign id", envelope(id=987654)), ("the id of the list", earlier)]:
        for version in ("2025-11-25", "2026-07-28"):
            yield Situation(f"a call is only answered under {name} over HTTP, {version}", "json", {"tools/call": raw(build)}, (fails(),),
                            group="answers", version=version, source="issue 17, item 7: fails at once, with the reason")
    yield Situation("a call is answered with indented JSON over HTTP", "json", {"tools/call": raw(whole(indented))}, (FINE,),
                    group="answers", source="JSON whitespace")
    yield Situation("a call is answered with indented JSON in an event stream", "sse", {"tools/call": raw(whole(indented))}, (FINE,),
                    group="answers", source="WHATWG: data lines are joined")
    yield Situation("a call is answered with indented JSON over stdio", "stdio", {"tools/call": raw(whole(indented))},
                    (FINE, fails(UNREADABLE)), group="answers", source="MCP: messages MUST NOT contain embedded newlines; " + ISSUE)
    yield from elsewhere()


def elsewhere():
    """The same answers to tools/list and to the handshake. A tool that cannot be read may be missing; the server may not hang."""
    chosen = {**{name: WIRE[name] for name in ELSEWHERE}, **{name: ERRORS[name] for name in ERRORS_ELSEWHERE}}
    listed = lists('"name": "(echo|add)"')
    for name, (build, good, source) in chosen.items():
        labels = {ending.label for ending in good}
        for moment, method, version, transport in [
            ("the list", "tools/list", "2025-11-25", "stdio"), ("the list", "tools/list", "2025-11-25", "json"),
            ("the list", "tools/list", "2026-07-28", "json"), ("initialize", "initialize", "2025-11-25", "stdio"),
            ("initialize", "initialize", "2025-11-25", "json"), ("discovery", "server/discover", "2026-07-28", "stdio"),
            ("discovery", "server/discover", "2026-07-28", "json"),
        ]:
            expected = []
            if "answers" in labels:
                expected.append(listed)
            if "fails at once" in labels:
                reasons = [ending.pattern.pattern for ending in good if ending.label == "fails at once"]
                expected.append(fails("|".join(reason for reason in reasons if reason)))
            if "times out" in labels and transport == "stdio":
                expected.append(times_out(r"stdout|within"))
            if name == "a batch of one" and (method != "tools/list" or version == "2026-07-28"):
                # Batches do not exist before the negotiation of a revision, nor in the stateless protocol version.
                expected.append(fails(UNREADABLE))
            tag = HOW[transport] + (" without sessions" if version == "2026-07-28" else "")
            revision = "2025-03-26" if "batch" in name and version == "2025-11-25" else None
            yield Situation(f"{moment} is answered with {name} {tag}", transport, {method: raw(build)}, expected, group=moment,
                            version=version, command="list", source=source, revision=revision)
