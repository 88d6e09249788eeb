"""Whole runs of an agent with a hostile and a healthy server: the run completes, and the healthy call is not delayed."""

import json
import time
from datetime import datetime

from answers import WIRE, ERRORS, raw
from http_rows import CONNECTIONS, KEPT, status
from moments import FLOODS, NOTES, flood
from situation import IN_A_RUN, Situation, completes
from stdio_rows import PYTHON_TRACE, die

# Milliseconds that a call may take that waits for no timeout of the hostile call, seconds of a run that waits for one
# start timeout and not for two, and seconds from its end to the end of the process.
UNDELAYED_MS, ONE_START_S, CLOSING_S = (IN_A_RUN.call - 0.5) * 1000, 2 * IN_A_RUN.start - 0.5, 15


def events(seen):
    found = []
    for line in seen.output.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            found.append(event)
    return found


def ended(seen, name):
    return [event for event in events(seen) if event.get("type") == "tool.mcp.completed" and event.get("tool_name") == name]


def healthy(seen):
    done = ended(seen, "mcp_healthy_echo")
    if not done or done[0].get("result") != "fine":
        return "the healthy call has no result"
    if done[0]["duration_ms"] > UNDELAYED_MS:
        return f"the healthy call took {done[0]['duration_ms']} ms"
    return None


def fails_at_once(seen):
    done = ended(seen, "mcp_hostile_echo")
    if not done or not done[0].get("is_error"):
        return "the hostile call did not fail"
    if done[0]["duration_ms"] > UNDELAYED_MS:
        return f"the hostile call failed after {done[0]['duration_ms']} ms"
    return healthy(seen)


def is_answered(seen):
    done = ended(seen, "mcp_hostile_echo")
    if not done or "fine" not in str(done[0].get("result")):
        return "the hostile call has no result"
    return healthy(seen)


def waits_once(seen):
    # A run waits for the tool list once, and the list delays no call.
    times = [datetime.fromisoformat(event["at"][:26]) for event in events(seen) if "at" in event]
    took = (times[-1] - times[0]).total_seconds() if times else seen.seconds
    if took > ONE_START_S:
        return f"the run took {took:.0f} s, more than one start timeout"
    if seen.seconds > took + CLOSING_S:
        return f"toolgate ended {seen.seconds - took:.0f} s after the run"
    return healthy(seen)


def rows():
    hang = lambda exchange: exchange.hang()
    call = lambda act: {"tools/call": act}
    wire = {**WIRE, **ERRORS}
    table = [
        ("never answers a call", "stdio", call(hang), healthy), ("never answers a call", "json", call(hang), healthy),
        ("dies in a call", "stdio", call(die(4, PYTHON_TRACE)), fails_at_once), ("closes the connection in a call", "json", CALLS_CLOSE, fails_at_once),
        ("answers a call with HTTP 500 and an error under the id null", "json", call(status(500, "an error under the id null")), fails_at_once),
        ("answers a call with HTTP 202", "json", call(status(202, "nothing")), fails_at_once),
        ("answers a call with a web page", "json", call(status(200, "a web page")), fails_at_once),
        ("never answers the list", "stdio", {"tools/list": hang}, waits_once), ("never answers the list", "json", {"tools/list": hang}, waits_once),
        ("never answers initialize", "stdio", {"initialize": hang}, waits_once), ("never answers initialize", "json", {"initialize": hang}, waits_once),
        ("dies in the list", "stdio", {"tools/list": die(4, PYTHON_TRACE)}, waits_once), ("answers the list with HTTP 503", "json", {"tools/list": status(503, "nothing")}, waits_once),
        ("answers the list with NaN", "stdio", {"tools/list": raw(WIRE["NaN"][0])}, waits_once),
        ("floods a call with log messages", "stdio", call(flood(FLOODS["log messages"])), healthy),
        ("floods a call with progress", "stdio", call(flood(FLOODS["progress"])), healthy),
        ("floods a call with pings", "stdio", call(flood(FLOODS["pings"])), healthy),
        ("floods a call with changes of the list", "stdio", call(flood(FLOODS["changes of the list"])), healthy),
        ("floods the stream of a call with log messages", "sse", call(flood(FLOODS["log messages"])), healthy),
        ("floods the stream of a call with progress", "sse", call(flood(FLOODS["progress"])), healthy),
        ("changes its list in a call", "stdio", call(NOTES["a change of the list"][0]), is_answered),
    ]
    for name, transport, acts, check in table:
        yield run(f"in a run a server {name} ({transport})", transport, acts, check)
    for name in ("a lone high surrogate in its text", "-0", "a byte order mark"):
        for transport in ("stdio", "json"):
            yield run(f"in a run a call is answered with {name} ({transport})", transport, call(raw(wire[name][0])), is_answered)
    for name in ("a result and an error", "neither a result nor an error", "an error under the id null", "its second half missing", "an error that is text"):
        for transport in ("stdio", "json"):
            yield run(f"in a run a call is answered with {name} ({transport})", transport, call(raw(wire[name][0])), fails_at_once)
    for version in ("2025-11-25", "2026-07-28"):
        # The model answers a second after the list, so that the call comes after the end of the connection.
        yield run(f"in a run a kept connection is closed before a call, {version}", "json", {"tools/list 1": close_idle_connection}, is_answered,
                  model_ms=1000, version=version, source=KEPT)
    yield run("in a run a server dies at its start", "stdio", {}, waits_once, opening=die(1, PYTHON_TRACE))
    yield run("in a run a server reads nothing", "stdio", {}, waits_once, opening=hang)
    yield run("in a run a server has 5,000 tools", "stdio", {}, healthy, tools=lambda: [{"name": f"tool-{n:04}", "inputSchema": {"type": "object"}} for n in range(5000)])


CALLS_CLOSE = {"tools/call": CONNECTIONS["a connection closed after the request"][0]}


def close_idle_connection(exchange):
    exchange.well()
    time.sleep(0.05)
    exchange.close()


def run(name, transport, acts, check, **more):
    more.setdefault("source", "other servers are not delayed (docs/fault-server.md)")
    return Situation(name, transport, acts, completes("over: "), group="runs", command="run", check=check, slack=15, bound=60, **more)
