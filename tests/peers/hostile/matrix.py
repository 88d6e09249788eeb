"""The matrix: all situations, by name, and the subset that runs by default."""

import importlib
import re
from collections import defaultdict

from situation import Situation, completes

TABLES = ["answers", "http_rows", "stdio_rows", "lists", "moments", "runs"]
# The suffix of a name, after the misbehaviour: the transport, the protocol version, and the moment.
WAY = re.compile(r"( over stdio| over HTTP| in an event stream)?( without sessions)?(, (2025-11-25|2026-07-28))?( \((stdio|json|sse)\))?$")
MOMENT = re.compile(r"^(a stateless call|a stateless event stream|an event stream with the list|an event stream|over HTTP the list|a call|the list"
                    r"|initialize|discovery|each request|a process) (is answered with|gets|returns|has|exits|is|dies|closes)")
# Of the situations that share a misbehaviour, the default runs one in this many.
SHARE = 4


def rows():
    found = []
    for table in TABLES:
        for row in importlib.import_module(table).rows():
            row.table = table
            found.append(row)
    assert len({row.name for row in found}) == len(found), "two situations share a name"
    return found


def core():
    """Every misbehaviour, but not over each transport and protocol version: these take turns."""
    kinds = defaultdict(list)
    for row in rows():
        kinds[MOMENT.sub("", WAY.sub("", row.name))].append(row)
    return [row for turn, kind in enumerate(kinds.values()) for row in kind[turn % min(SHARE, len(kind))::SHARE]]


def find(table, name):
    """One situation. Imports only its table, because each server of the matrix starts with this."""
    if table == "healthy":
        return Situation(name, "stdio", group=table, good=completes())
    return next(row for row in importlib.import_module(table).rows() if row.name == name)
