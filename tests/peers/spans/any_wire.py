"""Model provider for any of the four APIs, which records its requests in the format of chat completions, so that rules
O1-O3 of check_spans.py can compare the spans of all of them. The APIs are those of tests/peers/providers: a request that the
vendor's own types would reject is refused.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "providers"))
from wires import INPUT, OUTPUT, WIRES  # noqa: E402


class AnyWire:
    def __init__(self, kind, turns, log):
        self.kind, self.wire, self.turns, self.log, self.served = kind, WIRES[kind](), turns, log, 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}{self.wire.base}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path, body):
        """(status, kind, bytes)"""
        start = time.time_ns()
        found = list(self.wire.check(body)) if self.wire.route(path) else [f"asked at {path}"]
        if found or self.served >= len(self.turns):
            return 400, "application/json", json.dumps(self.wire.error(400, "; ".join(found) or "the script is over")).encode()
        turn = self.turns[self.served]
        self.served += 1
        streaming = self.wire.streams(path, body)
        answer = self.wire.answer(turn, streaming)
        time.sleep(0.02)
        with open(self.log, "a") as file:
            record = {"kind": "llm", "start": start, "end": time.time_ns(), "status": 200,
                      "request": TOLD[self.kind](body), "response": told_answer(turn)}
            file.write(json.dumps(record) + "\n")
        return 200, "text/event-stream" if streaming else "application/json", answer


def told_answer(turn):
    calls = [{"id": id, "function": {"name": name, "arguments": json.dumps(arguments, separators=(",", ":"))}}
             for id, name, arguments in turn.get("calls") or []]
    message = {"role": "assistant", "content": turn.get("say"), "tool_calls": calls}
    return {"model": "m", "choices": [{"message": message}], "usage": {"prompt_tokens": INPUT, "completion_tokens": OUTPUT}}


def named(names):
    return [{"function": {"name": name}} for name in names]


def assistant(text, calls):
    return {"role": "assistant", "content": text, "tool_calls": [{}] * calls}


def tool(id, content, is_error=False):
    """Chat completions has no marker for an error, so toolgate writes it as text there, and in spans for any API."""
    return {"role": "tool", "content": f"Error: {content}" if is_error else content, "tool_call_id": id}


def text_of(content):
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content or [])


def chat(body):
    return body


def anthropic(body):
    messages = [{"role": "system", "content": text_of(body["system"])}] if body.get("system") else []
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else [{"type": "text", "text": message["content"]}]
        of = lambda *types: [block for block in blocks if block["type"] in types]
        if message["role"] == "assistant":
            messages.append(assistant(text_of(of("text")), len(of("tool_use"))))
            continue
        messages += [tool(block["tool_use_id"], text_of(block.get("content")), block.get("is_error", False)) for block in of("tool_result")]
        if of("text"):
            messages.append({"role": "user", "content": text_of(of("text"))})
    return {"messages": messages, "tools": named(tool["name"] for tool in body.get("tools") or [])}


def responses(body):
    messages = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "function_call_output":
            messages.append(tool(item["call_id"], text_of(item["output"])))
        elif kind in ("reasoning", "function_call") or item.get("role") == "assistant":
            if not messages or messages[-1]["role"] != "assistant":
                messages.append(assistant("", 0))
            messages[-1]["content"] += text_of(item.get("content")) if kind == "message" else ""
            messages[-1]["tool_calls"] += [{}] if kind == "function_call" else []
        else:
            messages.append({"role": "system" if item["role"] == "developer" else item["role"], "content": text_of(item["content"])})
    return {"messages": messages, "tools": named(tool["name"] for tool in body.get("tools") or [])}


def gemini(body):
    instructions = text_of((body.get("systemInstruction") or {}).get("parts"))
    messages = [{"role": "system", "content": instructions}] if instructions else []
    for content in body["contents"]:
        parts = [part for part in content["parts"] if not part.get("thought")]
        if content["role"] == "model":
            messages.append(assistant(text_of(parts), sum("functionCall" in part for part in parts)))
            continue
        for answer in (part["functionResponse"] for part in parts if "functionResponse" in part):
            [(key, told)] = answer["response"].items()
            messages.append(tool(answer.get("id"), told, key == "error"))
        if text_of(parts):
            messages.append({"role": "user", "content": text_of(parts)})
    declared = [one["name"] for tools in body.get("tools") or [] for one in tools.get("functionDeclarations") or []]
    return {"messages": messages, "tools": named(declared)}


TOLD = {"openai_chat": chat, "openai_responses": responses, "anthropic": anthropic, "gemini": gemini}


def handler(provider):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, kind, content = provider.answer(self.path, body)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    return Handler
