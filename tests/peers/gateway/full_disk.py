"""The disk fills up under the store: requests report it, acknowledged writes are kept, and free space lets runs resume."""

import resource
import signal

from served import Served, until

CONFIG = """
store: { sqlite: { path: runs.db } }
gateway: { listen: "127.0.0.1:0" }
models: { played: { scripted: { file: conversation.yaml } } }
agents:
  worker: { model: played }
"""

CONVERSATION = """
turns:
  - calls: [{ name: ext_wait }]
  - say: Done.
"""

# No file may grow beyond this: a write beyond it fails like one on a full disk.
ROOM = 3 * 1024 * 1024


def no_more_room():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))


def run(binary, folder):
    server = Served(binary, folder, CONFIG, CONVERSATION)
    server.prepare = no_more_room
    kept, refused = [], None
    with server:
        for n in range(2000):
            body = {"input": f"{n} " + "x" * 20_000, "external_tools": [{"name": "wait"}]}
            status, _, answer = server.ask("POST", "/v1/runs", body)
            if status == 201 and answer["status"] == "pending":
                kept.append(answer)
            else:
                refused = (status, answer)
                break
        assert refused, "the disk never filled up"
        status, answer = refused
        assert status == 503 and answer["code"] == "store_unavailable", refused
        assert server.ask("GET", "/healthz")[0] == 200, "the process is alive"
        ready = server.ask("GET", "/readyz")
        assert ready[0] == 503 and ready[2]["checks"]["store_writes"] == "failing", ready
        first = server.ask("GET", f"/v1/runs/{kept[0]['id']}")
        assert first[0] == 200 and first[2]["status"] == "pending", first
    server.prepare = None
    with server:
        until("the store is ready again", lambda: server.ask("GET", "/readyz")[0] == 200, 30)
        for made in kept:
            body = {"answers": [{"type": "result", "call_id": made["pending"][0]["call_id"], "output": "x"}]}
            answer = server.must("POST", f"/v1/runs/{made['id']}/resume", body)
            assert answer["status"] == "completed", answer
    return f"refused with {status} after {len(kept)} runs; with free space all of them completed"
