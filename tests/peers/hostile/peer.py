"""Hostile MCP server: speaks correct MCP over stdio or HTTP, except for the fault of its situation.

`peer.py TABLE SITUATION --stdio` speaks on stdin and stdout; `peer.py TABLE SITUATION --http` prints the port it listens on. Sockets and
lines are written by hand, because a library would correct the faults. HOSTILE_LOG names a file that gets a JSON
line for each request and for the moment of the misbehaviour. Standard library only.
"""

import json
import os
import socket
import struct
import sys
import threading
import time

MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
IDENTITY = {"name": "hostile", "version": "0"}
SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
ECHO = {"name": "echo", "description": "Answers with fine.", "inputSchema": {"type": "object"}}
ADD = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}, "outputSchema": SUM}


def encoded(message):
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


class Log:
    def __init__(self):
        path = os.environ.get("HOSTILE_LOG")
        self.file = open(path, "a", buffering=1) if path else None
        self.lock = threading.Lock()

    def note(self, event, **more):
        if self.file:
            with self.lock:
                self.file.write(json.dumps({"at": time.time(), "event": event, **more}) + "\n")


class Peer:
    """The server behind both transports: situation, log, replies of the client to requests of the server."""

    def __init__(self, situation):
        self.situation = situation
        self.log = Log()
        self.counts, self.ids = {}, {}
        self.replies = {}
        self.arrived = threading.Condition()
        self.state = {}
        self.stop_reading = threading.Event()

    def receive(self, exchange):
        """Handles one message of the client; returns when its exchange has ended."""
        message = exchange.message
        if "method" not in message:
            with self.arrived:
                self.replies[str(message.get("id"))] = message
                self.arrived.notify_all()
            return exchange.accepted()
        method = message["method"]
        self.counts[method] = exchange.nth = self.counts.get(method, 0) + 1
        if "id" in message:
            self.ids[method] = message["id"]
        self.log.note("received", method=method, id=message.get("id"), nth=exchange.nth)
        act = self.situation.acts.get(f"{method} {exchange.nth}") or self.situation.acts.get(method)
        if act is None and "id" in message:
            act = self.situation.acts.get("*")
        if act:
            self.log.note("struck", method=method)
            return act(exchange)
        return exchange.well()

    def reply_to(self, key, seconds=6):
        with self.arrived:
            self.arrived.wait_for(lambda: str(key) in self.replies, seconds)
            return self.replies.get(str(key))


class Exchange:
    """One message of the client and the possible reactions. Each transport adds how to send bytes."""

    nth = 1

    def __init__(self, peer, message):
        self.peer, self.message = peer, message
        self.id, self.params = message.get("id"), message.get("params") or {}
        self.version = "2026-07-28" if MODERN in json.dumps(self.params.get("_meta", {})) else "2025-11-25"

    # The answers of a correct server.

    def result(self):
        method = self.message.get("method")
        if method == "initialize":
            wanted = self.params.get("protocolVersion")
            return {"protocolVersion": self.peer.situation.revision or (wanted if wanted in LEGACY else LEGACY[-1]),
                    "capabilities": self.peer.situation.capabilities, "serverInfo": IDENTITY}
        if method == "server/discover":
            return self.dressed({"supportedVersions": [MODERN], "capabilities": self.peer.situation.capabilities,
                                 "ttlMs": 0, "cacheScope": "private"})
        if method == "tools/list":
            page = {"tools": self.peer.situation.tools}
            return self.dressed({**page, "ttlMs": 0, "cacheScope": "private"} if self.version == "2026-07-28" else page)
        if method == "tools/call":
            return self.called("fine")
        if method == "ping":
            return {}
        return None

    def called(self, text="fine", **more):
        return self.dressed({"content": [{"type": "text", "text": text}], **more})

    def dressed(self, result):
        if self.version == "2025-11-25":
            return result
        return {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": IDENTITY}, **result}

    def answer(self, result):
        return {"jsonrpc": "2.0", "id": self.id, "result": result}

    def refusal(self, code, message):
        return {"jsonrpc": "2.0", "id": self.id, "error": {"code": code, "message": message}}

    def well(self):
        """The correct reaction."""
        if self.id is None:
            return self.accepted()
        method, speaks = self.message["method"], self.peer.situation.version
        foreign = {"2025-11-25": "server/discover", "2026-07-28": "initialize"}.get(speaks)
        result = None if method == foreign else self.result()
        if method == "subscriptions/listen" and speaks != "2025-11-25":
            return self.listened()
        if result is not None:
            return self.raw(encoded(self.answer(result)))
        if method == "initialize":
            error = self.refusal(-32022, "Unsupported protocol version")
            error["error"]["data"] = {"supported": [MODERN], "requested": self.params.get("protocolVersion")}
            return self.raw(encoded(error), status=400)
        return self.raw(encoded(self.refusal(-32601, "Method not found")), status=404 if speaks == "2026-07-28" else 200)

    def listened(self):
        params = {"notifications": {"toolsListChanged": True}, "_meta": {"io.modelcontextprotocol/subscriptionId": self.id}}
        self.note("notifications/subscriptions/acknowledged", params)
        self.hang()

    # Messages that any server may send besides.

    def note(self, method, params=None):
        self.more(encoded({"jsonrpc": "2.0", "method": method, "params": params or {}}))

    def ask(self, method, params=None, key="server-1"):
        self.more(encoded({"jsonrpc": "2.0", "id": key, "method": method, "params": params or {}}))
        return self.peer.reply_to(key)

    def progress(self, value, **more):
        token = (self.params.get("_meta") or {}).get("progressToken", 0)
        self.note("notifications/progress", {"progressToken": token, "progress": value, **more})

    def hang(self, seconds=300):
        time.sleep(seconds)

    def pause(self, seconds):
        time.sleep(seconds)


class StdioExchange(Exchange):
    def more(self, data):
        self.bytes(data + b"\n")

    def raw(self, data, status=None):
        self.bytes(data + b"\n")

    def bytes(self, data):
        with self.peer.writing:
            view = memoryview(data)
            while view:
                view = view[os.write(1, view):]

    def accepted(self):
        pass

    def die(self, code=4, stderr=b""):
        os.write(2, stderr)
        os._exit(code)


class HttpExchange(Exchange):
    """Answers either with one response (`raw`, `http`) or, in a situation that streams, with events."""

    streaming = False

    def __init__(self, peer, message, connection, headers, method):
        super().__init__(peer, message)
        self.connection, self.headers, self.verb = connection, headers, method

    def bytes(self, data):
        self.connection.sendall(data)

    def more(self, data):
        self.stream()
        self.chunk(self.event(data))

    def raw(self, data, status=200, headers=()):
        if self.streaming or (self.peer.situation.transport == "sse" and status == 200 and self.message.get("method") != "initialize"):
            self.stream()
            self.chunk(self.event(data))
            return self.finish()
        self.http(status, data, headers)

    @staticmethod
    def event(data):
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        return b"event: message\n" + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"

    def stream(self, kind="text/event-stream", headers=()):
        if not self.streaming:
            self.streaming = True
            self.head(200, [("content-type", kind), ("cache-control", "no-cache"), ("transfer-encoding", "chunked"), *headers])

    def chunk(self, data):
        if data:
            self.bytes(b"%x\r\n%s\r\n" % (len(data), data))

    def finish(self):
        self.bytes(b"0\r\n\r\n")

    def head(self, status, headers):
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}"]
        if self.message.get("method") == "initialize" and status == 200 and self.peer.situation.session:
            lines.append(f"mcp-session-id: {self.peer.situation.session}-{self.nth}")
        lines += [f"{name}: {value}" for name, value in headers]
        self.bytes(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def http(self, status, body=b"", headers=(), kind="application/json"):
        named = {name.lower() for name, _ in headers}
        headers = list(headers)
        if kind and "content-type" not in named:
            headers.append(("content-type", kind))
        if "content-length" not in named and "transfer-encoding" not in named and status != 204:
            headers.append(("content-length", str(len(body))))
        self.head(status, headers)
        self.bytes(body)

    def accepted(self):
        self.http(202, kind=None)

    def close(self):
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        raise Closed

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        raise Closed


REASONS = {200: "OK", 202: "Accepted", 204: "No Content", 404: "Not Found"}


class Closed(Exception):
    """The connection was ended on purpose."""


def serve_stdio(peer):
    peer.writing = threading.Lock()
    if peer.situation.opening:
        peer.log.note("struck", method="start")
        peer.situation.opening(StdioExchange(peer, {}))
    buffered = b""
    while True:
        if peer.stop_reading.is_set():
            time.sleep(600)
        try:
            data = os.read(0, 65536)
        except OSError:
            # A situation closed stdin: the process lives on.
            time.sleep(600)
        if not data:
            break
        buffered += data
        *lines, buffered = buffered.split(b"\n")
        for line in lines:
            exchange = StdioExchange(peer, json.loads(line))
            # Notifications and replies are handled in order; requests may block.
            if "id" in exchange.message and "method" in exchange.message:
                threading.Thread(target=peer.receive, args=(exchange,), daemon=True).start()
            else:
                peer.receive(exchange)
    peer.log.note("stdin closed")
    if peer.situation.closing:
        peer.situation.closing(StdioExchange(peer, {}))
    os._exit(0)


def serve_http(peer):
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve_connection, args=(peer, connection), daemon=True).start()


def serve_connection(peer, connection):
    reader = connection.makefile("rb")
    try:
        while True:
            line = reader.readline()
            if not line:
                return
            verb, path, _ = line.decode("latin-1").split(" ", 2)
            headers = {}
            while (line := reader.readline()) not in (b"\r\n", b""):
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.strip().lower()] = value.strip()
            body = reader.read(int(headers.get("content-length", 0)))
            message = json.loads(body) if body else {}
            exchange = HttpExchange(peer, message, connection, headers, verb)
            exchange.path = path
            if verb == "POST":
                if act := peer.situation.acts.get("POST"):
                    peer.log.note("struck", method=message.get("method"))
                    act(exchange)
                    continue
                peer.receive(exchange)
            else:
                peer.log.note("received", method=verb, last_event_id=headers.get("last-event-id"))
                act = peer.situation.acts.get(verb)
                if act:
                    peer.log.note("struck", method=verb)
                    act(exchange)
                else:
                    exchange.http(200 if verb == "DELETE" else 405, kind=None)
    except (Closed, OSError, ValueError):
        pass
    finally:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        connection.close()


if __name__ == "__main__":
    # The tables import this module. They have to raise the same `Closed` that is caught here.
    sys.modules["peer"] = sys.modules["__main__"]
    import matrix

    sys.setrecursionlimit(20_000)  # Some schemas are nested deeper than the default limit of the encoder.
    table, name, transport = sys.argv[1:4]
    peer = Peer(matrix.find(table, name))
    serve_stdio(peer) if transport == "--stdio" else serve_http(peer)
