"""Server that declares output schemas, and returns the result that the name of the tool states."""

import wire

SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
ANSWERS = {
    "keeps": {"content": [{"type": "text", "text": "three"}], "structuredContent": {"sum": 3}},
    "lies": {"content": [{"type": "text", "text": "three"}], "structuredContent": {"sum": "three"}},
    "forgets": {"content": [{"type": "text", "text": "three"}]},
}

BROKEN = {"content": [{"type": "text", "text": "three"}, {"type": "text", "text": 3}, {"type": "audio", "mimeType": "audio/wav"}]}

for message in wire.messages():
    if message.get("method") == "tools/list":
        tools = [wire.tool(name, outputSchema=SUM) for name in ANSWERS]
        tools.append(wire.tool("keeps"))
        tools.append({"name": "mumbles", "inputSchema": {"type": "object"}})
        wire.answer(message, {"tools": tools})
    elif message.get("method") == "tools/call":
        wire.answer(message, ANSWERS.get(message["params"]["name"], BROKEN))
