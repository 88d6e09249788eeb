"""Requests of the API, with retries."""

import os
import random
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx2

from ..errors import ApiError, ConnectionFailed
from ..files import FileContent, Form, form as form_of
from .waiting import sleep

#: The longest delay that the server may ask for, in seconds; for a longer one, the error is raised.
LONGEST_DELAY = 60
#: A request without preference is answered after at most 300 seconds.
TIMEOUT = httpx2.Timeout(330, connect=10)


def quoted(text: str) -> str:
    """A segment of a path."""
    return quote(text, safe="")


class AsyncTransport:
    """Sends requests, again after failures that pass. A repeated POST has the same `Idempotency-Key`, so it counts once."""

    def __init__(self, url: str | None, key: str | None, retries: int, http: httpx2.AsyncClient | None) -> None:
        self.url = (url or os.environ.get("TOOLGATE_URL") or "http://127.0.0.1:8484").rstrip("/")
        self.key = key or os.environ.get("TOOLGATE_KEY")
        self.retries = retries
        self.http = http or httpx2.AsyncClient(timeout=TIMEOUT)

    async def call(
        self,
        method: str,
        path: str,
        form: str,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: Any = None,
        file: FileContent | None = None,
        name: str | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Any:
        """The body of a successful response, in one of the forms `json`, `text`, `bytes` and `none`.

        A request with a `file` sends it with the `fields` as a form.
        """
        # Streams of events have pages as JSON.
        accepted = {"Accept": "application/json"} if form == "json" else {}
        parts = None if file is None else form_of(file, name, fields or {})
        response = await self.open(method, path, query=query, headers={**accepted, **(headers or {})}, body=body, parts=parts)
        if form == "json":
            return response.json() if response.content else None
        return {"text": response.text, "bytes": response.content}.get(form)

    async def open(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: Any = None,
        parts: Form | None = None,
        is_stream: bool = False,
    ) -> httpx2.Response:
        """A successful response. That of a stream is not read, and has to be closed."""
        request = self._request(method, path, query or {}, headers or {}, body, parts, is_stream)
        attempt = 0
        while True:
            failure = await self._try(request, is_stream)
            if isinstance(failure, httpx2.Response):
                return failure
            delay = failure.retry_after if isinstance(failure, ApiError) else None
            if attempt == self.retries or not may_repeat(failure, method) or (delay or 0) > LONGEST_DELAY:
                raise failure
            await sleep(delay if delay is not None else random.uniform(0.5, 1) * min(0.5 * 2**attempt, 8))
            attempt += 1

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        headers: Mapping[str, str | None],
        body: Any,
        parts: Form | None,
        is_stream: bool,
    ) -> httpx2.Request:
        sent = {name: value for name, value in headers.items() if value is not None}
        if method == "POST":
            sent.setdefault("Idempotency-Key", str(uuid.uuid4()))
        if self.key:
            sent["Authorization"] = f"Bearer {self.key}"
        # A stream sends a comment every 15 seconds, so a longer silence is a broken connection.
        timeout = httpx2.Timeout(45, connect=10) if is_stream else self.http.timeout
        parameters = {name: parameter(value) for name, value in query.items() if value is not None}
        content: dict[str, Any] = {"json": body} if parts is None else {**parts}
        return self.http.build_request(method, self.url + path, params=parameters, headers=sent, timeout=timeout, **content)

    async def _try(self, request: httpx2.Request, is_stream: bool) -> httpx2.Response | ApiError | ConnectionFailed:
        try:
            response = await self.http.send(request, stream=True)
            if not (response.is_success and is_stream):
                await response.aread()
            return response if response.is_success else ApiError.of(response)
        except httpx2.TransportError as error:
            failure = ConnectionFailed(f"{request.method} {request.url}: {error or type(error).__name__}")
            failure.__cause__ = error
            return failure


def may_repeat(failure: ApiError | ConnectionFailed, method: str) -> bool:
    """Whether the same request may succeed soon, and counts once if the first one arrived."""
    if isinstance(failure, ApiError):
        return failure.is_transient
    return method in ("GET", "POST") or isinstance(failure.__cause__, httpx2.ConnectError)


def parameter(value: Any) -> str:
    """A parameter of the query."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else ",".join(value) if isinstance(value, (list, tuple)) else str(value)
