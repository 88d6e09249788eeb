"""Correct server that does not exit when its stdin is closed: only a signal ends it."""

import signal

import wire

for message in wire.messages():
    if message.get("method") == "tools/list":
        wire.answer(message, {"tools": [wire.tool("wait")]})
while True:
    signal.pause()
