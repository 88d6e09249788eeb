"""Errors: responses of the API (`ApiError`), connections (`ConnectionFailed`), and those that a tool reports (`ToolError`)."""

from typing import Any, Literal

import httpx2

from . import models


class ToolError(Exception):
    """Error of a tool, raised by its function: the model reads the text and the run continues."""


class ToolgateError(Exception):
    """Failed request."""


class ConnectionFailed(ToolgateError):
    """Request without a whole response, after all retries. A request that has an effect may have taken effect."""


class ApiError(ToolgateError):
    """Error response: a problem document (RFC 9457). `code` and `reason` are stable, `detail` is for people."""

    def __init__(self, status: int, problem: Any, retry_after: float | None = None) -> None:
        self.status = status
        self.problem: models.Problem = problem
        #: Open: later versions of the server may send others.
        self.code: models.ErrorCode | Literal["unknown"] = problem["code"]
        self.reason: models.ErrorReason | None = problem.get("reason")
        self.detail: str = problem["detail"]
        self.request_id: str | None = problem.get("request_id")
        self.retryable: bool = problem.get("retryable", False)
        #: Seconds before a retry, if the server states them.
        self.retry_after = retry_after
        super().__init__(f"{self.code}: {self.detail} (request {self.request_id})")

    @classmethod
    def of(cls, response: httpx2.Response) -> "ApiError":
        """The error of a response that was read. One that is not from toolgate, but from a proxy, has the code `unknown`."""
        try:
            problem = response.json()
            problem["code"], problem["detail"]
        except (ValueError, KeyError, TypeError):
            is_busy = response.status_code in (429, 502, 503, 504)
            problem = {"code": "unknown", "detail": f"HTTP {response.status_code} without a problem", "retryable": is_busy}
        after = problem.get("retry_after_ms")
        if after is None and response.headers.get("retry-after", "").isdigit():
            after = int(response.headers["retry-after"]) * 1000
        return cls(response.status_code, problem, None if after is None else after / 1000)

    @property
    def is_transient(self) -> bool:
        """Whether the client sends the request again. A conflict passes soon only if the server says when."""
        if self.status == 409:
            return self.retryable and self.retry_after is not None
        return self.retryable and (self.status in (408, 429, 503) or self.code == "unknown")
