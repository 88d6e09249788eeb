#!/usr/bin/env python3
"""The gateway under faults and load, and against its own description. `run_cases.py TOOLGATE [PART-OF-A-CASE'S-NAME]`"""

import os
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import described  # noqa: E402
import full_disk  # noqa: E402
import killed  # noqa: E402
import neighbour  # noqa: E402
import streams  # noqa: E402

CASES = {
    "requests made from the description": described.run,
    "killed while 200 runs are in progress": killed.run,
    "2,000 streams, and slow clients": streams.run,
    "a disk that fills up": full_disk.run,
    "a neighbour with 100,000 runs and 64 readers": neighbour.run,
}


def main():
    binary, word = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    chosen = {name: case for name, case in CASES.items() if word in name}
    if not chosen:
        print(f"no case has {word!r} in its name; there are: {', '.join(CASES)}")
        return 2
    failed = 0
    for name, case in chosen.items():
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                told = case(binary, folder)
                print(f"ok   {name}: {told} ({time.monotonic() - began:.0f} s)", flush=True)
            except Exception:  # a case that breaks has failed, whatever broke it
                failed += 1
                print(f"FAIL {name}\n{traceback.format_exc()}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} cases passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
