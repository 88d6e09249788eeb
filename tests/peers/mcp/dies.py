"""Server that dies at start and prints the reason, like one without its configuration."""

import sys

print("reading configuration", file=sys.stderr)
print("fatal: SHOP_TOKEN is not set", file=sys.stderr)
sys.exit(3)
