"""Server that adds tools while it runs, and does not start while the file named by its argument exists."""

import os
import sys

import wire

if os.path.exists(sys.argv[1]):
    sys.exit("the door is locked")
names = ["learn", "grumble"]
print("ready", file=sys.stderr, flush=True)

for message in wire.messages(tools={"listChanged": True}):
    if message.get("method") == "tools/list":
        wire.answer(message, {"tools": [wire.tool(name) for name in names]})
    elif message.get("method") == "tools/call" and message["params"]["name"] == "learn":
        names.append(message["params"]["arguments"]["name"])
        for _ in range(5):
            wire.send({"method": "notifications/tools/list_changed"})
        wire.answer(message, {"content": []})
    elif message.get("method") == "tools/call":
        print("I would rather not", flush=True)
        print("asked to grumble", file=sys.stderr, flush=True)
