"""The four provider APIs: the format of their answers, and the checks of their requests.
A request is checked against the types of the vendor's own SDK, and for the rules that those types cannot express: where
results belong, and that the turns this provider wrote come back as it wrote them.

A turn is {"think": text, "say": text, "calls": [(id, name, arguments)]}; all may be missing.
"""

import json
import re

from anthropic.types import message_create_params as anthropic_params
from google.genai import types as gemini_types
from openai.types.chat import completion_create_params as chat_params
from openai.types.responses import response_create_params as responses_params
from sdk_types import problems as type_problems

INPUT, OUTPUT = 100, 10


def sse(events, end=b""):
    return b"".join(events) + end


def data(value, event=None, newline="\n"):
    head = f"event: {event}{newline}" if event else ""
    return (head + f"data: {json.dumps(value)}{newline}{newline}").encode()


class Wire:
    """The common part of all APIs: the turns of this provider, as it wrote them."""

    def __init__(self):
        self.written = []

    def check_replay(self, seen):
        """`seen` are the assistant turns of a request, in the format of this API."""
        ours = [turn for turn in seen if self.is_signed(turn)]
        for turn in ours:
            if turn not in self.written:
                yield f"a signed turn is not replayed as it was written: {json.dumps(turn)[:400]}"
        for turn in self.written:
            if self.is_signed(turn) and turn not in seen:
                yield f"a signed turn is missing: {json.dumps(turn)[:400]}"


class Chat(Wire):
    kind, base, marks_reasoning = "openai_chat", "/v1", False

    def route(self, path):
        return path == "/v1/chat/completions"

    def streams(self, path, body):
        return body.get("stream", False)

    def is_signed(self, _turn):
        return False

    def check(self, body):
        streaming = body.get("stream")
        params = chat_params.CompletionCreateParamsStreaming if streaming else chat_params.CompletionCreateParamsNonStreaming
        yield from type_problems(body, params)
        owed = []
        for number, message in enumerate(body["messages"]):
            if owed:
                if message.get("role") != "tool" or message.get("tool_call_id") not in owed:
                    yield f"messages[{number}] stands where the result of {owed[0]} belongs"
                    return
                owed.remove(message["tool_call_id"])
            elif message["role"] == "tool":
                yield f"messages[{number}] answers no call"
            owed += [call["id"] for call in message.get("tool_calls") or []]
        if owed:
            yield f"{owed} have no result"

    def answer(self, turn, streaming):
        message = {"role": "assistant", "content": turn.get("say"), "refusal": None}
        if turn.get("calls"):
            message["tool_calls"] = [
                {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                for id, name, arguments in turn["calls"]
            ]
        usage = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
        finish = "tool_calls" if turn.get("calls") else "stop"
        whole = {"id": "c1", "object": "chat.completion", "created": 0, "model": "m"}
        if not streaming:
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return json.dumps({**whole, "choices": [choice], "usage": usage}).encode()
        deltas = [{"role": "assistant", "content": ""}] + [{"content": piece} for piece in halves(turn.get("say"))]
        for index, call in enumerate(message.get("tool_calls") or []):
            text = call["function"].pop("arguments")
            deltas.append({"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": ""}}]})
            deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in halves(text)]
        chunk = lambda **rest: data({**whole, "object": "chat.completion.chunk", **rest})
        events = [chunk(choices=[{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
        events.append(chunk(choices=[{"index": 0, "delta": {}, "finish_reason": finish}]))
        return sse([*events, chunk(choices=[], usage=usage)], b"data: [DONE]\n\n")

    def error(self, status, text):
        return {"error": {"message": text, "type": "invalid_request_error" if status < 500 else "server_error", "param": None, "code": None}}


class Responses(Wire):
    kind, base, marks_reasoning = "openai_responses", "/v1", True

    def route(self, path):
        return path == "/v1/responses"

    def streams(self, path, body):
        return body.get("stream", False)

    def is_signed(self, turn):
        return any(item["type"] == "reasoning" for item in turn)

    def check(self, body):
        streaming = body.get("stream")
        params = responses_params.ResponseCreateParamsStreaming if streaming else responses_params.ResponseCreateParamsNonStreaming
        yield from type_problems(body, params)
        if body.get("store") is not False:
            yield "store is not false: the provider would keep the conversation"
        if "reasoning.encrypted_content" not in (body.get("include") or []):
            yield "encrypted reasoning is not asked for, and cannot be replayed"
        owed, turn, seen = [], [], []
        for number, item in enumerate(body["input"]):
            theirs = item.get("type") in ("reasoning", "function_call") or item.get("role") == "assistant"
            if item.get("type") == "function_call_output":
                if item["call_id"] not in owed:
                    yield f"input[{number}] answers no call"
                else:
                    owed.remove(item["call_id"])
            elif item.get("type") == "function_call":
                owed.append(item["call_id"])
            elif owed:
                yield f"input[{number}] stands between a call and its output"
            if theirs:
                turn.append(item)
            elif turn:
                seen, turn = [*seen, turn], []
        if owed:
            yield f"No tool output found for function call {owed[0]}."
        yield from self.check_replay([*seen, turn] if turn else seen)

    def answer(self, turn, streaming):
        number = len(self.written)
        items = []
        if turn.get("think"):
            items.append({"id": f"rs_{number}", "type": "reasoning", "summary": [{"type": "summary_text", "text": turn["think"]}], "encrypted_content": f"sealed-{number}"})
        if turn.get("say"):
            text = {"type": "output_text", "text": turn["say"], "annotations": []}
            items.append({"id": f"msg_{number}", "type": "message", "status": "completed", "role": "assistant", "content": [text]})
        for index, (id, name, arguments) in enumerate(turn.get("calls") or []):
            items.append({"id": f"fc_{number}_{index}", "type": "function_call", "status": "completed", "call_id": id, "name": name, "arguments": json.dumps(arguments)})
        self.written.append(items)
        usage = {
            "input_tokens": INPUT, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": OUTPUT,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": INPUT + OUTPUT,
        }
        response = {
            "id": f"resp_{number}", "object": "response", "created_at": 0, "model": "m", "status": "completed", "error": None,
            "incomplete_details": None, "output": items, "usage": usage, "tools": [], "tool_choice": "auto",
            "parallel_tool_calls": True, "instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0,
        }
        if not streaming:
            return json.dumps(response).encode()
        events = []

        def event(type, **rest):
            events.append(data({"type": type, "sequence_number": len(events), **rest}, type))

        event("response.created", response={**response, "status": "in_progress", "output": [], "usage": None})
        for index, item in enumerate(items):
            at = {"output_index": index, "item_id": item["id"]}
            begun = {**item, "status": "in_progress"}
            if item["type"] == "reasoning":
                event("response.output_item.added", output_index=index, item={**item, "summary": [], "encrypted_content": "not yet"})
                part = {"type": "summary_text", "text": item["summary"][0]["text"]}
                event("response.reasoning_summary_part.added", **at, summary_index=0, part={"type": "summary_text", "text": ""})
                for piece in halves(part["text"]):
                    event("response.reasoning_summary_text.delta", **at, summary_index=0, delta=piece)
                event("response.reasoning_summary_text.done", **at, summary_index=0, text=part["text"])
            elif item["type"] == "message":
                event("response.output_item.added", output_index=index, item={**begun, "content": []})
                empty = {"type": "output_text", "text": "", "annotations": []}
                event("response.content_part.added", **at, content_index=0, part=empty)
                for piece in halves(item["content"][0]["text"]):
                    event("response.output_text.delta", **at, content_index=0, delta=piece, logprobs=[])
                event("response.output_text.done", **at, content_index=0, text=item["content"][0]["text"], logprobs=[])
                event("response.content_part.done", **at, content_index=0, part=item["content"][0])
            else:
                event("response.output_item.added", output_index=index, item={**begun, "arguments": ""})
                for piece in halves(item["arguments"]):
                    event("response.function_call_arguments.delta", **at, delta=piece)
                event("response.function_call_arguments.done", **at, arguments=item["arguments"])
            event("response.output_item.done", output_index=index, item=item)
        event("response.completed", response=response)
        return sse(events)

    def error(self, status, text):
        return {"error": {"message": text, "type": "invalid_request_error" if status < 500 else "server_error", "param": None, "code": None}}


class Anthropic(Wire):
    kind, base, marks_reasoning = "anthropic", "", True

    def route(self, path):
        return path == "/v1/messages"

    def streams(self, path, body):
        return body.get("stream", False)

    def is_signed(self, turn):
        return any(block["type"] in ("thinking", "redacted_thinking") for block in turn)

    def check(self, body):
        streaming = body.get("stream")
        params = anthropic_params.MessageCreateParamsStreaming if streaming else anthropic_params.MessageCreateParamsNonStreaming
        yield from type_problems(body, params)
        owed, before, seen = [], "assistant", []
        for number, message in enumerate(body["messages"]):
            place, content = f"messages[{number}]", message["content"]
            if message["role"] == before:
                yield f"{place}: two {before} messages in a row"
            before = message["role"]
            blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
            if not blocks:
                yield f"{place} is empty"
            if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
                yield f"{place}: text content blocks must be non-empty"
            results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            if [block["type"] for block in blocks[: len(results)]] != ["tool_result"] * len(results):
                yield f"{place}: results do not come first"
            if sorted(results) != sorted(owed):
                yield f"{place}: tool_use ids were found without tool_result blocks immediately after: {owed}, {results}"
            owed = [block["id"] for block in blocks if block["type"] == "tool_use"]
            if message["role"] == "assistant":
                seen.append(blocks)
        if owed:
            yield f"{owed} have no result"
        yield from self.check_replay(seen)

    def answer(self, turn, streaming):
        number = len(self.written)
        blocks = []
        if turn.get("think"):
            blocks.append({"type": "thinking", "thinking": turn["think"], "signature": f"c2lnLX{number}=="})
            blocks.append({"type": "redacted_thinking", "data": f"sealed-{number}"})
        if turn.get("say"):
            blocks.append({"type": "text", "text": turn["say"]})
        blocks += [{"type": "tool_use", "id": id, "name": name, "input": arguments} for id, name, arguments in turn.get("calls") or []]
        self.written.append(blocks)
        stop = "tool_use" if turn.get("calls") else "end_turn"
        usage = {"input_tokens": INPUT, "output_tokens": OUTPUT, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        message = {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "content": blocks,
            "stop_reason": stop, "stop_sequence": None, "usage": usage,
        }
        if not streaming:
            return json.dumps(message).encode()
        event = lambda type, **rest: data({"type": type, **rest}, type)
        events = [event("message_start", message={**message, "content": [], "stop_reason": None}), event("ping")]
        for index, block in enumerate(blocks):
            begun, deltas = dict(block), []
            if block["type"] == "thinking":
                begun = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": piece} for piece in halves(block["thinking"])]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            elif block["type"] == "text":
                begun["text"] = ""
                deltas = [{"type": "text_delta", "text": piece} for piece in halves(block["text"])]
            elif block["type"] == "tool_use":
                begun["input"] = {}
                deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *halves(json.dumps(block["input"]))]]
            events.append(event("content_block_start", index=index, content_block=begun))
            events += [event("content_block_delta", index=index, delta=delta) for delta in deltas]
            events.append(event("content_block_stop", index=index))
        events.append(event("message_delta", delta={"stop_reason": stop, "stop_sequence": None}, usage=usage))
        events.append(event("message_stop"))
        return sse(events)

    def error(self, status, text):
        kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_1"}


class Gemini(Wire):
    kind, base, marks_reasoning = "gemini", "/v1beta", True
    path = re.compile(r"/v1beta/models/([^/:]+):(generateContent|streamGenerateContent)(\?alt=sse)?$")
    fields = {
        "contents": list[gemini_types.Content], "systemInstruction": gemini_types.Content, "tools": list[gemini_types.Tool],
        "toolConfig": gemini_types.ToolConfig, "generationConfig": gemini_types.GenerationConfig,
        "safetySettings": list[gemini_types.SafetySetting], "cachedContent": str,
    }

    def route(self, path):
        return self.path.match(path)

    def streams(self, path, _body):
        return "streamGenerateContent" in path

    def is_signed(self, turn):
        return any("thoughtSignature" in part for part in turn)

    def check(self, body):
        for key, value in body.items():
            if key not in self.fields:
                yield f"body.{key} is unknown to generateContent"
            else:
                yield from type_problems(value, self.fields[key], f"body.{key}")
        owed, seen = [], []
        for number, content in enumerate(body["contents"]):
            parts = content.get("parts") or []
            if not parts:
                yield f"contents[{number}] has no parts"
            answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
            if [answer["name"] for answer in answers] != [call["name"] for call in owed]:
                yield f"contents[{number}]: the number of function response parts is not equal to that of the calls, or their order differs"
            for call, answer in zip(owed, answers):
                if call.get("id") != answer.get("id"):
                    yield f"contents[{number}]: the response to {call} has the id {answer.get('id')}"
            owed = [part["functionCall"] for part in parts if "functionCall" in part]
            if content.get("role") == "model":
                seen.append(parts)
        if owed:
            yield f"{owed} have no response"
        yield from self.check_replay(seen)

    def answer(self, turn, streaming):
        parts = []
        if turn.get("think"):
            parts.append({"text": turn["think"], "thought": True})
        if turn.get("say"):
            parts.append({"text": turn["say"]})
        for index, (id, name, arguments) in enumerate(turn.get("calls") or []):
            # Every other call has no id, as Gemini often does.
            call = {"name": name, "args": arguments, **({"id": id} if index % 2 == 0 else {})}
            parts.append({"functionCall": call, **({"thoughtSignature": "c2lnbmVk"} if index == 0 else {})})
        usage = {"promptTokenCount": INPUT, "candidatesTokenCount": OUTPUT, "totalTokenCount": INPUT + OUTPUT}
        whole = {"modelVersion": "m", "responseId": "r1"}

        def candidate(parts, **rest):
            return {"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, **rest}], **whole}

        if not streaming:
            self.written.append(parts)
            return json.dumps({**candidate(parts, finishReason="STOP"), "usageMetadata": usage}).encode()
        if not turn.get("calls"):
            # The signature of a plain answer is in an empty text part at the end.
            parts.append({"text": "", "thoughtSignature": "bGFzdA=="})
        self.written.append(parts)
        events = [data(candidate([part]), newline="\r\n") for part in parts[:-1]]
        last = {**candidate(parts[-1:], finishReason="STOP"), "usageMetadata": usage}
        return sse([*events, data(last, newline="\r\n")])

    def error(self, status, text):
        word = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}.get(status, "INTERNAL")
        return {"error": {"code": status, "message": text, "status": word}}


def halves(text):
    """Two pieces, because a stream with a single piece does not test streaming."""
    if not text:
        return []
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


WIRES = {wire.kind: wire for wire in (Chat, Responses, Anthropic, Gemini)}
