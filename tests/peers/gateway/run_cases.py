#!/usr/bin/env python3
"""The gateway under faults and load, and against its own description. `run_cases.py TOOLGATE [PART-OF-A-CASE'S-NAME]`"""

import os
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import described  # noqa: E402
import full_disk  # noqa: E402
import killed  # noqa: E402
import neighbour  # noqa: E402
import streams  # noqa: E402

# Cases that wait most of the time, with servers of their own: they run beside each other.
WAITING = {
    "requests made from the description": described.run,
    "2,000 streams of as many runs": streams.of_many_runs,
}
# Cases that use both processors, one after the other.
LOADING = {
    # Beside the requests of schemathesis, its streams wait for a processor and hold more memory meanwhile.
    "2,000 streams of one run, and slow clients": streams.of_one_run,
    "killed while 200 runs are in progress": killed.run,
    "a disk that fills up": full_disk.run,
    "a neighbour with 100,000 runs and 64 readers": neighbour.run,
}


def main():
    binary, word = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    waiting, loading = ([item for item in cases.items() if word in item[0]] for cases in (WAITING, LOADING))
    if not waiting and not loading:
        print(f"no case has {word!r} in its name; there are: {', '.join(WAITING | LOADING)}")
        return 2
    with ThreadPoolExecutor(max_workers=len(WAITING)) as pool:
        passed = list(pool.map(lambda item: passes(binary, *item), waiting))
    passed += [passes(binary, *item) for item in loading]
    print(f"{sum(passed)} of {len(passed)} cases passed")
    return 0 if all(passed) else 1


def passes(binary, name, case):
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            print(f"ok   {name}: {case(binary, folder)} ({time.monotonic() - began:.0f} s)", flush=True)
            return True
        except Exception:  # a case that breaks has failed, whatever broke it
            print(f"FAIL {name}\n{traceback.format_exc()}", flush=True)
            return False


if __name__ == "__main__":
    sys.exit(main())
