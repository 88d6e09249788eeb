"""Scripted model provider for OpenAI's chat completions, which replies with a list of turns and records its requests.

Each request becomes one line of the log: body, answer and times, which rules O1-O3 of check_spans.py compare the spans
with. A turn is {"say": text, "calls": [(id, name, arguments)]} or {"status": 503}; the n-th request gets the n-th turn.
"""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "gpt-5-mini-2026-05"


class Provider:
    def __init__(self, turns, log):
        self.turns, self.log, self.served = turns, log, 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def next_turn(self):
        turn = self.turns[self.served] if self.served < len(self.turns) else {"status": 400}
        self.served += 1
        return self.served, turn

    def keep(self, **record):
        with open(self.log, "a") as file:
            file.write(json.dumps({"kind": "llm", **record}) + "\n")


def completion(number, turn):
    message = {"role": "assistant", "content": turn.get("say")}
    if turn.get("calls"):
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments_text(arguments)}}
            for id, name, arguments in turn["calls"]
        ]
    usage = {
        "prompt_tokens": 100 * number, "completion_tokens": 10 + number, "total_tokens": 100 * number + 10 + number,
        "prompt_tokens_details": {"cached_tokens": 50 * number},
        "completion_tokens_details": {"reasoning_tokens": number},
    }
    finish = "tool_calls" if turn.get("calls") else "stop"
    return {
        "id": f"chatcmpl-{number}", "object": "chat.completion", "created": 0, "model": MODEL, "usage": usage,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }


def arguments_text(arguments):
    return arguments if isinstance(arguments, str) else json.dumps(arguments, separators=(",", ":"))


def chunks(answer):
    """The same answer in chunks, as `stream: true` sends it."""
    [choice] = answer["choices"]
    message = choice["message"]
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces(message["content"] or "")]
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        deltas.append({"tool_calls": [{"index": index, **call, "function": {**function, "arguments": ""}}]})
        for piece in pieces(function["arguments"]):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    envelope = {"id": answer["id"], "object": "chat.completion.chunk", "created": 0, "model": answer["model"]}
    for delta in deltas:
        yield {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**envelope, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield {**envelope, "choices": [], "usage": answer["usage"]}


def pieces(text, size=7):
    return [text[at:at + size] for at in range(0, len(text), size)]


def handler(provider):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            start = time.time_ns()
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            number, turn = provider.next_turn()
            status = turn.get("status", 200)
            time.sleep(0.02)
            if status != 200:
                provider.keep(start=start, end=time.time_ns(), status=status, request=request)
                self.reply(status, "application/json", json.dumps({"error": {"message": "not now"}}))
                return
            answer = completion(number, turn)
            if request.get("stream"):
                lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks(answer)]
                kind, body = "text/event-stream", "".join(lines) + "data: [DONE]\n\n"
            else:
                kind, body = "application/json", json.dumps(answer)
            # Recorded before it is sent: the client may finish before this thread does.
            provider.keep(start=start, end=time.time_ns(), status=status, request=request, response=answer)
            self.reply(status, kind, body)

        def reply(self, status, kind, body):
            body = body.encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    return Handler
