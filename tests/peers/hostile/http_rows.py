"""HTTP faults: statuses, types, connections, sessions, and the syntax of event streams."""

import time

from answers import FINE
from peer import Closed, encoded
from situation import Situation, answers, fails, lists, times_out

PAGE = b"<!DOCTYPE html><html><title>Sign in</title><body>Please sign in</body></html>"
STATUSES = [200, 202, 204, 301, 302, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 410, 413, 415, 422, 425, 429, 500, 501, 502, 503, 504, 520]


def rpc_error(key):
    return lambda exchange: encoded({"jsonrpc": "2.0", "error": {"code": -32000, "message": "out of paper"},
                                     **({} if key is None else {"id": exchange.id if key == "right" else key[0]})})


BODIES = {
    "nothing": (lambda exchange: b"", None),
    "a web page": (lambda exchange: PAGE, "text/html; charset=utf-8"),
    "an error under the id null": (rpc_error([None]), "application/json"),
    "an error without an id": (rpc_error(None), "application/json"),
    "an error under the id server-error": (rpc_error(["server-error"]), "application/json"),
    "an error under its id": (rpc_error("right"), "application/json"),
    "plain text": (lambda exchange: b"upstream connect error", "text/plain"),
}


def status(code, body, headers=()):
    build, kind = BODIES[body]

    def act(exchange):
        data = b"" if code == 204 else build(exchange)
        exchange.http(code, data, list(headers), kind=kind)

    return act


def reason(code, body):
    said = ["out of paper"] if "error" in body and code != 204 else []
    if code == 401:
        said.append("authoriz|access|401|auth")
    if code == 403:
        said.append("403|allow|access")
    if code == 404:
        said.append("session")  # In a session it means that the session ended.
    if code == 200:
        said.append("empty|nothing|no answer|web page|html|text/plain|content type|without|JSON")
    else:
        said.append(str(code))
    return "|".join(said)


def statuses():
    for code in STATUSES:
        for body in BODIES:
            short = code in (202, 204, 301, 302, 307, 308, 406, 408, 409, 410, 413, 415, 422, 425, 501, 502, 504, 520)
            if short and body not in ("nothing", "an error under the id null", "a web page") or code == 204 and body != "nothing":
                continue
            # A server that answers 400 or 404 in a session may have lost it: the client may send one more handshake
            # and one more call.
            lost = 2 if code in (400, 404) else 1
            headers = [("retry-after", "7")] if code in (429, 503) else []
            if code in (301, 302, 307, 308):
                headers.append(("location", "/elsewhere"))
            if code == 401:
                headers.append(("www-authenticate", "Bearer"))
            # A redirection on the same server may be followed; there it finds a redirection again.
            good = [fails(reason(code, body) + ("|redirect" if 300 < code < 400 else ""))]
            yield Situation(f"a call gets HTTP {code} with {body}", "json", {"tools/call": status(code, body, headers)}, good,
                            group="statuses", calls=20 if 300 < code < 400 else lost, source="issue 17, item 7: the HTTP status decides at once")
    for code, body in [(200, "nothing"), (200, "a web page"), (202, "nothing"), (401, "nothing"), (403, "a web page"), (404, "nothing"),
                       (404, "a web page"), (405, "nothing"), (429, "nothing"), (500, "an error under the id null"), (503, "nothing"),
                       (502, "a web page"), (400, "an error under the id null"), (400, "an error under the id server-error")]:
        headers = [("retry-after", "7")] if code in (429, 503) else []
        for moment, act, version in [("initialize", "initialize", "2025-11-25"), ("discovery", "server/discover", "2026-07-28"), ("the list", "tools/list", "2025-11-25"),
                                 ("each request", "POST", "auto"), ("a stateless call", "tools/call", "2026-07-28")]:
            calls = 2 if code in (400, 404) else 1
            play = status(code, body, headers)
            yield Situation(f"{moment} gets HTTP {code} with {body}", "json", {act: play}, fails(reason(code, body)),
                            group="statuses", version=version, command="call" if act == "tools/call" else "list", calls=calls,
                            bound=45)
    for code in (429, 503):
        yield Situation(f"HTTP {code} with Retry-After is told with its time", "json",
                        {"tools/call": status(code, "nothing", [("retry-after", "7")])}, fails(r"7"), group="statuses")
    for value in ("soon", "-1", "99999999999999999999", "Wed, 21 Oct 2099 07:28:00 GMT", ""):
        yield Situation(f"HTTP 503 with Retry-After '{value}' fails a call", "json",
                        {"tools/call": status(503, "nothing", [("retry-after", value)])}, fails("503"), group="statuses")
    moved = lambda exchange: exchange.http(307, b"", [("location", "/moved")]) if exchange.path == "/mcp" else exchange.well()
    yield Situation("a call is redirected to another path (307)", "json", {"tools/call": moved}, (FINE, fails("307|redirect")), group="statuses",
                    calls=2)
    for place in ("http://169.254.169.254/latest", "file:///etc/passwd", "", "not a url", "http://127.0.0.1:1/mcp"):
        yield Situation(f"a call is redirected to '{place}' (307)", "json",
                        {"tools/call": lambda exchange, place=place: exchange.http(307, b"", [("location", place)])},
                        fails("307|redirect|address|reach|refused|scheme|location"), group="statuses", calls=20,
                        source="docs/configuration.md: addresses of metadata services are never dialled")
    for code, error, name in [(400, {"code": -32020, "message": "Header mismatch"}, "HeaderMismatch"),
                              (404, {"code": -32601, "message": "Method not found"}, "an unknown method"),
                              (400, {"code": -32602, "message": "Invalid params"}, "invalid parameters"),
                              (400, {"code": -32021, "message": "Missing capability"}, "a missing capability"),
                              (400, {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": ["2099-01-01"]}}, "another version")]:
        yield Situation(f"a stateless call gets HTTP {code} for {name}", "json",
                        {"tools/call": lambda exchange, code=code, error=error: exchange.http(code, encoded(
                            {"jsonrpc": "2.0", "id": exchange.id, "error": error}))}, fails(error["message"] + f"|{error['code']}"),
                        group="statuses", version="2026-07-28", source="MCP 2026-07-28", calls=2)


# Content types of a correct JSON answer and of a correct event stream.
JSON_TYPES = {
    "application/json; charset=utf-8": (FINE,), "Application/JSON": (FINE,), "APPLICATION/JSON;CHARSET=UTF-8": (FINE,),
    "application/json;odata=verbose;x=\"a;b\"": (FINE,), " application/json ": (FINE,), "application/json;": (FINE,),
    "application/vnd.api+json": (FINE, fails("content|type|vnd")), "text/json": (FINE, fails("content|type|text/json")),
    "text/plain": (FINE, fails("text/plain")), "text/html": (FINE, fails("text/html|web page")), "": (FINE, fails("content|type")),
    "application/octet-stream": (FINE, fails("octet")), "garbage": (FINE, fails("garbage|content")),
}
STREAM_TYPES = {
    "text/event-stream; charset=utf-8": (FINE,), "Text/Event-Stream": (FINE,), "TEXT/EVENT-STREAM;charset=UTF-8": (FINE,),
    "text/event-stream;": (FINE,), "text/plain": (FINE, fails("text/plain")), "application/json": (FINE, fails()),
}
TYPES_SOURCE = "RFC 9110: types are compared without case and may have parameters; issue 17, item 11"


def types():
    good_body = lambda exchange: encoded(exchange.answer(exchange.result()))
    for kind, good in JSON_TYPES.items():
        yield Situation(f"JSON comes as '{kind}'", "json",
                        {"tools/call": lambda exchange, kind=kind: exchange.http(200, good_body(exchange), [("content-type", kind)])},
                        good, group="content types", source=TYPES_SOURCE)
    yield Situation("JSON comes without a content type", "json",
                    {"tools/call": lambda exchange: exchange.http(200, good_body(exchange), kind=None)}, (FINE, fails("content|type")),
                    group="content types")
    yield Situation("JSON comes with two content types", "json",
                    {"tools/call": lambda exchange: exchange.http(200, good_body(exchange), [("content-type", "application/json"), ("content-type", "text/html")])},
                    (FINE, fails()), group="content types")
    for kind, good in STREAM_TYPES.items():
        def act(exchange, kind=kind):
            exchange.stream(kind)
            exchange.raw(good_body(exchange))
        yield Situation(f"an event stream comes as '{kind}'", "sse", {"tools/call": act}, good, group="content types", source=TYPES_SOURCE)
    for kind in ("Application/JSON; charset=UTF-8", "text/plain"):
        for moment, method, version in [("initialize", "initialize", "2025-11-25"), ("discovery", "server/discover", "2026-07-28"), ("the list", "tools/list", "2025-11-25")]:
            good = lists('"name": "echo"')
            yield Situation(f"the answer to {moment} comes as '{kind}'", "json",
                            {method: lambda exchange, kind=kind: exchange.http(200, good_body(exchange), [("content-type", kind)])},
                            (good,) if "JSON" in kind else (good, fails("text/plain")), group="content types", version=version, command="list", source=TYPES_SOURCE)


def events(*pieces, pause=0.0, end=True):
    """A stream of exactly these bytes; DATA stands for the correct answer."""

    def act(exchange):
        exchange.stream()
        answer = encoded(exchange.answer(exchange.result()))
        for piece in pieces:
            piece = piece(exchange) if callable(piece) else piece
            exchange.chunk(piece.replace(b"DATA", answer))
            time.sleep(pause)
        if end:
            exchange.finish()
        else:
            exchange.hang()

    return act


def split(exchange):
    answer = encoded(exchange.answer(exchange.called("fine")))
    middle = answer.index(b'"result"')
    return b"data: " + answer[:middle] + b"\ndata: " + answer[middle:] + b"\n\n"


WHATWG = "WHATWG HTML, 9.2.6; issue 17, item 11"
LOST = (FINE, fails())
STREAMS = {
    "CR alone": (events(b"event: message\rdata: DATA\r\r"), (FINE,)),
    "CRLF": (events(b"event: message\r\ndata: DATA\r\n\r\n"), (FINE,)),
    "all three line ends": (events(b"event: message\rdata: DATA\n\r\n"), (FINE,)),
    "a byte order mark": (events(b"\xef\xbb\xbfdata: DATA\n\n"), (FINE,)),
    "comments": (events(b": hello\n\n:\n\nevent: message\n: more\ndata: DATA\n\n"), (FINE,)),
    "unknown fields": (events(b"x-trace: 1\nevent: message\nunknown\nfoo: bar\ndata: DATA\n\n"), (FINE,)),
    "a bare id": (events(b"id\ndata: DATA\n\n"), (FINE,)),
    "an empty id": (events(b"id:\ndata: DATA\n\n"), (FINE,)),
    "an id with NUL": (events(b"id: a\x00b\ndata: DATA\n\n"), (FINE,)),
    "an id of 100 KB": (events(b"id: " + b"a" * 100_000 + b"\ndata: DATA\n\n"), (FINE,)),
    "an id with a line of a header in it": (events(b"id: \xc3\xa9\xe2\x82\xac\ndata: DATA\n\n"), (FINE,)),
    "an unparsable retry": (events(b"retry: soon\ndata: DATA\n\n"), (FINE,)),
    "a negative retry": (events(b"retry: -1\ndata: DATA\n\n"), (FINE,)),
    "a huge retry": (events(b"retry: 99999999999999999999\ndata: DATA\n\n"), (FINE,)),
    "a bare retry": (events(b"retry\ndata: DATA\n\n"), (FINE,)),
    "no blank after the colon": (events(b"event:message\ndata:DATA\n\n"), (FINE,)),
    "two blanks after the colon": (events(b"event: message\ndata:  DATA\n\n"), (FINE,)),
    "data over two lines": (events(split), (FINE,)),
    "an event without data first": (events(b"id: 1\nevent: message\n\n", b"data: DATA\n\n"), (FINE,)),
    "an event with empty data first": (events(b"id: 1\nretry: 50\ndata:\n\n", b"data: DATA\n\n"), (FINE,)),
    "a bare data field first": (events(b"data\n\n", b"data: DATA\n\n"), (FINE,)),
    "no event name": (events(b"data: DATA\n\n"), (FINE,)),
    "an event of another name first": (events(b"event: ping\ndata: {}\n\n", b"event: message\ndata: DATA\n\n"), (FINE,)),
    "an event of another name with text first": (events(b"event: heartbeat\ndata: now\n\n", b"event: message\ndata: DATA\n\n"), (FINE,)),
    "data that is text first": (events(b"data: hello\n\n", b"data: DATA\n\n"), LOST),
    "its answer under another event name": (events(b"event: result\ndata: DATA\n\n"), LOST),
    "an event named error": (events(b"event: error\ndata: out of paper\n\n"), (fails(),)),
    "a stream of one-byte chunks": (lambda exchange: (exchange.stream(), [exchange.chunk(bytes([byte])) for byte in
                                                     b"event: message\ndata: " + encoded(exchange.answer(exchange.called("fine"))) + b"\n\n"],
                                                     exchange.finish()), (FINE,)),
    "a character cut in two": (lambda exchange: (exchange.stream(), exchange.chunk(b"data: " + encoded(exchange.answer(exchange.called("fine \u20ac")))
                                                .split(b"\x82")[0]), time.sleep(0.2), exchange.chunk(b"\x82" + encoded(exchange.answer(
                                                    exchange.called("fine \u20ac"))).split(b"\x82")[1] + b"\n\n"), exchange.finish()),
                               (answers("fine €"),)),
    "an answer without a final blank line": (events(b"event: message\ndata: DATA\n"), LOST),
    "an answer without a final line end": (events(b"event: message\ndata: DATA"), LOST),
    "no answer at all": (events(b": nothing\n\n"), (fails(),)),
    "an empty stream": (events(), (fails(),)),
    "only notifications": (events(b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n\n'), (fails(),)),
    "half an answer": (events(b'data: {"jsonrpc":"2.0","id":'), (fails(),)),
    "an answer and a stream that stays open": (events(b"data: DATA\n\n", end=False), (FINE,)),
    "comments for two seconds before it": (events(*[b": wait\n\n"] * 20, b"data: DATA\n\n", pause=0.1), (FINE,)),
    "10,000 comments before it": (events(b": wait\n\n" * 10_000, b"data: DATA\n\n"), (FINE,)),
    "a line of 10 MB that is a comment": (events(b": " + b"x" * 10_000_000 + b"\n\n", b"data: DATA\n\n"), (FINE, fails())),
}


def streams():
    for name, (act, good) in STREAMS.items():
        yield Situation(f"an event stream has {name}", "sse", {"tools/call": act}, good, group="event streams", source=WHATWG)
    for name in ("CR alone", "a byte order mark", "unknown fields", "a bare id", "an unparsable retry", "comments", "no event name"):
        act, good = STREAMS[name]
        yield Situation(f"a stateless event stream has {name}", "sse", {"tools/call": act}, good, group="event streams", version="2026-07-28", source=WHATWG)
        yield Situation(f"an event stream with the list has {name}", "sse", {"tools/list": act}, lists('"name": "echo"'), group="event streams",
                        command="list", source=WHATWG)
    # SEP-1699: the server sends an event with an id first, disconnects, and answers where the client reconnects.
    def come_back(exchange):
        if exchange.headers.get("last-event-id") != "e1":
            return exchange.http(405, kind=None)
        exchange.stream()
        exchange.chunk(b"id: e2\ndata: " + exchange.peer.state["answer"] + b"\n\n")
        exchange.finish()

    def prime(end):
        def act(exchange):
            exchange.peer.state["answer"] = encoded(exchange.answer(exchange.called("fine")))
            exchange.stream()
            exchange.chunk(b"id: e1\nretry: 100\ndata:\n\n")
            end(exchange)
        return act

    finish, reset = (lambda exchange: exchange.finish()), (lambda exchange: exchange.close())
    resume = "MCP 2025-11-25, resumability (SEP-1699)"
    yield Situation("a primed stream ends and is resumed", "sse", {"tools/call": prime(finish), "GET": come_back}, FINE, group="event streams", source=resume)
    yield Situation("a primed stream breaks off and is resumed", "sse", {"tools/call": prime(reset), "GET": come_back}, (FINE, fails()), group="event streams", source=resume)
    for code in (405, 404, 400, 500):
        yield Situation(f"a primed stream ends and HTTP {code} refuses its resumption", "sse",
                        {"tools/call": prime(finish), "GET": lambda exchange, code=code: exchange.http(code, kind=None)},
                        (fails(), times_out()), group="event streams", calls=2)
    yield Situation("a stateless stream ends after an id", "sse", {"tools/call": prime(finish)}, fails(), group="event streams", version="2026-07-28",
                    source="MCP 2026-07-28: no redelivery")


def body(exchange):
    return encoded(exchange.answer(exchange.result()))


def head(exchange, *lines):
    exchange.bytes(b"\r\n".join([b"HTTP/1.1 200 OK", b"content-type: application/json", *lines]) + b"\r\n\r\n")


def sent(*lines, data=None, then="close", pause=0.0):
    """Exactly these lines of a head, and this body."""

    def act(exchange):
        head(exchange, *[line(exchange) if callable(line) else line for line in lines])
        whole = body(exchange) if data is None else data(exchange)
        if pause:
            for byte in whole:
                exchange.bytes(bytes([byte]))
                time.sleep(pause)
        else:
            exchange.bytes(whole)
        getattr(exchange, then)() if then else None

    return act


def length(change):
    return lambda exchange: b"content-length: %d" % (len(body(exchange)) + change)


def chunks(text):
    return lambda exchange: text.replace(b"BODY", b"%x\r\n%s\r\n" % (len(body(exchange)), body(exchange)))


def first(data, then="well"):
    def act(exchange):
        exchange.bytes(data)
        getattr(exchange, then)()
    return act


def line(data):
    def act(exchange):
        exchange.bytes(data + b"content-type: application/json\r\n" + length(0)(exchange) + b"\r\n\r\n" + body(exchange))
    return act


CHUNKED = b"transfer-encoding: chunked"
BROKE = (fails("broke|closed|reset|complete|end"),)
CONNECTIONS = {
    "a body that breaks off": (sent(length(50)), BROKE),
    "a chunked body that breaks off": (sent(CHUNKED, data=chunks(b"BODY")), (FINE, *BROKE)),
    "a chunked body that breaks off in a chunk": (sent(CHUNKED, data=lambda exchange: b"fff\r\n" + body(exchange)), BROKE),
    "a chunk size that is no number": (sent(CHUNKED, data=lambda exchange: b"zz\r\n" + body(exchange)), (fails(),)),
    "a chunk size that is huge": (sent(CHUNKED, data=lambda exchange: b"ffffffffffffffff\r\n" + body(exchange)), (fails(),)),
    "chunk extensions and trailers": (sent(CHUNKED, data=lambda exchange: b"%x;a=b\r\n%s\r\n0\r\nx-checksum: 1\r\n\r\n" % (len(body(exchange)), body(exchange)),
                                           then=None), (FINE,)),
    "a content length that is too small": (sent(length(-20)), (fails(),)),
    "a content length of 0": (sent(b"content-length: 0"), (fails(),)),
    "a content length that is no number": (sent(b"content-length: many"), (fails(),)),
    "a content length that is negative": (sent(b"content-length: -5"), (fails(),)),
    "a content length of an exabyte": (sent(b"content-length: 1000000000000000000"), (fails(),)),
    "two different content lengths": (sent(length(0), length(-9)), (FINE, fails())),
    "a length and chunks": (sent(length(0), CHUNKED, data=chunks(b"BODY0\r\n\r\n")), (FINE, fails())),
    "neither length nor chunks": (sent(), (FINE,)),
    "gzip claimed and not given": (sent(b"content-encoding: gzip", length(0)), (FINE, fails())),
    "an unknown encoding claimed": (sent(b"content-encoding: rot13", length(0)), (FINE, fails())),
    "a connection reset after the request": (lambda exchange: exchange.reset(), BROKE),
    "a connection closed after the request": (lambda exchange: exchange.close(), BROKE),
    "a connection reset after the head": (sent(length(0), data=lambda exchange: b"", then="reset"), BROKE),
    "a connection reset in the middle": (sent(length(0), data=lambda exchange: body(exchange)[:30], then="reset"), BROKE),
    "an event stream that is reset": (lambda exchange: (exchange.stream(), exchange.chunk(b": x\n\n"), exchange.reset()), BROKE),
    "an event stream that breaks off in an event": (lambda exchange: (exchange.stream(), exchange.chunk(b"data: {\"jsonrpc\""), exchange.close()), BROKE),
    "100 Continue first": (first(b"HTTP/1.1 100 Continue\r\n\r\n"), (FINE,)),
    "103 Early Hints first": (first(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"), (FINE,)),
    "20 informational responses first": (first(b"HTTP/1.1 102 Processing\r\n\r\n" * 20), (FINE, fails())),
    "slow bytes": (sent(length(0), pause=0.01), (FINE,)),
    "an HTTP/1.0 response": (line(b"HTTP/1.0 200 OK\r\n"), (FINE,)),
    "an HTTP/2 status line": (line(b"HTTP/2 200 OK\r\n"), (FINE, fails())),
    "a status line without a reason": (line(b"HTTP/1.1 200\r\n"), (FINE,)),
    "a status of four digits": (line(b"HTTP/1.1 2000 OK\r\n"), (fails(),)),
    "a status of 999": (line(b"HTTP/1.1 999 Odd\r\n"), (fails("999"),)),
    "bare line feeds in its head": (lambda exchange: exchange.bytes(b"HTTP/1.1 200 OK\ncontent-type: application/json\n" + length(0)(exchange) + b"\n\n" + body(exchange)), (FINE, fails())),
    "something that is no HTTP": (first(b"SSH-2.0-OpenSSH_9.6\r\n", "close"), (fails(),)),
    "JSON without any HTTP": (lambda exchange: (exchange.bytes(body(exchange) + b"\n"), exchange.close()), (fails(),)),
    "a folded header": (line(b"HTTP/1.1 200 OK\r\nx-a: b\r\n c\r\n"), (FINE, fails())),
    "a header without a colon": (line(b"HTTP/1.1 200 OK\r\nnonsense\r\n"), (FINE, fails())),
    "a header with raw bytes": (line(b"HTTP/1.1 200 OK\r\nx-a: \xff\xfe\r\n"), (FINE, fails())),
    "a header of 1 MB": (line(b"HTTP/1.1 200 OK\r\nx-a: " + b"a" * 1_000_000 + b"\r\n"), (FINE, fails())),
    "1,000 headers": (line(b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: 1\r\n" % n for n in range(1000))), (FINE, fails())),
    "a head that never ends": (lambda exchange: (exchange.bytes(b"HTTP/1.1 200 OK\r\n"), exchange.hang()), (times_out(),)),
    "a second response behind it": (lambda exchange: (exchange.well(), exchange.bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")), (FINE,)),
    "garbage behind it": (lambda exchange: (exchange.well(), exchange.bytes(b"garbage\r\n\r\n")), (FINE,)),
}


KEPT = "issue 17, item 11: retried on a new connection when nothing was sent"


def connections():
    for name, (act, good) in CONNECTIONS.items():
        yield Situation(f"a call gets {name}", "json", {"tools/call": act}, good, group="connections",
                        source="law 4: a call that may have been executed is not made again")
    for name in ("a body that breaks off", "a connection reset after the request", "neither length nor chunks", "something that is no HTTP"):
        act, good = CONNECTIONS[name]
        good = [lists('"name": "echo"') if ending is FINE else ending for ending in good]
        yield Situation(f"the list gets {name}", "json", {"tools/list": act}, (*good, lists('"name": "echo"')), group="connections", command="list")
        yield Situation(f"initialize gets {name}", "json", {"initialize": act}, (*good, lists('"name": "echo"')), group="connections", command="list")
        yield Situation(f"a stateless call gets {name}", "json", {"tools/call": act}, CONNECTIONS[name][1], group="connections", version="2026-07-28")

    def close_before(exchange):
        exchange.well()
        raise Closed

    def close_announced(exchange):
        exchange.raw(body(exchange), headers=[("connection", "close")])
        raise Closed

    for name, act in [("at once after the list", close_before), ("after it said so", close_announced)]:
        for version in ("2025-11-25", "2026-07-28"):
            yield Situation(f"a kept connection is closed {name}, {version}", "json", {"tools/list": act}, FINE, group="connections", version=version, source=KEPT)
    yield Situation("every connection is closed after one answer", "json", {"initialize": close_before, "notifications/initialized": lambda exchange: (exchange.accepted(), close(exchange)),
                                                                           "tools/list": close_before, "tools/call": close_before}, FINE, group="connections", source=KEPT)


def close(exchange):
    raise Closed


def sessions():
    lost = lambda code, build: (lambda exchange: exchange.http(code, build(exchange)))
    not_found = lambda exchange: encoded({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}})
    bad = lambda key: (lambda exchange: encoded({"jsonrpc": "2.0", "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"},
                                                **({} if key is ... else {"id": key})}))
    renewed = "MCP 2025-11-25: 404 in a session means a new handshake; issue 17, item 7: the session is renewed"
    for name, code, build in [("404 and nothing", 404, lambda exchange: b""), ("404 and an error under the id null", 404, not_found),
                              ("404 and a web page", 404, lambda exchange: PAGE),
                              ("400 and an error under the id null", 400, bad(None)), ("400 and an error under the id server-error", 400, bad("server-error")),
                              ("400 and an error without an id", 400, bad(...))]:
        yield Situation(f"a lost session is told with {name}", "json", {"tools/call 1": lost(code, build)}, FINE, group="sessions", calls=2, source=renewed)
        yield Situation(f"a session lost before the list is told with {name}", "json", {"tools/list 1": lost(code, build)}, lists('"name": "echo"'),
                        group="sessions", command="list", source=renewed)
    for name, session in [("no session", None), ("an empty session", ""), ("a session of all visible characters", "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~"),
                          ("a session of 4 KB", "a" * 4096), ("a session with blanks", "a b  c"), ("a session in Latin-1", "caf\xe9"), ("a session with a tab", "a\tb")]:
        plain = name in ("no session", "a session of all visible characters")
        yield Situation(f"the server gives {name}", "json", {}, FINE if plain else (FINE, fails()), group="sessions", session=session,
                        source="MCP 2025-11-25: a session id is visible ASCII")

    def other(exchange):
        exchange.raw(body(exchange), headers=[("mcp-session-id", "another")])

    yield Situation("the session changes with the list", "json", {"tools/list": other}, FINE, group="sessions")
    yield Situation("the session changes with the call", "json", {"tools/call": other}, FINE, group="sessions")
    for code in (200, 204, 404, 405, 500):
        yield Situation(f"the end of a session gets HTTP {code}", "json", {"DELETE": lambda exchange, code=code: exchange.http(code, kind=None)}, FINE, group="sessions")
    yield Situation("the end of a session is never answered", "json", {"DELETE": lambda exchange: exchange.hang()}, FINE, group="sessions", bound=20, slack=5)
    yield Situation("the end of a session is a reset", "json", {"DELETE": lambda exchange: exchange.reset()}, FINE, group="sessions")
    for name, act in [("HTTP 404", lambda exchange: exchange.http(404, kind=None)), ("HTTP 500", lambda exchange: exchange.http(500, kind=None)),
                      ("a web page", lambda exchange: exchange.http(200, PAGE, kind="text/html")), ("silence", lambda exchange: exchange.hang()),
                      ("a reset", lambda exchange: exchange.reset()), ("an empty stream", lambda exchange: (exchange.stream(), exchange.finish())),
                      ("JSON", lambda exchange: exchange.http(200, b"{}")), ("HTTP 401", lambda exchange: exchange.http(401, kind=None))]:
        yield Situation(f"the stream of the server gets {name}", "json", {"GET": act}, FINE, group="sessions", source="MCP: a server MAY offer no such stream")
    for name, act in [("HTTP 200", lambda exchange: exchange.http(200, b"{}")), ("HTTP 204", lambda exchange: exchange.http(204, kind=None)),
                      ("HTTP 400", lambda exchange: exchange.http(400, b"")), ("HTTP 500", lambda exchange: exchange.http(500, b"")),
                      ("a web page", lambda exchange: exchange.http(200, PAGE, kind="text/html"))]:
        good = (FINE,) if "20" in name and "page" not in name else (FINE, fails())
        yield Situation(f"the notification initialized gets {name}", "json", {"notifications/initialized": act}, good, group="sessions")


def rows():
    yield from statuses()
    yield from types()
    yield from streams()
    yield from connections()
    yield from sessions()
