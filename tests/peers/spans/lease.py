"""lease.py STORE - waits until the process that executes a run renews its lease.
lease.py STORE LEASE_S LOG - after that process was killed, writes to the log until when it is known to have been alive,
and when it was killed.

Rule O6 of check_spans.py compares the end of what was in progress with these times.
"""

import json
import sqlite3
import sys
import time


def lease_until():
    with sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True) as store:
        return store.execute("SELECT lease_until FROM run WHERE status = 'running'").fetchone()[0]


if len(sys.argv) == 2:
    before = lease_until()
    while lease_until() == before:
        time.sleep(0.1)
else:
    alive_at = lease_until() - int(sys.argv[2]) * 1000
    with open(sys.argv[3], "a") as file:
        record = {"kind": "killed", "alive_at": alive_at * 1_000_000, "at": time.time_ns()}
        file.write(json.dumps(record) + "\n")
