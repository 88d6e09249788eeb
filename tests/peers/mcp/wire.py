"""Minimal JSON-RPC over stdio for misbehaving servers. Standard library only."""

import json
import sys


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request, result):
    send({"id": request["id"], "result": result})


def refuse(request, code, message):
    send({"id": request["id"], "error": {"code": code, "message": message}})


def say(request, progress, message=None):
    token = request["params"]["_meta"]["progressToken"]
    params = {"progressToken": token, "progress": progress}
    if message:
        params["message"] = message
    send({"method": "notifications/progress", "params": params})


def messages(shake_hands=True, tools=None):
    """The messages of the client; the handshake is answered on the way."""
    for line in sys.stdin:
        message = json.loads(line)
        if shake_hands and message.get("method") == "initialize":
            answer(message, {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": tools or {}},
                "serverInfo": {"name": "fixture", "version": "0"},
            })
        elif shake_hands and message.get("method") == "server/discover":
            refuse(message, -32601, "Method not found")
        yield message


def tool(name, **more):
    return {"name": name, "description": name, "inputSchema": {"type": "object"}, **more}
