"""Client of a server: the operations of the API by group, events of runs, and runs with tools of the application."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Literal, overload

import httpx2

from .. import models
from ..errors import ApiError, ConnectionFailed, ToolError
from ..fragments import Fragments
from ..tool_call import CALL, ToolFunctions
from .operations import (
    AsyncApprovals,
    AsyncFiles,
    AsyncKeys,
    AsyncRuns,
    AsyncSessions,
    AsyncStreamTickets,
    AsyncTools,
    AsyncWebhooks,
)
from .transport import AsyncTransport, quoted
from .waiting import all_of, call, sleep

ENDS = tuple(f"execution.{status}" for status in ("completed", "failed", "cancelled", "incomplete", "expired"))
#: Seconds before a broken stream is opened again.
RECONNECT_DELAY = 0.5
#: Reasons why a result is not taken although nothing is wrong: another process answered, or the run ended.
SETTLED = ("already_answered", "run_over", "too_late")


class AsyncToolgate:
    """Client of the server at `url` (default: `TOOLGATE_URL`, or this machine) with an API key (default: `TOOLGATE_KEY`).

    A request is sent again up to `retries` times after a failure that passes. `http` sets proxies, certificates and
    timeouts.
    """

    def __init__(
        self, url: str | None = None, key: str | None = None, *, retries: int = 4, http: httpx2.AsyncClient | None = None
    ) -> None:
        self._transport = AsyncTransport(url, key, retries, http)
        self.approvals = AsyncApprovals(self._transport)
        self.files = AsyncFiles(self._transport)
        self.keys = AsyncKeys(self._transport)
        self.runs = AsyncRuns(self._transport)
        self.sessions = AsyncSessions(self._transport)
        self.stream_tickets = AsyncStreamTickets(self._transport)
        self.tools = AsyncTools(self._transport)
        self.webhooks = AsyncWebhooks(self._transport)

    async def __aenter__(self) -> "AsyncToolgate":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._transport.http.aclose()

    async def events(
        self,
        run: str,
        *,
        after: str | None = None,
        include: Literal["content"] | None = None,
        until: Literal["end", "idle"] = "end",
    ) -> AsyncGenerator[models.Event]:
        """The events of a run after the event `after` (default: all), until the run ends, or `until="idle"`, is pending.

        A broken connection is opened again after the last event, so no event is missing and none comes twice. The same
        holds for fragments of a reply: append each `text`; `llm.call.started` begins a new reply.
        """
        path, query = f"/v1/runs/{quoted(run)}/events", {"include": include, "until": until}
        ends = ENDS if until == "end" else (*ENDS, "execution.pending")
        async with aclosing(self._stream(path, query, after)) as events:
            async for event in events:
                yield event
                if event["type"] in ends:
                    return

    @overload
    def all_events(
        self,
        *,
        agent: str | None = ...,
        session_id: str | None = ...,
        type: Sequence[models.EventType] | None = ...,
        after: str | None = ...,
        positions: Literal[False] = ...,
    ) -> AsyncGenerator[models.Event]: ...

    @overload
    def all_events(
        self,
        *,
        agent: str | None = ...,
        session_id: str | None = ...,
        type: Sequence[models.EventType] | None = ...,
        after: str | None = ...,
        positions: Literal[True],
    ) -> AsyncGenerator[models.Event | models.StreamMessageStreamPosition]: ...

    def all_events(
        self,
        *,
        agent: str | None = None,
        session_id: str | None = None,
        type: Sequence[models.EventType] | None = None,
        after: str | None = None,
        positions: bool = False,
    ) -> AsyncGenerator[Any]:
        """The events of all runs after the event `after` (default: from now on), without content and without an end.

        A broken connection is opened again after the last event, so no event is missing and none comes twice.

        With `positions`, also says how far the stream is: `{"type": "stream.position", "id": …}` comes whenever it was opened, and
        after many events that the filters exclude. Its `id` is a value for `after`, as that of an event is.
        """
        query = {"agent": agent, "session_id": session_id, "type": type}
        return self._stream("/v1/events", query, after, positions)

    @overload
    def approval_events(
        self,
        *,
        agent: str | None = ...,
        session_id: str | None = ...,
        type: Sequence[models.EventType] | None = ...,
        after: str | None = ...,
        positions: Literal[False] = ...,
    ) -> AsyncGenerator[models.Event]: ...

    @overload
    def approval_events(
        self,
        *,
        agent: str | None = ...,
        session_id: str | None = ...,
        type: Sequence[models.EventType] | None = ...,
        after: str | None = ...,
        positions: Literal[True],
    ) -> AsyncGenerator[models.Event | models.StreamMessageStreamPosition]: ...

    def approval_events(
        self,
        *,
        agent: str | None = None,
        session_id: str | None = None,
        type: Sequence[models.EventType] | None = None,
        after: str | None = None,
        positions: bool = False,
    ) -> AsyncGenerator[Any]:
        """Those of `all_events` that change the list of pending approvals."""
        query = {"agent": agent, "session_id": session_id, "type": type}
        return self._stream("/v1/approvals/events", query, after, positions)

    async def _stream(
        self, path: str, query: dict[str, Any], after: str | None, positions: bool = False
    ) -> AsyncGenerator[Any]:
        """The events of a stream, which is opened again when it breaks, until the server has no more."""
        fragments = Fragments()
        while True:
            headers = {"Accept": "text/event-stream", "Last-Event-ID": after}
            response = await self._transport.open("GET", path, query=query, headers=headers, is_stream=True)
            try:
                if response.status_code == 204:
                    return
                async for message in httpx2.EventSource(response, max_event_size=None):
                    after = message.id or after
                    if message.event == "server.draining" or (message.event == "stream.position" and not positions):
                        continue
                    if message.data:
                        event = fragments.new(json.loads(message.data))
                        if event is not None:
                            yield event
            except httpx2.SSEError as error:
                raise ConnectionFailed(str(error)) from error
            except httpx2.TransportError:
                pass
            finally:
                await response.aclose()
            await sleep(RECONNECT_DELAY)

    async def events_with_tools(
        self,
        run: str,
        tools: ToolFunctions,
        *,
        after: str | None = None,
        include: Literal["content"] | None = None,
    ) -> AsyncGenerator[models.Event]:
        """The events of a run. When the run requests calls of `tools`, executes them and resumes the run with the results.

        Ends when the run ends, or when it requires something else: an approval, an answer, a tool without a function. A
        function gets the arguments by name, and `current_call()` has the rest; it may be called again for the same call if
        a result is lost. The model reads the error of a `ToolError`; any other exception is raised.
        """
        async with aclosing(self.events(run, after=after, include=include)) as events:
            async for event in events:
                yield event
                if event["type"] == "execution.pending" and not await self.answer_calls(run, tools):
                    return

    async def answer_calls(self, run: str, tools: ToolFunctions) -> bool:
        """Executes the requested calls of `tools` and sends their results; whether the run requires nothing else."""
        pending = (await self.runs.read(run))["pending"]
        calls = [item for item in pending if item["type"] == "external_result" and item["tool"]["name"] in tools]
        if calls:
            answers = await all_of(answered(item, tools) for item in calls)
            try:
                await self.runs.resume(run, {"answers": answers, "partial": True}, prefer="respond-async")
            except ApiError as error:
                if error.reason not in SETTLED:
                    raise
        return all(item in calls or item["type"] == "task" for item in pending)

    async def continue_with_tools(self, run: str, tools: ToolFunctions) -> models.Run:
        """Executes the calls of `tools` of a run; the run when it has ended, or requires something else."""
        async for _ in self.events_with_tools(run, tools):
            pass
        return await self.runs.read(run)

    async def run_with_tools(self, body: models.NewRun, tools: ToolFunctions) -> models.Run:
        """Starts a run and executes its calls of `tools`; the run when it has ended, or requires something else."""
        run = await self.runs.create(body, prefer="respond-async")
        return await self.continue_with_tools(run["id"], tools)


async def answered(item: models.PendingExternalResult, tools: ToolFunctions) -> models.ResultAnswer:
    """The result of a call."""
    CALL.set(item)
    try:
        output = await call(tools[item["tool"]["name"]], item["arguments"])
    except ToolError as error:
        return {"type": "result", "call_id": item["call_id"], "error": str(error)}
    return {"type": "result", "call_id": item["call_id"], "output": output}
