"""Server whose argument names the fault of its tool list: malformed, endless, noisy, broken or paged."""

import json
import sys

import wire

MODE = sys.argv[1]
SCHEMA = {"type": "object", "z": 1, "a": {"$ref": "#/$defs/b"}, "$defs": {"b": {}}, "x-own": [None]}


def noise():
    for line in ("Listening on port 3000", '{"level":"info","msg":"hello"}', "[]", "", "{"):
        print(line, flush=True)


def page(cursor):
    if MODE == "malformed":
        return {"tools": [
            wire.tool("first"), {"name": "bare"}, {"name": "permissive", "inputSchema": True},
            wire.tool("last", inputSchema=SCHEMA, annotations={"readOnlyHint": True}),
        ]}
    if MODE == "endless":
        return {"tools": [wire.tool("page-" + (cursor or "first"))], "nextCursor": "again"}
    if MODE == "paged":
        number = int(cursor or 0)
        more = {"nextCursor": str(number + 1)} if number < 2 else {}
        return {"tools": [wire.tool("tool-%d" % number)], **more}
    if MODE == "broken":
        return {"items": []}
    return {"tools": [wire.tool("only")]}


if MODE == "noisy":
    noise()
for message in wire.messages():
    if MODE == "noisy":
        noise()
    if message.get("method") == "tools/list":
        if MODE == "refusing":
            wire.refuse(message, -32601, "Method not found")
        else:
            wire.answer(message, page((message.get("params") or {}).get("cursor")))
