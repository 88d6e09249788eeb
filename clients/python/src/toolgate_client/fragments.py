"""Fragments of a reply, without the part that a resumed stream repeats."""

from . import models


class Fragments:
    """Position in the text and in the reasoning of the reply in progress, in characters."""

    def __init__(self) -> None:
        self._positions: dict[tuple[str, int], int] = {}

    def new(self, event: models.StreamEvent) -> models.StreamEvent | None:
        """The event; of a fragment, the part that was not returned before, or `None` if all of it was."""
        if event["type"] == "llm.call.started":
            self._positions.clear()
        if event["type"] != "llm.text.delta" and event["type"] != "llm.reasoning.delta":
            return event
        sequence = (event["type"], event["attempt"])
        seen = self._positions.get(sequence, 0)
        if event["next_index"] <= seen:
            return None
        self._positions[sequence] = event["next_index"]
        if event["index"] >= seen:
            return event
        rest = event.copy()
        rest["index"], rest["text"] = seen, event["text"][seen - event["index"] :]
        return rest
