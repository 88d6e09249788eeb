#!/usr/bin/env python3
"""An application with its own tools for an agent, over HTTP, with only Python's standard library.

It starts a run, follows its events, runs the requested tools, and sends their results. Connections break,
so it also shows how to resume: it disconnects in the middle of the stream, reconnects after the last event it received, and
misses nothing.

  TOOLGATE_URL  where toolgate serves (default: http://127.0.0.1:8484)
  TOOLGATE_KEY  an API key, if the server requires one
"""

import json
import os
import sys
import urllib.request
import uuid

URL = os.environ.get("TOOLGATE_URL", "http://127.0.0.1:8484").rstrip("/")
KEY = os.environ.get("TOOLGATE_KEY")

# The tools of this application. The model sees them as ext_lookup_order and ext_send_message.
ORDERS = {"A-1077": {"state": "late", "days": 4}, "A-1041": {"state": "delivered"}}


def lookup_order(id):
    return ORDERS.get(id) or {"error": f"there is no order {id}"}


def send_message(to, text):
    print(f"  (to {to}: {text})")
    return {"state": "sent"}


TOOLS = {"lookup_order": lookup_order, "send_message": send_message}

# The last event of a run is one of these.
ENDS = [f"execution.{status}" for status in ("completed", "failed", "cancelled", "incomplete", "expired")]

DECLARED = [
    {
        "name": "lookup_order",
        "description": "Looks an order up by its id.",
        "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    },
    {
        "name": "send_message",
        "description": "Sends a message to a customer.",
        "input_schema": {
            "type": "object",
            "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
            "required": ["to", "text"],
        },
    },
]


def request(method, path, body=None, **headers):
    """Sends a request and returns the open response."""
    if body is not None:
        headers["Content-Type"] = "application/json"
    if KEY:
        headers["Authorization"] = f"Bearer {KEY}"
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(URL + path, data, {k.replace("_", "-"): v for k, v in headers.items()}, method=method)
    try:
        return urllib.request.urlopen(asked, timeout=60)
    except urllib.error.HTTPError as refused:
        problem = json.load(refused)
        sys.exit(f"{problem['code']}: {problem['detail']} (request {problem['request_id']})")


def asked(method, path, body=None, **headers):
    """Sends a request and returns the body of the response."""
    with request(method, path, body, **headers) as answer:
        return json.load(answer)


def events(run, after):
    """The events of a run from the one after `after` on, each with its id; until the run is over."""
    headers = {"Accept": "text/event-stream"}
    if after:
        headers["Last-Event-ID"] = after
    with request("GET", f"/v1/runs/{run}/events", **headers) as stream:
        id, data = None, []
        for line in stream:
            line = line.decode().rstrip("\r\n")
            if not line and data:
                yield id, json.loads("\n".join(data))
                id, data = None, []
            elif line.startswith("id:"):
                id = line[3:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].lstrip())


def give(run):
    """Runs the tools whose results the run waits for, and returns the results."""
    found = asked("GET", f"/v1/runs/{run}")
    answers = []
    for item in found["pending"]:
        if item["type"] != "external_result":
            sys.exit(f"this application cannot answer a pending item of type {item['type']}")
        print(f"  {item['tool']['name']} {json.dumps(item['arguments'])}")
        output = TOOLS[item["tool"]["name"]](**item["arguments"])
        answers.append({"type": "result", "call_id": item["call_id"], "output": output})
    # The run continues in the background, and the events report its progress. Sending the same results twice is harmless.
    asked("POST", f"/v1/runs/{run}/resume", {"answers": answers}, Prefer="respond-async")


def main():
    body = {"agent": "orders", "input": "How are A-1077 and A-1041?", "external_tools": DECLARED}
    # With the same key a repeated request finds the same run, however often a connection breaks.
    started = asked("POST", "/v1/runs", body, Prefer="respond-async", Idempotency_Key=str(uuid.uuid4()))
    run, last, seen = started["id"], None, []
    print(f"run {run}")
    is_over, hung_up = False, False
    while not is_over:
        for id, event in events(run, last):
            if id:
                last = id
                seen.append((id, event["type"]))
                print(f"{id:>5} {event['type']}")
            if event["type"] == "execution.pending":
                give(run)
            is_over = event["type"] in ENDS
            if len(seen) == 6 and not hung_up:
                hung_up = True
                print("  -- the connection breaks; resuming from here")
                break
    answer = asked("GET", f"/v1/runs/{run}")
    if answer["status"] != "completed":
        sys.exit(f"the run is {answer['status']}: {answer['error']}")
    print(answer["output"]["text"])
    whole = [(id, event["type"]) for id, event in events(run, None) if id]
    if whole != seen:
        sys.exit(f"events were missed or told twice:\n{seen}\n{whole}")
    print(f"{len(seen)} events, none missed, none twice")


if __name__ == "__main__":
    main()
