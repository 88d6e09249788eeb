"""Hostile tool lists and malformed handshakes."""

import functools
import re

from answers import FINE
from peer import ECHO, LEGACY, MODERN, encoded
from situation import Ending, Situation, fails, lists, refuses, times_out


def tool(name, **more):
    return {"name": name, "description": "A tool.", "inputSchema": {"type": "object"}, **more}


ECHO_LISTED = lists('"name": "echo"')
SCHEMAS = {
    "null": None, "a text": "object", "a list": [], "true": True, "false": False, "a number": 7, "of type array": {"type": "array"},
    "of an unknown type": {"type": "thing"}, "without a type": {}, "with a type that is a list": {"type": ["object", "null"]},
    "with properties that are a list": {"type": "object", "properties": []}, "with required that is text": {"type": "object", "required": "a"},
    "with a remote $ref": {"type": "object", "properties": {"a": {"$ref": "http://169.254.169.254/latest/meta-data"}}},
    "with a $ref to a file": {"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}},
    "with a $ref to nothing": {"type": "object", "properties": {"a": {"$ref": "#/$defs/nothing"}}},
    "with a $ref to itself": {"type": "object", "properties": {"a": {"$ref": "#"}}},
    "that is only a $ref to itself": {"$ref": "#"},
    "with $refs in a circle": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    "of an unknown dialect": {"$schema": "https://example.invalid/schema", "type": "object"},
    "of a dialect that is no URI": {"$schema": "draft 7", "type": "object"},
    "of draft 4": {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": {"a": {"type": "integer", "minimum": 1, "exclusiveMinimum": True}}},
    "with an invalid pattern": {"type": "object", "properties": {"a": {"type": "string", "pattern": "(["}}},
    "with a pattern that explodes": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
    "with a pattern with look-ahead": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?=.*[0-9]).+$"}}},
    "nested 500 deep": None, "of 2 MB": None, "with 10,000 properties": None, "with 2^30 branches": None,
    "with an enum of 10,000": {"type": "object", "properties": {"a": {"enum": list(range(10_000))}}},
    "with an unknown format": {"type": "object", "properties": {"a": {"type": "string", "format": "moon-phase"}}},
    "with NUL in a property's name": {"type": "object", "properties": {"a\x00b": {"type": "string"}}},
    "with terminal escapes in a description": {"type": "object", "properties": {"a": {"type": "string", "description": "\x1b[2J"}}},
    "with multipleOf 0": {"type": "object", "properties": {"a": {"type": "number", "multipleOf": 0}}},
    "with minimum as text": {"type": "object", "properties": {"a": {"type": "number", "minimum": "0"}}},
}


@functools.cache
def schemas():
    deep = {"type": "object"}
    for _ in range(500):
        deep = {"type": "object", "properties": {"a": deep}}
    wide = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(10_000)}}
    branches = {"type": "object", "$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)}, "properties": {"a": {"$ref": "#/$defs/d0"}}}
    branches["$defs"]["d30"] = {"type": "integer"}
    made = {"nested 500 deep": deep, "with 10,000 properties": wide, "with 2^30 branches": branches,
            "of 2 MB": {"type": "object", "description": "x" * 2_000_000}}
    return {name: made.get(name, schema) for name, schema in SCHEMAS.items()}


TOOLS = {
    "a tool without a name": {"inputSchema": {"type": "object"}}, "a tool whose name is null": tool(None), "a tool whose name is a number": tool(7),
    "a tool with an empty name": tool(""), "a tool with a name of 200 characters": tool("n" * 200), "a tool with a name of 10,000 characters": tool("n" * 10_000),
    "a tool with blanks in its name": tool("two words"), "a tool with a slash in its name": tool("weird.name/with-slash"), "a tool with an emoji as its name": tool("\N{GRINNING FACE}"),
    "a tool with NUL in its name": tool("a\x00b"), "a tool with terminal escapes in its name": tool("a\x1b[2Jb"), "a tool with a line break in its name": tool("a\nb"),
    "a tool called like one of toolgate's": tool("ask_human"), "a tool called mcp_hostile_echo": tool("mcp_hostile_echo"), "a tool with a right-to-left override": tool("a\u202eb"),
    "a tool without a description": {"name": "bare", "inputSchema": {"type": "object"}}, "a tool whose description is null": tool("bare", description=None),
    "a tool whose description is a number": tool("bare", description=7), "a tool with a description of 1 MB": tool("bare", description="x" * 1_000_000),
    "a tool with terminal escapes in its description": tool("bare", description="\x1b]0;owned\x07\x1b[2J"), "a tool whose annotations are a list": tool("bare", annotations=[]),
    "a tool whose hints are text": tool("bare", annotations={"readOnlyHint": "yes", "destructiveHint": 1}), "a tool whose title is a number": tool("bare", title=7),
    "a tool that is null": None, "a tool that is text": "echo", "a tool that is a list": [], "a tool whose icons are a number": tool("bare", icons=7),
    "a tool whose _meta is a text": tool("bare", _meta="x"), "a tool with unknown members": tool("bare", execution={"taskSupport": "sometimes"}, vendor={"a": 1}),
    "a tool with an output schema that is null": tool("bare", outputSchema=None), "a tool with an output schema that is true": tool("bare", outputSchema=True),
    "a tool with an invalid output schema": tool("bare", outputSchema={"type": "thing"}), "a tool with a remote output schema": tool("bare", outputSchema={"$ref": "http://127.0.0.1:1/x"}),
}


def pages(*made):
    """Pages by cursor: each is (tools, next cursor)."""

    def act(exchange):
        cursor = exchange.params.get("cursor")
        index = int(cursor) if cursor else 0
        tools, following = made[min(index, len(made) - 1)]
        result = {"tools": tools, "ttlMs": 0, "cacheScope": "private"}
        if following is not None:
            result["nextCursor"] = following
        exchange.raw(encoded(exchange.answer(exchange.dressed(result))))

    return act


def page(**members):
    def act(exchange):
        exchange.raw(encoded(exchange.answer(exchange.dressed(members))))
    return act


def endless(make):
    def act(exchange):
        state = exchange.peer.state
        state["n"] = state.get("n", 0) + 1
        exchange.raw(encoded(exchange.answer(exchange.dressed(make(state["n"])))))
    return act


def rows():
    row = lambda name, transport, acts, good, **more: Situation(name, transport, acts, good, group="lists", command=more.pop("command", "list"), **more)
    for name, schema in schemas().items():
        tools = [ECHO, tool("odd", inputSchema=schema)]
        yield row(f"a tool has a schema {name}", "stdio", {}, ECHO_LISTED, tools=tools, source="docs/mcp-servers.md: the other tools work")
        yield row(f"its neighbour is called although a tool has a schema {name}", "stdio", {}, FINE, tools=tools, command="call", source="docs/mcp-servers.md: the other tools work")
    for name in ("with a remote $ref", "with $refs in a circle", "that is only a $ref to itself", "with an invalid pattern", "with 2^30 branches", "with a pattern that explodes"):
        arguments = '{"a": "' + "a" * 40 + '!"}'
        yield row(f"a tool is called whose schema is {name}", "stdio", {}, (FINE, refuses(), fails()), tools=[tool("odd", inputSchema=schemas()[name])], command="call", tool="odd",
                  arguments=arguments, source="bounded in time; nothing is fetched")
    for name, one in TOOLS.items():
        yield row(f"the list has {name}", "stdio", {}, ECHO_LISTED, tools=[ECHO, one], source="docs/mcp-servers.md: the other tools work")
    for name in ("a tool that is null", "a tool without a name", "a tool with a name of 200 characters", "a tool with an emoji as its name"):
        yield row(f"over HTTP the list has {name}", "json", {}, ECHO_LISTED, tools=[ECHO, TOOLS[name]], version="2026-07-28")
    many = [ECHO] + [tool(f"tool-{n:04}") for n in range(4999)]
    all_listed = lambda seen: None if "tool-4998" in seen.output and "tool-2500" in seen.output else "not all 5,000 tools are listed"
    source = "issue 17, item 11: 5,000 tools are listed"
    yield row("5,000 tools on one page", "stdio", {}, ECHO_LISTED, tools=many, check=all_listed, source=source)
    yield row("5,000 tools on one page over HTTP", "json", {}, ECHO_LISTED, tools=many, check=all_listed, source=source)
    fifty = [(many[n * 100:(n + 1) * 100], str(n + 1) if n < 49 else None) for n in range(50)]
    # No fault: the time since the last page is that of printing 5,000 tools.
    yield row("5,000 tools on 50 pages", "stdio", {"tools/list": pages(*fifty)}, ECHO_LISTED, check=all_listed, slack=10, source=source)
    single = [([tool(f"tool-{n:04}")], str(n + 1) if n < 499 else None) for n in range(500)]
    yield row("500 pages of one tool", "stdio", {"tools/list": pages(*single)}, lists("tool-0499|page"), source="listed, or the bound is reported")
    yield row("one of 5,000 tools is called", "stdio", {}, FINE, tools=[*many[1:], tool("zebra")], command="call", tool="zebra", source=source)
    yield row("100,000 tools", "stdio", {}, lists("echo|tool"), tools=lambda: [tool(f"t{n}") for n in range(100_000)], memory=500, slack=10, source="everything is bounded")
    yield row("no tools", "stdio", {}, lists(), tools=[])
    yield row("duplicate names", "stdio", {}, ECHO_LISTED, tools=[ECHO, {**ECHO, "description": "Another."}], check=lambda seen: None if re.search("twice|duplicate|more than once", seen.output) else "the second is not reported",
              source="docs/mcp-servers.md: names listed twice are reported")
    yield row("names that differ only in case", "stdio", {}, ECHO_LISTED, tools=[ECHO, tool("ECHO"), tool("Echo")])
    yield row("names that differ only beyond 64 characters", "stdio", {}, ECHO_LISTED, tools=[ECHO, tool("n" * 70 + "a"), tool("n" * 70 + "b")])
    yield row("names that differ only in characters that are replaced", "stdio", {}, ECHO_LISTED, tools=[ECHO, tool("a.b"), tool("a/b"), tool("a b"), tool("a_b")])
    for transport in ("stdio", "json"):
        how = "over stdio" if transport == "stdio" else "over HTTP"
        cursors = [
            ("the same cursor on each page", endless(lambda n: {"tools": [ECHO], "nextCursor": "x"}), ECHO_LISTED),
            ("cursors in a circle", endless(lambda n: {"tools": [ECHO], "nextCursor": "ab"[n % 2]}), ECHO_LISTED),
            ("pages without end", endless(lambda n: {"tools": [tool(f"t{n}")], "nextCursor": str(n)}),
             # Two bounds: over stdio a lower `max_tools` ends the list, over HTTP perhaps the start timeout.
             lists("t1|page", at_once=transport == "stdio")),
            ("empty pages without end", endless(lambda n: {"tools": [], "nextCursor": str(n)}), (lists("page"), fails("page"))),
            ("pages of 1 MB without end", endless(lambda n: {"tools": [tool(f"t{n}", description="x" * 1_000_000)], "nextCursor": str(n)}), (lists(), times_out("list"))),
            ("a cursor that is a number", page(tools=[ECHO], nextCursor=7), (ECHO_LISTED, fails("cursor"))),
            ("a cursor null", page(tools=[ECHO], nextCursor=None), ECHO_LISTED),
            ("an empty cursor", endless(lambda n: {"tools": [ECHO], "nextCursor": ""}), ECHO_LISTED),
            ("a cursor of 1 MB", endless(lambda n: {"tools": [tool(f"t{n}")], "nextCursor": "x" * 1_000_000 + str(n)}), lists("t1|cursor")),
            ("no tools member", page(items=[]), fails("tools")),
            ("tools null", page(tools=None), fails("tools")),
            ("tools that are an object", page(tools={"echo": ECHO}), fails("tools")),
            ("tools that are text", page(tools="echo"), fails("tools")),
            ("a second page that is an error", lambda exchange: exchange.raw(encoded(exchange.refusal(-32000, "no more"))) if exchange.params.get("cursor") else
             exchange.raw(encoded(exchange.answer(exchange.dressed({"tools": [ECHO], "nextCursor": "x"})))), (ECHO_LISTED, fails("no more"))),
            ("a second page that refuses the cursor", lambda exchange: exchange.raw(encoded(exchange.refusal(-32602, "bad cursor"))) if exchange.params.get("cursor") else
             exchange.raw(encoded(exchange.answer(exchange.dressed({"tools": [ECHO], "nextCursor": "x"})))), (ECHO_LISTED, fails("bad cursor"))),
            ("a second page that is never answered", lambda exchange: exchange.hang() if exchange.params.get("cursor") else
             exchange.raw(encoded(exchange.answer(exchange.dressed({"tools": [ECHO], "nextCursor": "x"})))), Ending("lists its first page", {0}, "its list of tools was not complete within", at_once=False, where="output")),
            ("an error", lambda exchange: exchange.raw(encoded(exchange.refusal(-32000, "no list today"))), fails("no list today")),
            ("method not found", lambda exchange: exchange.raw(encoded(exchange.refusal(-32601, "Method not found"))), (lists(), fails("not found"))),
            ("silence", lambda exchange: exchange.hang(), times_out("list")),
            ("another tool each time", endless(lambda n: {"tools": [ECHO, tool(f"t{n}")]}), ECHO_LISTED),
        ]
        for name, act, good in cursors:
            settings = {"max_tools": 1000} if name == "pages without end" and transport == "stdio" else None
            yield row(f"the list has {name} {how}", transport, {"tools/list": act}, good, version="2025-11-25" if transport == "stdio" else "2026-07-28", settings=settings)
        yield row(f"the list has an unknown resultType {how}", transport, {"tools/list": untyped}, fails("resultType"), version="2026-07-28",
                  source="MCP 2026-07-28: an unrecognized resultType is invalid")
    yield row("a tool that is not listed is called", "stdio", {}, refuses("no tool|echo"), command="call", tool="nothing", calls=0)
    yield row("a tool is called that is listed twice", "stdio", {}, (FINE, refuses("twice")), command="call", tools=[ECHO, {**ECHO, "description": "Another."}])
    yield row("list_changed without end while it is listed", "stdio", {"tools/list": lambda exchange: ([exchange.note("notifications/tools/list_changed") for _ in range(5000)], exchange.well())}, ECHO_LISTED)
    yield row("list_changed 5,000 times in a call", "stdio", {"tools/call": lambda exchange: ([exchange.note("notifications/tools/list_changed") for _ in range(5000)], exchange.well())}, FINE, command="call",
              check=lambda seen: None if sum(line.get("method") == "tools/list" for line in seen.log) < 50 else "the list was asked for each time")
    yield from handshakes()


def untyped(exchange):
    exchange.raw(encoded(exchange.answer({**exchange.result(), "resultType": "later"})))


def initialized(**changes):
    def act(exchange):
        result = {**exchange.result(), **changes}
        exchange.raw(encoded(exchange.answer({name: value for name, value in result.items() if value is not ...})))
    return act


def handshakes():
    listed = lists('"name": "echo"')
    either = (listed, fails())
    for transport in ("stdio", "json"):
        how = "over stdio" if transport == "stdio" else "over HTTP"
        def row(name, changes, good, method="initialize", **more):
            act = changes if callable(changes) else initialized(**changes)
            return Situation(f"the answer to {method} {name} {how}", transport, {method: act}, good, group="handshakes", version=more.pop("version", "2025-11-25" if method == "initialize" else "2026-07-28"),
                             command="list", **more)
        unannounced = "issue 17, item 11: a protocol version that was not announced is refused"
        for version in LEGACY:
            yield row(f"agrees on {version}", {"protocolVersion": version}, listed)
        for version in ("1999-01-01", "2099-01-01", "draft", "1.0", ""):
            yield row(f"has the version '{version}'", {"protocolVersion": version}, fails("version|revision|protocol"), source=unannounced)
        yield row("has the stateless version", {"protocolVersion": MODERN}, either)
        yield row("has a version that is a number", {"protocolVersion": 20251125}, fails())
        yield row("has a version null", {"protocolVersion": None}, fails())
        yield row("has no version", {"protocolVersion": ...}, fails())
        yield row("has no capabilities", {"capabilities": ...}, either)
        yield row("has capabilities null", {"capabilities": None}, either)
        yield row("has capabilities that are a list", {"capabilities": []}, either)
        yield row("has no tools among its capabilities", {"capabilities": {}}, (listed, lists(), fails()))
        yield row("has tools null among its capabilities", {"capabilities": {"tools": None}}, (listed, lists(), fails()))
        yield row("has tools true among its capabilities", {"capabilities": {"tools": True}}, (listed, lists(), fails()))
        yield row("has unknown capabilities", {"capabilities": {"tools": {}, "telepathy": {"level": 9}}}, listed)
        yield row("has no server info", {"serverInfo": ...}, either)
        yield row("has a server info null", {"serverInfo": None}, either)
        yield row("has a server without a name", {"serverInfo": {"version": "0"}}, either)
        yield row("has a server whose version is a number", {"serverInfo": {"name": "x", "version": 1}}, either)
        yield row("has a name with terminal escapes", {"serverInfo": {"name": "\x1b[2Jx", "version": "\x1b[2J"}}, listed)
        yield row("has a name of 1 MB", {"serverInfo": {"name": "x" * 1_000_000, "version": "0"}}, either)
        yield row("has instructions of 1 MB", {"instructions": "x" * 1_000_000}, listed)
        yield row("has instructions that are a number", {"instructions": 7}, either)
        yield row("is an error", lambda exchange: exchange.raw(encoded(exchange.refusal(-32602, "licence expired"))), fails("licence expired"))
        yield row("is an error of the method", lambda exchange: exchange.raw(encoded(exchange.refusal(-32601, "Method not found"))), fails("not found|-32601"))
        yield row("is the result null", lambda exchange: exchange.raw(encoded(exchange.answer(None))), fails())
        yield row("is an empty result", lambda exchange: exchange.raw(encoded(exchange.answer({}))), fails())
        yield row("is the request itself", lambda exchange: exchange.raw(encoded(exchange.message)), (fails(), times_out()))
        yield row("is silence", lambda exchange: exchange.hang(), times_out("handshake"))
        new = "server/discover"
        yield row("lists no versions", {"supportedVersions": []}, fails("version|revision"), new, source=unannounced)
        yield row("lists only a later version", {"supportedVersions": ["2099-01-01"]}, fails("version|revision|2099"), new, source=unannounced)
        yield row("lists versions as text", {"supportedVersions": MODERN}, (listed, fails()), new)
        yield row("lists a version that is a number", {"supportedVersions": [20260728, MODERN]}, either, new)
        yield row("lists no versions member", {"supportedVersions": ...}, fails(), new)
        yield row("has no capabilities member", {"capabilities": ...}, either, new)
        yield row("has no resultType", {"resultType": ...}, either, new)
        yield row("has an unknown resultType", {"resultType": "later"}, fails("resultType"), new,
                  source="MCP 2026-07-28: an unrecognized resultType is invalid")
        yield row("has no server info in _meta", {"_meta": ...}, listed, new, source="MCP 2026-07-28: SHOULD")
        yield row("has a _meta that is text", {"_meta": "x"}, either, new)
        yield row("has a server info of 1 MB", {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "x" * 1_000_000, "version": "0"}}}, either, new)
        yield row("has a negative ttl", {"ttlMs": -1}, listed, new)
        yield row("has a ttl that is text", {"ttlMs": "soon"}, either, new)
        yield row("has a huge ttl", {"ttlMs": 10**19}, either, new)
        yield row("is an error", lambda exchange: exchange.raw(encoded(exchange.refusal(-32603, "licence expired"))), fails("licence expired"), new)
        yield row("wants another version", lambda exchange: exchange.raw(encoded({**exchange.refusal(-32022, "Unsupported protocol version"), "error": {
            "code": -32022, "message": "Unsupported protocol version", "data": {"supported": ["2099-01-01"], "requested": MODERN}}})), fails("version|revision|2099"), new)
        yield row("is silence", lambda exchange: exchange.hang(), times_out("handshake"), new)
    for transport in ("stdio", "json"):
        how = "over stdio" if transport == "stdio" else "over HTTP"
        auto = lambda name, acts, good, **more: Situation(f"a server whose protocol version is detected {name} {how}", transport, acts, good, group="handshakes", version="auto", command="list", slack=6, **more)
        yield auto("refuses discovery and initialize", {"server/discover": lambda exchange: exchange.raw(encoded(exchange.refusal(-32601, "Method not found"))),
                                                       "initialize": lambda exchange: exchange.raw(encoded(exchange.refusal(-32602, "licence expired")))}, fails("licence expired"))
        yield auto("never answers discovery", {"server/discover": lambda exchange: exchange.hang()}, listed, source="MCP 2026-07-28: a timeout means a server of the sessions version")
        yield auto("answers discovery with an unreadable line", {"server/discover": lambda exchange: exchange.raw(b'{"jsonrpc":"2.0","id":1,"result":{"x":"\\ud83d"}}')}, (listed, fails()))
        yield auto("answers discovery with an error under the id null", {"server/discover": lambda exchange: exchange.raw(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}')}, listed)
        yield auto("answers discovery late", {"server/discover": lambda exchange: (exchange.pause(3), exchange.well())}, listed)
