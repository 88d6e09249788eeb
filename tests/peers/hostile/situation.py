"""A row of the matrix: the behaviour of the server, the command line of toolgate, and the good endings.

Where several endings are good the specification leaves the choice; an ending that is not in the row is a failure, and so are a panic,
memory beyond the bound, a call that the server received twice, a raw terminal escape in the output, and orphaned processes.
"""

import re

from peer import ADD, ECHO


class Timeouts:
    """The limits of the generated configuration, in seconds."""

    def __init__(self, start, call, total):
        self.start, self.call, self.total = start, call, total


# Where toolgate has to detect the misbehaviour at once, the timeouts are so long that a loaded machine does not reach
# them. Where only a timeout ends the call, they are short. A run shows that a hostile server costs one start timeout
# and not two, and that no other call waits for it.
DETECTED, AWAITED, IN_A_RUN = Timeouts(40, 40, 48), Timeouts(5, 3, 5), Timeouts(10, 5, 8)
# Seconds from the misbehaviour to the end of the process where toolgate can detect it at once: the shortest timeout,
# with a margin.
AT_ONCE = 30
MEMORY_MB = 300
# The texts of toolgate's own timeouts: an ending "at once" contains none of them.
TIMED_OUT = re.compile(r"neither an answer nor progress for|gave no answer within|did not answer the handshake within"
                       r"|did not list its tools within|did not complete its list of tools within"
                       r"|its list of tools was not complete within|was not ready within")


class Ending:
    """One good ending."""

    def __init__(self, label, exits, pattern="", status=(), at_once=True, where="error"):
        self.label, self.exits, self.status = label, exits, status
        self.pattern = re.compile(pattern, re.I | re.S)
        self.at_once, self.where = at_once, where

    def __str__(self):
        said = f" saying /{self.pattern.pattern}/" if self.pattern.pattern else ""
        return f"{self.label} (exit {'/'.join(map(str, sorted(self.exits)))}){said}"

    def misses(self, seen):
        """Why the observation is not this ending, or None."""
        if seen.exit not in self.exits:
            return f"exit {seen.exit}"
        if self.status and seen.status not in self.status:
            return f"status {seen.status}"
        if self.at_once and (TIMED_OUT.search(seen.error) or seen.status == "timed_out"):
            return "a timeout was waited for"
        if self.at_once and seen.since_strike is not None and seen.since_strike > AT_ONCE + seen.slack:
            return f"took {seen.since_strike:.1f} s after the misbehaviour"
        text = seen.error if self.where == "error" else seen.output
        if not self.pattern.search(text):
            return f"its text lacks /{self.pattern.pattern}/"
        if self.where == "error" and self.exits != {0} and "hostile" not in text:
            return "its text does not name the server"
        return None


def answers(pattern="fine"):
    return Ending("answers", {0}, pattern, ("answered",), where="output")


def fails(pattern=""):
    """The server is unavailable, broke off, refused or cannot be read: at once, and with the reason."""
    return Ending("fails at once", {5}, pattern)


def tool_error(pattern=""):
    return Ending("tool error", {3}, pattern, ("tool_error",), where="output")


def misfits(pattern=""):
    return Ending("invalid result", {7}, pattern, ("invalid_result",), where="output")


def times_out(pattern=""):
    """No answer in time: good only where toolgate cannot detect it earlier."""
    return Ending("times out", {5, 6}, pattern, at_once=False)


def asks(pattern=""):
    return Ending("asks", {10}, pattern, ("pending",), where="output")


def refuses(pattern=""):
    """Nothing is sent: no such tool, or arguments that do not fit."""
    return Ending("refuses", {2, 4}, pattern, where="output")


def lists(pattern="", at_once=True):
    return Ending("lists", {0}, pattern, at_once=at_once, where="output")


def completes(pattern=""):
    return Ending("run completes", {0}, pattern, at_once=False, where="output")


class Situation:
    def __init__(self, name, transport, acts=None, good=(), *, group, version="2025-11-25", command="call", tool="echo", arguments="{}",
                 source="", tools=None, capabilities=None, revision=None, session="session", opening=None, closing=None,
                 memory=MEMORY_MB, calls=1, slack=0, options=(), bound=None, check=None, program=None, settings=None, model_ms=0, skip=""):
        self.name, self.transport, self.acts, self.group = name, transport, acts or {}, group
        self.good = good if isinstance(good, (tuple, list)) else (good,)
        self.version, self.command, self.tool, self.arguments = version, command, tool, arguments
        self.source, self.revision, self.session = source, revision, session
        # A function builds a long list only where it is needed.
        self.listed = [ECHO, ADD] if tools is None else tools
        self.capabilities = {"tools": {"listChanged": True}} if capabilities is None else capabilities
        self.opening, self.closing = opening, closing
        # Judged besides the ending: peak MB, received tools/call requests, total seconds, a function of the
        # observation.
        self.memory, self.calls, self.slack, self.check = memory, calls, slack, check
        self.timeouts = IN_A_RUN if command == "run" else AWAITED if self.awaits_timeout() else DETECTED
        self.bound = bound or self.timeouts.start + self.timeouts.total + 20
        self.skip = skip
        self.options, self.program, self.settings, self.model_ms = list(options), program, settings or {}, model_ms

    @property
    def tools(self):
        return self.listed() if callable(self.listed) else self.listed

    def awaits_timeout(self):
        """Whether toolgate may end only with a timeout."""
        return any(not ending.at_once for ending in self.good)

    def is_idle(self):
        """Whether it spends its time waiting, so that more of its kind can run at a time."""
        return self.awaits_timeout() and self.group != "floods"
