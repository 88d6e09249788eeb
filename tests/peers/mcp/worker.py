"""Server that records its received messages, and reacts to a call as the name of the tool states."""

import os
import sys
import time

import wire

NAMES = ["report", "slow", "steady", "silent", "die", "refuse", "nothing", "hologram"]
heard = []


def call(request):
    name = request["params"]["name"]
    if name == "report":
        wire.answer(request, {"content": [], "structuredContent": {"heard": heard, "environment": dict(os.environ)}})
    elif name == "slow":
        wire.say(request, 1, "started")
    elif name == "steady":
        for step in range(1, 6):
            time.sleep(0.1)
            wire.say(request, step)
        wire.answer(request, {"content": [{"type": "text", "text": "done"}]})
    elif name == "die":
        print("the roof is on fire", file=sys.stderr, flush=True)
        os._exit(7)
    elif name == "refuse":
        wire.refuse(request, -32000, "the till is closed")
    elif name == "nothing":
        wire.answer(request, {})
    elif name == "hologram":
        wire.answer(request, {"content": [{"type": "hologram", "beam": 1}, {"type": "text", "text": "and text"}]})


for message in wire.messages():
    heard.append(message)
    if message.get("method") == "tools/list":
        wire.answer(message, {"tools": [wire.tool(name) for name in NAMES]})
    elif message.get("method") == "tools/call":
        call(message)
