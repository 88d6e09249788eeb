"""Server that asks in the middle of calls, over one stream for all of them. It writes the outcomes of its calls to a file."""

import itertools
import json
import sys
import threading
import time

import wire

NOTES = sys.argv[1]
NAMES = ["delete", "ask", "slow", "both", "deep", "read_no_more"]
numbers = itertools.count(1)
waiting = {}
lock = threading.Lock()


def note(what):
    with lock, open(NOTES, "a") as notes:
        notes.write(what + "\n")


def write(*messages):
    text = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    with lock:
        sys.stdout.write(text)
        sys.stdout.flush()


def question(message, schema=None):
    params = {"message": message, "requestedSchema": schema or {"type": "object", "properties": {}}}
    return {"id": "q%d" % next(numbers), "method": "elicitation/create", "params": params}


def ask(message, schema=None):
    asked = question(message, schema)
    waiting[asked["id"]] = [threading.Event(), None]
    write(asked)
    event, _ = waiting[asked["id"]]
    event.wait()
    return waiting[asked["id"]][1]


def result(request, text):
    return {"id": request["id"], "result": {"content": [{"type": "text", "text": text}]}}


def call(request):
    name, arguments = request["params"]["name"], request["params"]["arguments"]
    token = request["params"]["_meta"]["progressToken"]
    if name == "delete":
        time.sleep(0.05)
        answer = ask("Really delete?")
        did = "deleted" if answer.get("result", {}).get("action") == "accept" else "kept"
        note("%s %s" % (did, arguments["what"]))
        write(result(request, "%s %s" % (did, arguments["what"])))
    elif name == "ask":
        note("ask begins")
        answer = ask("Sure?")
        note("ask was told %s" % answer.get("result", {}).get("action"))
    elif name == "slow":
        note("slow begins")
        for step in range(10):
            time.sleep(0.1)
            params = {"progressToken": token, "progress": step}
            write({"method": "notifications/progress", "params": params})
        note("slow had its effect")
        write(result(request, "slow done"))
    elif name == "both":
        note("both")
        write(question("Sure?"), result(request, "done, and asked"))
    elif name == "deep":
        schema = {}
        for _ in range(100):
            schema = {"not": schema}
        write(result(request, json.dumps(ask("Deep?", schema))))
    elif name == "read_no_more":
        time.sleep(1.0)
        write(question("Sure?"))


for message in wire.messages():
    method = message.get("method")
    if method == "tools/list":
        write({"id": message["id"], "result": {"tools": [wire.tool(name) for name in NAMES]}})
    elif method == "tools/call":
        threading.Thread(target=call, args=(message,), daemon=True).start()
        if message["params"]["name"] == "read_no_more":
            time.sleep(600)
    elif method == "notifications/cancelled":
        note("cancelled")
    elif method is None and message.get("id") in waiting:
        waiting[message["id"]][1] = message
        waiting[message["id"]][0].set()
