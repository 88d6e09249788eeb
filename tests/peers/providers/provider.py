"""Scripted provider for any of the four APIs, which rejects every request that its vendor would reject."""

import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from wires import WIRES

FAILURES = (429, 500, 503, 529, "cut", "closed")


class Provider:
    """`turns` are answered by how many turns of the model a request holds already, so that a repeated request gets the
    same answer. `bad_days` are the turns, by number, from which on it is down. `fails_half` makes it fail every other
    request, each in a way of its own."""

    def __init__(self, kind, turns, down_from=None, fails_half=None):
        self.wire, self.turns, self.down_from = WIRES[kind](), turns, down_from
        self.dice = random.Random(fails_half) if fails_half is not None else None
        self.problems, self.asked, self.failed, self.last, self.lock = [], 0, 0, None, threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}{self.wire.base}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path, body):
        """(status, headers, bytes, number of bytes that are sent)"""
        with self.lock:
            self.asked += 1
            self.last = body
            if not self.wire.route(path):
                self.problems.append(f"asked at {path}")
                return 404, {}, b"{}", None
            found = list(self.wire.check(body))
            if found:
                self.problems += found
                return self.failure(400, "; ".join(found))
            number = turns_in(body)
            if self.down_from is not None and number >= self.down_from:
                self.failed += 1
                return self.failure(503, "down for the day")
            if self.dice is not None and self.dice.random() < 0.5:
                self.failed += 1
                return self.bad_luck(path, body)
            if number >= len(self.turns):
                self.problems.append(f"asked for turn {number} of {len(self.turns)}")
                return self.failure(400, "the script is over")
            streaming = self.wire.streams(path, body)
            kind = "text/event-stream" if streaming else "application/json"
            return 200, {"content-type": kind}, self.wire.answer(self.turns[number], streaming), None

    def failure(self, status, text):
        hint = {"retry-after-ms": "20"} if status in (429, 503) else {}
        return status, {"content-type": "application/json", **hint}, json.dumps(self.wire.error(status, text)).encode(), None

    def bad_luck(self, path, body):
        what = self.dice.choice(FAILURES)
        if what == "closed":
            return None
        if what == "cut" and self.wire.streams(path, body):
            whole = WIRES[self.wire.kind]().answer({"say": "This is never to be taken for an answer."}, True)
            return 200, {"content-type": "text/event-stream"}, whole, len(whole) // 2
        return self.failure(what if isinstance(what, int) else 500, "bad luck")


def turns_in(body):
    """The number of model turns in a request."""
    count, before = 0, None
    for message in body.get("messages") or body.get("input") or body.get("contents") or []:
        theirs = message.get("role") in ("assistant", "model") or message.get("type") in ("reasoning", "function_call")
        count += theirs and not before
        before = theirs
    return count


def handler(provider):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            answer = provider.answer(self.path, body)
            if answer is None:
                self.close_connection = True
                return
            status, headers, content, sent = answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            # A truncated stream ends properly as HTTP: only its content shows that something is missing.
            content = content[:sent]
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            for at in range(0, len(content), 512):
                self.wfile.write(content[at : at + 512])
                self.wfile.flush()
            time.sleep(0)

        def log_message(self, *_):
            pass

    return Handler
