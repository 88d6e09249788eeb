"""Dies at start and says why, as a server does whose configuration is missing."""

import sys

print("reading configuration", file=sys.stderr)
print("fatal: SHOP_TOKEN is not set", file=sys.stderr)
sys.exit(3)
