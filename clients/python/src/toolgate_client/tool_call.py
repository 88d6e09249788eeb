"""The call for which the function of a tool is executed."""

from contextvars import ContextVar

from . import models

CALL: ContextVar[models.PendingExternalResult] = ContextVar("toolgate_call")


def current_call() -> models.PendingExternalResult:
    """The call whose tool is executing. Its `call_id` is the same each time: use it as an idempotency key of an effect."""
    return CALL.get()
