"""The server is killed while 200 runs are in progress: afterwards every run ends, no call is made twice, and a client
that follows the events misses none."""

import json
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from served import REPOSITORY, Served, until

RUNS = 200
FOLLOWED = 20
TURNS = 4

CONFIG = """
store: {{ sqlite: {{ path: runs.db }} }}
lease_s: 2
gateway: {{ listen: "127.0.0.1:0" }}
models: {{ played: {{ scripted: {{ file: conversation.yaml }} }} }}
servers:
  slow: {{ http: {{ url: "{url}" }}, max_concurrency: 256 }}
agents:
  worker: {{ model: played, servers: [slow], policy: bypass }}
"""


def conversation():
    calls = "      - { name: mcp_slow_slow, arguments: { ms: 400 } }\n" * 2
    turn = f"  - say: On I go.\n    calls:\n{calls}"
    return "turns:\n" + turn * TURNS + "  - say: Done.\n"


def run(binary, folder):
    log = os.path.join(folder, "wire.jsonl")
    tools = os.path.join(REPOSITORY, "target", "debug", "examples", "fault_server")
    witness = subprocess.Popen([tools, "--http", "0", "--log", log], stdout=subprocess.PIPE, text=True)
    try:
        url = json.loads(witness.stdout.readline())["url"]
        with Served(binary, folder, CONFIG.format(url=url), conversation()) as server:
            return survive(server, log)
    finally:
        witness.kill()


def survive(server, log):
    with ThreadPoolExecutor(16) as pool:
        begin = lambda n: server.must("POST", "/v1/runs", {"input": f"run {n}"}, Prefer="respond-async")["id"]
        runs = list(pool.map(begin, range(RUNS)))
    seen = {run: [] for run in runs[:FOLLOWED]}
    over = threading.Event()
    readers = [threading.Thread(target=follow, args=(server, run, seen[run], over)) for run in seen]
    [reader.start() for reader in readers]
    # In the middle: most calls of the second turn are in progress.
    until("calls are in progress", lambda: len(calls(log)) > RUNS * 2, 60)
    at_work = [row["status"] for row in pages(server)].count("running")
    server.kill()
    before = len(calls(log))
    server.start()
    ended = until("every run has ended", lambda: all_ended(server), 90)
    over.set()
    [reader.join(30) for reader in readers]

    statuses = {row["status"] for row in ended}
    assert len(ended) == RUNS and statuses == {"completed"}, f"{len(ended)} runs, {statuses}"
    keys = calls(log)
    twice = {key for key in keys if keys.count(key) > 1} if len(keys) != len(set(keys)) else set()
    assert not twice, f"made twice: {sorted(twice)[:5]}"
    for run, events in seen.items():
        whole = [event_id for event_id, _ in server.events(run) if event_id]
        assert events == whole, f"{run}: {events} is not {whole}"
    return f"{at_work} of {RUNS} runs in progress when killed, {before} calls made before, {len(keys)} in all, none twice"


def follow(server, run, seen, over):
    """Reads a run's events to its end, over any number of connections."""
    while True:
        try:
            for event_id, event in server.events(run, seen[-1] if seen else None, timeout=5):
                if event_id:
                    seen.append(event_id)
                if event["type"] in ("execution.completed", "execution.failed", "execution.cancelled"):
                    return
        except (OSError, AssertionError, ValueError):
            pass
        if over.is_set():
            # Once more from where it stopped: the run has ended.
            over = threading.Event()
        time.sleep(0.1)


def calls(log):
    """The key of each call that reached the server."""
    keys = []
    with open(log) as lines:
        for line in lines:
            if '"tools/call"' not in line:
                continue
            try:
                message = json.loads(line).get("received")
            except ValueError:
                continue
            if message and message.get("method") == "tools/call":
                keys.append(message["params"]["_meta"]["io.toolgate/idempotency-key"])
    return keys


def pages(server):
    rows, after = [], ""
    while True:
        page = server.must("GET", f"/v1/runs?limit=100{after}")
        rows += page["data"]
        if not page["has_more"]:
            return rows
        after = f"&after={page['last_id']}"


def all_ended(server):
    rows = pages(server)
    return rows if all(row["status"] not in ("running", "interrupted", "pending") for row in rows) else None
