"""Reverse proxy in front of a gateway whose connections break, as those of a bad network do. It needs only the standard library.

- The response to the first POST with an `Idempotency-Key` that starts a run or uploads a file is lost, after the server sent it. Without a key,
  that of every POST is.
- Every stream of events breaks after some 2 KB; one of all runs, which begins without a cursor, after its first frame, which is
  before its first event.
- Every second `GET /v1/me` is refused with 503 and `Retry-After`.

`GET /broken` returns how often each of them happened.
"""

import http.client
import http.server
import json
import threading

STREAM_BYTES = 2000
TENANT_STREAMS = ("/v1/events", "/v1/approvals/events")
BUSY = {"code": "unavailable", "reason": "queue_full", "detail": "busy", "retryable": True, "retry_after_ms": 10}


class BreakingProxy(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), Forwarded)
        self.target, self.url = port, f"http://127.0.0.1:{self.server_port}"
        self.seen, self.broken, self.lock = set(), {"responses": 0, "streams": 0, "first frames": 0, "refused": 0}, threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def count(self, kind):
        with self.lock:
            self.broken[kind] += 1
            return self.broken[kind]

    def is_first(self, key):
        with self.lock:
            known = key in self.seen
            if key is not None:
                self.seen.add(key)
            return not known

    def handle_error(self, *_):
        pass


class Forwarded(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/broken":
            return self.reply(200, self.server.broken)
        if self.path == "/v1/me" and self.server.is_first("me"):
            self.server.count("refused")
            return self.reply(503, BUSY)
        if self.path == "/v1/me":
            self.server.seen.discard("me")
        self.forward()

    def do_POST(self):
        self.forward()

    def reply(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def forward(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.target, timeout=60)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        connection.request(self.command, self.path, body, dict(self.headers))
        response = connection.getresponse()
        if self.command == "POST" and self.path in ("/v1/runs", "/v1/files") and self.server.is_first(self.headers.get("Idempotency-Key")):
            response.read()
            self.server.count("responses")
            self.close_connection = True
            return
        is_stream = (response.getheader("Content-Type") or "").startswith("text/event-stream")
        whole = b"" if is_stream else response.read()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        self.send_header(*(("Transfer-Encoding", "chunked") if is_stream else ("Content-Length", str(len(whole)))))
        self.end_headers()
        self.wfile.write(whole)
        if is_stream and self.path.startswith(TENANT_STREAMS) and "Last-Event-ID" not in self.headers:
            self.break_after_first_frame(response)
        elif is_stream:
            self.break_after(response)
        connection.close()

    def break_after_first_frame(self, response):
        for line in response:
            self.write_chunk(line)
            if line == b"\n":
                self.server.count("first frames")
                self.close_connection = True
                return

    def break_after(self, response):
        left = STREAM_BYTES
        while left > 0 and (piece := response.read1(left)):
            self.write_chunk(piece)
            left -= len(piece)
        if left > 0:
            self.wfile.write(b"0\r\n\r\n")
        else:
            # Without the last chunk, the client notices that the response is not whole.
            self.server.count("streams")
            self.close_connection = True

    def write_chunk(self, piece):
        self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    def log_message(self, *_):
        pass
