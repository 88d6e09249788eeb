"""schemathesis generates valid and invalid requests from the API's description: no 5xx, and no undescribed response."""

import os
import subprocess
import sys

from served import Served, write

CONFIG = """
store: { sqlite: { path: runs.db } }
gateway: { listen: "127.0.0.1:0", limits: { requests_per_minute: 1000000, failures_per_minute: 1000000, concurrent_requests: 100 } }
models: { played: { scripted: { file: conversation.yaml } } }
servers:
  shop: { stdio: { command: toolgate, args: [demo-server] } }
agents:
  support: { model: played, servers: [shop] }
"""

CONVERSATION = """
turns:
  - calls: [{ name: mcp_shop_find_customer, arguments: { name: Ada } }, { name: ext_lookup_order, arguments: {} }]
  - say: Done.
"""


# A malformed request is refused with 400, which the description covers; a well-formed one can still be invalid, or come
# too late.
CHECKS = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "3xx", 401, 403, 404, 406, 409, 410, 412, 422, 429, "5xx"]

# Every generated request has a key. One with a ticket as well, which opens these streams without a key, is refused with 400.
[[operations]]
include-operation-id = ["watchApprovals", "watchEvents", "watchRun"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 406, 409, 410, 412, 422, 429, "5xx"]
"""


def run(binary, folder):
    write(os.path.join(folder, "schemathesis.toml"), CHECKS)
    with Served(binary, folder, CONFIG, CONVERSATION) as server:
        base = f"http://127.0.0.1:{server.port}"
        program = os.path.join(os.path.dirname(sys.executable), "schemathesis")
        asked = [program, "run", f"{base}/openapi.json", "--max-examples", EXAMPLES,
                 "--request-timeout", REQUEST_S, "--seed", "7", "--no-color", "-H", f"Authorization: Bearer {server.key}"]
        done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout[-12000:] + done.stderr[-2000:]
        assert server.process.poll() is None, "the server died"
        counted = [line.strip() for line in done.stdout.splitlines() if " generated, " in line]
        return counted[0] if counted else done.stdout[-300:]


EXAMPLES = "25"
# Other requests are answered sooner; the stream of a pending run stays open, and is read for so long.
REQUEST_S = "3"
