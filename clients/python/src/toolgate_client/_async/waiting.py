"""What differs between the asynchronous and the synchronous client."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

sleep = asyncio.sleep


async def call(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """The output of a tool."""
    output = function(**arguments)
    return await output if inspect.isawaitable(output) else output


async def all_of(answers: Iterable[Awaitable[Any]]) -> list[Any]:
    """All answers, which are computed at the same time. The first error is raised when every answer has ended."""
    found = await asyncio.gather(*answers, return_exceptions=True)
    for answer in found:
        if isinstance(answer, BaseException):
            raise answer
    return found
