"""2,000 concurrent streams, clients that send or read too slowly, and a server that keeps serving the others."""

import json
import os
import resource
import socket
import threading
import time

from served import Served, until

STREAMS = 2000
# The most that a stream may hold, in KiB: of one run, and of a run of its own. The second takes 18 to 29, because the
# allocator keeps pages of its own for each thread (decision 0062); the buffers of a connection in hyper would add 16.
MOST_HELD = 22
MOST_HELD_WITH_RUN = 36
# Streams that are opened before the memory of the others is measured.
FIRST_STREAMS = 400
# The seconds until the first poll of the store has woken each stream, which needs memory.
FIRST_POLL = 5

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


def of_one_run(binary, folder):
    allow_streams()
    with Served(binary, folder, CONFIG, CONVERSATION) as server:
        return "; ".join([many(server), slow_heads(server), slow_body(server), deaf(server)])


def of_many_runs(binary, folder):
    """A stream of each of many runs: its memory, and the cost of all of them while nothing happens.

    A process of its own, because one that had as many streams before would reuse their memory. The first of them include
    what the process allocates once, such as the page caches of the store's connections."""
    allow_streams()
    with Served(binary, folder, CONFIG, CONVERSATION) as server:
        return idle_streams(server)


def allow_streams():
    """Raises the limit of open files, for two such cases in this process."""
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * STREAMS + 400
    if files < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, most), most))


def waiting(server):
    made = server.must("POST", "/v1/runs", {"input": "wait", "external_tools": [{"name": "wait"}]})
    assert made["status"] == "pending", made
    return made


def finish(server, made):
    body = {"answers": [{"type": "result", "call_id": made["pending"][0]["call_id"], "output": "x"}]}
    return server.must("POST", f"/v1/runs/{made['id']}/resume", body)


def opened(server, path, extra=""):
    stream = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\nAuthorization: Bearer {server.key}\r\n{extra}\r\n"
    stream.sendall(head.encode())
    return stream


def many(server):
    made, before = waiting(server), server.memory_mib()
    streams = [opened(server, f"/v1/runs/{made['id']}/events") for _ in range(STREAMS)]
    for stream in streams:
        read_until(stream, b"execution.pending")
    held = (server.memory_mib() - before) * 1024 / STREAMS
    assert held <= MOST_HELD, f"{held:.1f} KiB for each stream"
    began = time.monotonic()
    finish(server, made)
    for stream in streams:
        read_until(stream, b"execution.completed")
    took = time.monotonic() - began
    [stream.close() for stream in streams]
    return f"{STREAMS} streams: all received the ending {took:.1f} s after the resume, {held:.1f} KiB each"


def idle_streams(server):
    runs, streams, held = [waiting(server)["id"] for _ in range(STREAMS)], [], []
    for part in runs[:FIRST_STREAMS], runs[FIRST_STREAMS:]:
        before = server.memory_mib()
        opening = [opened(server, f"/v1/runs/{run}/events") for run in part]
        for stream in opening:
            read_until(stream, b"execution.pending")
        time.sleep(FIRST_POLL)
        held.append((server.memory_mib() - before) * 1024 / len(part))
        streams += opening
    assert held[1] <= MOST_HELD_WITH_RUN, f"{held[1]:.1f} KiB for each further stream"
    worked = cpu_seconds(server)
    time.sleep(20)
    share = (cpu_seconds(server) - worked) / 20 * 100
    [stream.close() for stream in streams]
    return f"{STREAMS} streams of as many runs: {held[0]:.1f} KiB each, then {held[1]:.1f} KiB, {share:.1f} % of a core"


def settled_memory(server):
    """The memory in MiB, once two readings half a second apart hardly differ."""
    readings = [server.memory_mib()]

    def is_settled():
        time.sleep(0.5)
        readings.append(server.memory_mib())
        return abs(readings[-1] - readings[-2]) < 1

    until("the memory has settled", is_settled, 20)
    return readings[-1]


def cpu_seconds(server):
    with open(f"/proc/{server.process.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_until(stream, word):
    read = b""
    while word not in read:
        piece = stream.recv(65536)
        assert piece, f"the stream ended before {word}: {read[-300:]}"
        read += piece


def slow_heads(server):
    """Connections that never finish their head are closed, and do not block other clients."""
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
    [one.sendall(b"GET /healthz HTTP/1.1\r\nHo") for one in idle]
    began = time.monotonic()
    assert server.ask("GET", "/healthz")[0] == 200
    answered = time.monotonic() - began
    for one in idle:
        one.settimeout(40)
        while one.recv(4096):
            pass
    closed = time.monotonic() - began
    return f"100 partial heads: another is answered after {answered * 1000:.0f} ms, they are closed after {closed:.0f} s"


def slow_body(server):
    """A body that never arrives times out."""
    one = socket.create_connection(("127.0.0.1", server.port), timeout=90)
    one.sendall((
        f"POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.key}\r\n"
        'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"in').encode())
    began, answer = time.monotonic(), one.recv(4096)
    assert b" 408 " in answer.split(b"\r\n")[0], answer
    return f"half a body: 408 after {time.monotonic() - began:.0f} s"


def deaf(server):
    """Clients that never read cost the server no memory, and are disconnected."""
    before = server.memory_mib()
    streams = []
    for _ in range(100):
        made = waiting(server)
        stream = socket.socket()
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream.connect(("127.0.0.1", server.port))
        head = f"GET /v1/runs/{made['id']}/export HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n\r\n"
        stream.sendall(head.encode() * 50)
        streams.append(stream)
    held = settled_memory(server) - before
    assert server.ask("GET", "/healthz")[0] == 200
    [stream.close() for stream in streams]
    assert held < 100, f"{held:.0f} MiB for clients that do not read"
    return f"100 clients that never read hold {held:.0f} MiB"
