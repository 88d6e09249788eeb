"""Functions of tools, and the call for which one is executed."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypeAlias

from . import models

#: The function of each tool, which gets the arguments by name. The asynchronous client also accepts coroutine functions.
ToolFunctions: TypeAlias = Mapping[str, Callable[..., Any]]

CALL: ContextVar[models.PendingExternalResult] = ContextVar("toolgate_call")


def current_call() -> models.PendingExternalResult:
    """The call whose tool is executing. Its `call_id` is the same each time: use it as an idempotency key of an effect."""
    return CALL.get()
