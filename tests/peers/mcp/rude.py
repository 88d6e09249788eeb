"""Server that answers the handshake with an error, or with an invalid answer."""

import sys

import wire

for message in wire.messages(shake_hands=False):
    if sys.argv[1] == "refusing":
        wire.refuse(message, -32602, "I only speak to friends")
    else:
        wire.answer(message, {"hello": "x" * 10_000})
