"""Client of toolgate's HTTP API, synchronous (`Toolgate`) and asynchronous (`AsyncToolgate`)."""

from . import models
from ._async.client import AsyncToolgate
from ._sync.client import Toolgate
from .errors import ApiError, ConnectionFailed, ToolError, ToolgateError
from .tool_call import ToolFunctions, current_call
from .webhooks import InvalidWebhook, verify_webhook

__all__ = [
    "ApiError",
    "AsyncToolgate",
    "ConnectionFailed",
    "InvalidWebhook",
    "ToolError",
    "ToolFunctions",
    "Toolgate",
    "ToolgateError",
    "current_call",
    "models",
    "verify_webhook",
]
