"""Starts, announces that it is installing, and never answers anything."""

import sys

print("installing 212 packages", file=sys.stderr, flush=True)
for _ in sys.stdin:
    pass
