"""A tenant with 100,000 runs and 64 readers of its lists: another tenant is answered, and the server stays ready. Its
latencies, alone and beside them, are reported but not asserted: they depend on the load of the machine."""

import http.client
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time

from served import Served

RUNS = 100_000
READERS = 64
SAMPLES = 150

CONFIG = """
store: { sqlite: { path: runs.db } }
gateway:
  listen: "127.0.0.1:0"
  limits: { requests_per_minute: 100000000, burst: 10000000 }
models: { played: { scripted: { file: conversation.yaml } } }
agents:
  worker: { model: played }
"""

CONVERSATION = """
turns:
  - say: Done.
"""

FILTERS = [
    "session_id=session_rare", "status=failed", "agent=rare", "status=failed&agent=rare",
    "session_id=session_rare&status=completed", "status=completed&agent=usual", "limit=20",
]


def run(binary, folder):
    with Served(binary, folder, CONFIG, CONVERSATION) as server:
        own = server.must("POST", "/v1/runs", {"input": "hello"})["id"]
        server.stop()
        crowd(os.path.join(folder, "runs.db"))
        server.start()
        reader = server.toolgate(
            "keys", "create", "reader", "--scope", "runs:read", "--tenant", "crowded", "--config", server.config).strip()
        alone = measured(server, own)
        load = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), str(server.port), reader, str(READERS)], stdout=subprocess.PIPE, text=True)
        assert load.stdout.readline().strip() == "reading"
        try:
            beside, ready = measured(server, own), server.ask("GET", "/readyz")
        finally:
            load.terminate()
            load.wait()
        assert ready[0] == 200, ready
        told = []
        for what in alone:
            (p50, p99), (p50_beside, p99_beside) = alone[what], beside[what]
            told.append(f"{what} p50/p99 {p50:.1f}/{p99:.1f} ms alone, {p50_beside:.1f}/{p99_beside:.1f} ms beside {READERS} readers")
        return "; ".join(told)


def crowd(path):
    """Runs of another tenant, as index rows without journals: lists read nothing else."""
    db = sqlite3.connect(path)
    rows = []
    for n in range(RUNS):
        rare = n % (RUNS // 20) == 0
        rows.append((
            f"run_{n:032x}", "rare" if n < 20 else "usual", "session_rare" if rare else f"session_{n}",
            "failed" if n < 20 else "completed", 2, "hello", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "crowded", 2))
    db.executemany(
        "INSERT INTO run (id, agent, session, status, version, title, created_at, updated_at, tenant, announced)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    db.commit()
    db.close()


def measured(server, own):
    """The median and the 99th percentile of a read, a list and a create, in milliseconds."""
    asks = {
        "read": ("GET", f"/v1/runs/{own}", None),
        "list": ("GET", "/v1/runs?status=completed", None),
        "create": ("POST", "/v1/runs", json.dumps({"input": "hello"})),
    }
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"}
    times = {what: [] for what in asks}
    for _ in range(SAMPLES):
        for what, (method, path, body) in asks.items():
            began = time.perf_counter()
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            answer.read()
            times[what].append((time.perf_counter() - began) * 1e3)
            assert answer.status < 300, (what, answer.status)
    ordered = {what: sorted(took) for what, took in times.items()}
    return {what: (took[len(took) // 2], took[len(took) * 99 // 100]) for what, took in ordered.items()}


def read_for_ever(port, key, number, counted):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    path = f"/v1/runs?{FILTERS[number % len(FILTERS)]}"
    while True:
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
            connection.getresponse().read()
            counted[number] += 1
        except (OSError, http.client.HTTPException):
            connection.close()
            time.sleep(0.01)


if __name__ == "__main__":
    port, key, readers = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    counted = [0] * readers
    for number in range(readers):
        threading.Thread(target=read_for_ever, args=(port, key, number, counted), daemon=True).start()
    while sum(counted) < readers:
        time.sleep(0.05)
    print("reading", flush=True)
    while True:
        time.sleep(1)
