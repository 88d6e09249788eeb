"""Messages of a server during a call, or between calls, besides the answer; floods included."""

import time

from answers import EITHER, FINE
from peer import encoded
from situation import AWAITED, Situation, answers, asks, fails, times_out


def asked(method, params=None, key="server-1", wants=None):
    """Sends the client a request, answers after the reply, and reports the reply in its answer."""

    def act(exchange):
        reply = exchange.ask(method, params, key)
        said = "no reply" if reply is None else "an error" if "error" in reply else "a result"
        exchange.raw(encoded(exchange.answer(exchange.called(f"fine: {said}"))))

    return act


def noted(method, params=None, times=1):
    def act(exchange):
        for _ in range(times):
            exchange.note(method, params(exchange) if callable(params) else params)
        exchange.well()
    return act


def lines(*data):
    def act(exchange):
        for one in data:
            exchange.more(one)
        exchange.well()
    return act


def progress(*values):
    def act(exchange):
        for value in values:
            exchange.progress(value)
        exchange.well()
    return act


def flood(make, megabytes=None, seconds=8):
    """The same message without pause: so many megabytes and then the answer, or for some seconds and then nothing."""

    def act(exchange):
        data = make(exchange)
        stream = getattr(exchange, "stream", None)
        if stream:
            stream()
        put = exchange.chunk if stream else exchange.bytes
        if megabytes:
            for _ in range(round(megabytes * 16)):
                put(data * (65536 // len(data)))
            return exchange.well()
        ends = time.time() + seconds
        while time.time() < ends:
            put(data * (65536 // len(data)))
        exchange.hang()

    return act


def framed(exchange, message):
    data = encoded(message)
    return b"data: " + data + b"\n\n" if hasattr(exchange, "chunk") else data + b"\n"


def token(exchange):
    return (exchange.params.get("_meta") or {}).get("progressToken", 0)


ANSWERED = answers("fine: (a result|an error)")
REFUSED = answers("fine: an error")
FORM = {"message": "Your name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}
NOT_OFFERED = "MCP: what was not offered is refused with -32601"
REQUESTS = {
    "a ping": (asked("ping"), (answers("fine: a result"),), "MCP: ping MUST be answered"),
    "a ping whose id is a number": (asked("ping", key=1), (answers("fine: a result"),), "MCP: ping MUST be answered"),
    "a ping under the id of the call": (lambda exchange: (exchange.ask("ping", key=exchange.id), exchange.well()), (FINE,), "ids of both directions are apart"),
    "a ping whose id is a float": (asked("ping", key=1.5), (answers("fine"),), ""),
    "a ping whose id is an object": (lines(b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}'), (FINE,), ""),
    "a ping whose id is null": (lines(b'{"jsonrpc":"2.0","id":null,"method":"ping"}'), (FINE,), ""),
    "a ping whose id has 10,000 characters": (asked("ping", key="k" * 10_000), (ANSWERED,), ""),
    "a request for roots": (asked("roots/list"), (REFUSED,), NOT_OFFERED),
    "a request for sampling": (asked("sampling/createMessage", {"messages": [], "maxTokens": 1}), (REFUSED,), NOT_OFFERED),
    "a request of sampling that is malformed": (asked("sampling/createMessage", {"messages": 7}), (REFUSED,), NOT_OFFERED),
    "an unknown request": (asked("x/unknown"), (REFUSED,), "JSON-RPC: -32601"),
    "an unknown request with list parameters": (asked("x/unknown", [1, 2]), (REFUSED,), "JSON-RPC: -32601"),
    "a request of the client": (asked("tools/list"), (REFUSED,), "JSON-RPC: -32601"),
    "a malformed elicitation": (asked("elicitation/create", {"message": 7}), (answers("fine: an error"), fails(), asks()), ""),
    "an elicitation without a schema": (asked("elicitation/create", {"message": "Name?"}), (REFUSED, answers("fine"), fails(), asks()), ""),
    "an elicitation": (asked("elicitation/create", FORM), (asks("name"),), "docs/mcp-servers.md, exit code 10"),
    "an elicitation with a schema of lists": (asked("elicitation/create", {**FORM, "requestedSchema": []}), (REFUSED, fails(), asks()), ""),
}
NOTES = {
    "progress": (progress(1, 2, 3), (FINE,)), "progress that goes backwards": (progress(5, 1, -3), (FINE,)), "progress that is text": (progress("half"), (FINE,)),
    "progress that is null": (progress(None), (FINE,)), "progress that is huge": (progress(1e308, 10**30), (FINE,)),
    "progress of another call": (noted("notifications/progress", {"progressToken": "other", "progress": 1}), (FINE,)),
    "progress without a token": (noted("notifications/progress", {"progress": 1}), (FINE,)),
    "progress with a message of 1 MB": (lambda exchange: (exchange.progress(1, message="x" * 1_000_000), exchange.well()), (FINE,)),
    "progress with terminal escapes": (lambda exchange: (exchange.progress(1, message="\x1b[2J\x1b]0;x\x07"), exchange.well()), (FINE,)),
    "progress with a lone surrogate": (lambda exchange: (exchange.more(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":1,"message":"\\ud83d"}}'
                                                                      % (token(exchange) if isinstance(token(exchange), int) else 0)), exchange.well()), (FINE,)),
    "progress NaN": (lambda exchange: (exchange.more(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":NaN}}'), exchange.well()), (FINE,)),
    "a log message": (noted("notifications/message", {"level": "info", "data": "x"}), (FINE,)),
    "a log message of an unknown level": (noted("notifications/message", {"level": "loud", "data": None}), (FINE,)),
    "a log message without data": (noted("notifications/message", {}), (FINE,)), "a log message of 5 MB": (noted("notifications/message", {"level": "info", "data": "x" * 5_000_000}), (FINE,)),
    "a log message with terminal escapes": (noted("notifications/message", {"level": "error", "data": "\x1b[2J"}), (FINE,)),
    "an unknown notification": (noted("notifications/x", {"a": [1]}), (FINE,)), "a notification without params": (lines(b'{"jsonrpc":"2.0","method":"notifications/message"}'), (FINE,)),
    "a notification with params that are a list": (lines(b'{"jsonrpc":"2.0","method":"notifications/progress","params":[1]}'), (FINE,)),
    "a notification with params that are text": (lines(b'{"jsonrpc":"2.0","method":"notifications/progress","params":"x"}'), (FINE,)),
    "a notification without jsonrpc": (lines(b'{"method":"notifications/message","params":{"level":"info","data":"x"}}'), (FINE,)),
    "a notification whose method is a number": (lines(b'{"jsonrpc":"2.0","method":7}'), (FINE,)),
    "an empty object": (lines(b"{}"), EITHER), "a JSON-RPC message of nothing": (lines(b'{"jsonrpc":"2.0"}'), EITHER),
    "a cancellation of the call": (noted("notifications/cancelled", lambda exchange: {"requestId": exchange.id, "reason": "no"}), (FINE, fails())),
    "a cancellation of nothing": (noted("notifications/cancelled", {"requestId": 999}), (FINE,)),
    "a cancellation without an id": (noted("notifications/cancelled", {}), (FINE,)),
    "a change of resources": (noted("notifications/resources/updated", {"uri": "file:///a"}), (FINE,)),
    "a change of the list": (noted("notifications/tools/list_changed"), (FINE,)),
    "an answer to no request": (lines(b'{"jsonrpc":"2.0","id":424242,"result":{}}'), (FINE,)),
    "an error for no request": (lines(b'{"jsonrpc":"2.0","id":424242,"error":{"code":-1,"message":"x"}}'), (FINE,)),
}
STANZA = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 200}}
FLOODS = {
    "log messages": lambda exchange: framed(exchange, STANZA),
    "progress": lambda exchange: framed(exchange, {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token(exchange), "progress": 1}}),
    "progress of others": lambda exchange: framed(exchange, {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "other", "progress": 1}}),
    "changes of the list": lambda exchange: framed(exchange, {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
    "unknown notifications": lambda exchange: framed(exchange, {"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": "x" * 1000}}),
    "answers to nothing": lambda exchange: framed(exchange, {"jsonrpc": "2.0", "id": 424242, "result": {}}),
    "pings": lambda exchange: framed(exchange, {"jsonrpc": "2.0", "id": "p", "method": "ping"}),
    "unknown requests": lambda exchange: framed(exchange, {"jsonrpc": "2.0", "id": "u", "method": "x/y", "params": {"a": "x" * 200}}),
    "requests for sampling": lambda exchange: framed(exchange, {"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}),
    "elicitations": lambda exchange: framed(exchange, {"jsonrpc": "2.0", "id": "e", "method": "elicitation/create", "params": FORM}),
}


def rows():
    for transport in ("stdio", "sse"):
        how = "over stdio" if transport == "stdio" else "in an event stream"
        for name, (act, good, source) in REQUESTS.items():
            calls = 2 if "elicitation" in name else 1
            yield Situation(f"in a call comes {name} {how}", transport, {"tools/call": act}, good, group="in a call", source=source, calls=calls)
        for name, (act, good) in NOTES.items():
            if transport == "sse" and name.endswith("no request"):
                good = EITHER  # The stream belongs to one request, so an answer to another request is not its answer.
            yield Situation(f"in a call comes {name} {how}", transport, {"tools/call": act}, good, group="in a call")
        bounded = "issue 17, item 9: memory is bounded"
        for name, make in FLOODS.items():
            for then, label in [(True, "and its answer"), (False, "and no answer")]:
                # Cutting such a server off is good, and so is reading it to the end.
                good = (FINE, fails(), asks()) if then else (times_out(), fails(), asks())
                flooded = f"an eighth of a megabyte of {name}" if then else f"{name} without end"
                yield Situation(f"in a call come {flooded} {label} {how}", transport, {"tools/call": flood(make, 0.125 if then else None)}, good,
                                group="floods", source=bounded, slack=15, calls=2 if name == "elicitations" else 1)
    for name in ("pings", "unknown requests", "log messages", "elicitations", "requests for sampling"):
        yield Situation(f"a process that reads nothing sends {name} without end", "stdio", {"tools/call": unread(FLOODS[name])},
                        (fails(), times_out(), asks()), group="floods", source="issue 17, item 9: a server that does not read is cut", slack=15,
                        calls=2 if name == "elicitations" else 1)
    for name in ("pings", "log messages", "changes of the list"):
        yield Situation(f"a process sends {name} without end from its start", "stdio", {}, (fails(), times_out()), group="floods", opening=flood(FLOODS[name], seconds=60), slack=20,
                        command="list", source="issue 17, item 9: memory is bounded")
    for name in ("log messages", "pings", "changes of the list", "answers to nothing"):
        yield Situation(f"the stream of the server has {name} without end", "json", {"GET": flood(FLOODS[name], seconds=6), "tools/call": lambda exchange: (exchange.pause(2), exchange.well())},
                        (FINE, fails()), group="floods", source="issue 17, item 9: memory is bounded", slack=10)
    yield Situation("initialize gets pings without end in an event stream", "sse", {"initialize": flood(FLOODS["pings"], seconds=60)}, (fails(), times_out()), group="floods", command="list",
                    source="issue 17, item 9: memory is bounded")
    yield Situation("half an answer and then log lines without end over stdio", "stdio", {"tools/call": logging}, fails(), group="floods", slack=6,
                    source="decision 0018: a text of several lines is given up ten seconds after it began")
    yield Situation("an event of 200 MB in an event stream", "sse", {"tools/call": endless_event(200)}, (fails("long|MiB|large"), FINE), group="floods", slack=10, source="everything is bounded")
    yield Situation("an event of 200 MB in a resumed event stream", "sse", {"tools/call": primed, "GET": endless_rest(200)}, fails("long|MiB|large"), group="floods", slack=10,
                    source="everything is bounded")
    yield Situation("a JSON body of 200 MB", "json", {"tools/call": endless_body(200)}, (fails("long|MiB|large"), FINE), group="floods", slack=10, source="everything is bounded")
    yield Situation("progress without end beyond the total time", "stdio", {"tools/call": steady}, times_out(f"{AWAITED.total} s|within"), group="floods", slack=10,
                    source="docs/configuration.md: total_timeout_s holds however much it progresses")
    for name, act in [("a ping", asked("ping")), ("a request for roots", asked("roots/list")), ("an unknown notification", noted("notifications/x")), ("a log message", noted("notifications/message", {"level": "info", "data": "x"})),
                      ("a change of the list", noted("notifications/tools/list_changed"))]:
        yield Situation(f"before the answer to initialize comes {name}", "stdio", {"initialize": then_initialized(name)}, FINE, group="in a call")
        yield Situation(f"after notifications/initialized comes {name}", "stdio", {"notifications/initialized": after_initialized(name)}, FINE, group="in a call")
        yield Situation(f"without sessions a call gets {name}", "stdio", {"tools/call": act}, (answers("fine"), fails()), group="in a call", version="2026-07-28", source="MCP 2026-07-28 has no such requests")


LINES = {"a ping": b'{"jsonrpc":"2.0","id":"s","method":"ping"}', "a request for roots": b'{"jsonrpc":"2.0","id":"s","method":"roots/list"}',
         "an unknown notification": b'{"jsonrpc":"2.0","method":"notifications/x"}', "a log message": b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}',
         "a change of the list": b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'}


def then_initialized(name):
    return lambda exchange: (exchange.more(LINES[name]), exchange.well())


def after_initialized(name):
    return lambda exchange: exchange.more(LINES[name])


def unread(make):
    """Floods in the thread that also reads stdin, which therefore stops reading."""

    def act(exchange):
        exchange.peer.stop_reading.set()
        flood(make)(exchange)

    return act


def logging(exchange):
    """The first line of an answer, and then log lines that come faster than the pause after which a text is given up."""
    exchange.bytes(b'{"jsonrpc":"2.0","id":%d,\n' % exchange.id)
    while True:
        exchange.bytes(b"still working\n")
        time.sleep(0.3)


def endless_event(megabytes):
    def act(exchange):
        exchange.stream()
        exchange.chunk(b"data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":\"" % exchange.id)
        for _ in range(megabytes):
            exchange.chunk(b"x" * 1_000_000)
        exchange.chunk(b"\"}\n\n")
        exchange.finish()
    return act


def primed(exchange):
    exchange.peer.state["id"] = exchange.id
    exchange.stream()
    exchange.chunk(b"id: e1\nretry: 100\ndata:\n\n")
    exchange.finish()


def endless_rest(megabytes):
    """The response to a client that resumes a primed stream."""

    def act(exchange):
        if exchange.headers.get("last-event-id") != "e1":
            return exchange.http(405, kind=None)
        exchange.id = exchange.peer.state["id"]
        endless_event(megabytes)(exchange)
    return act


def endless_body(megabytes):
    def act(exchange):
        exchange.head(200, [("content-type", "application/json"), ("content-length", str(megabytes * 1_000_000))])
        for _ in range(megabytes):
            exchange.bytes(b" " * 1_000_000)
    return act


def steady(exchange):
    for value in range(1000):
        exchange.progress(value)
        time.sleep(0.1)
