"""What differs between the asynchronous and the synchronous client."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

sleep = time.sleep


def call(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """The output of a tool."""
    return function(**arguments)


def all_of(answers: Iterable[Any]) -> list[Any]:
    """All answers, which are computed one after the other."""
    return list(answers)
