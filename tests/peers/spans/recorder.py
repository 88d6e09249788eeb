"""recorder.py LOG DELAY_MS START_MS COMMAND ARG... - an MCP proxy over stdio that records requests.

Runs COMMAND and passes everything on in both directions. Each tools/call becomes one line of LOG when its answer goes
back: the request, its time and trace context, and whether it failed. Rule O4 of check_spans.py
compares the spans with these lines. Each answer is delayed by DELAY_MS first, so that calls of one tier are seen to overlap.
With `dies` in its place the server ends at its first call. The server starts after START_MS, and this wait is a line of LOG
too (rule O5).
"""

import json
import os
import subprocess
import sys
import threading
import time

log, dies, start_delay, command = sys.argv[1], sys.argv[2] == "dies", int(sys.argv[3]) / 1000, sys.argv[4:]
delay = 0 if dies else int(sys.argv[2]) / 1000


def keep(record):
    with open(log, "a") as file:
        file.write(json.dumps(record) + "\n")


if start_delay:
    began = time.time_ns()
    time.sleep(start_delay)
    keep({"kind": "wait", "for": "the start of a server", "start": began, "end": time.time_ns()})
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
asked = {}
speaking = threading.Lock()


def ask():
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message.get("method") == "tools/call":
            if dies:
                os._exit(3)
            asked[message["id"]] = time.time_ns(), message["params"]
        server.stdin.write(line)
        server.stdin.flush()
    server.stdin.close()


def say(line):
    with speaking:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def answer(line, message):
    start, call = asked.pop(message["id"])
    time.sleep(delay)
    result = message.get("result") or {}
    record = {
        "kind": "tool", "start": start, "end": time.time_ns(),
        "name": call["name"], "arguments": call.get("arguments") or {},
        **{field: (call.get("_meta") or {}).get(field) for field in ("traceparent", "tracestate", "baggage")},
        "is_error": "error" in message or bool(result.get("isError")),
    }
    keep(record)
    say(line)


threading.Thread(target=ask, daemon=True).start()
for line in server.stdout:
    message = json.loads(line)
    if message.get("id") in asked and "method" not in message:
        threading.Thread(target=answer, args=(line, message)).start()
    else:
        say(line)
sys.exit(server.wait())
