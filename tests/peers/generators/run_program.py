#!/usr/bin/env python3
"""Runs a program over a generated client against a served agent. `run_program.py TOOLGATE PROGRAM…`"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gateway"))

from served import Served  # noqa: E402

CONFIG = """
store: { sqlite: { path: runs.db } }
models: { played: { scripted: { file: conversation.yaml } } }
agents: { orders: { model: played } }
"""

CONVERSATION = """
turns:
  - calls: [{ name: ext_lookup_order, arguments: { id: A-1077 } }]
  - say: Your order is late.
"""


def main():
    binary, *program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, Served(binary, folder, CONFIG, CONVERSATION) as server:
        environment = {**os.environ, "TOOLGATE_URL": f"http://127.0.0.1:{server.port}", "TOOLGATE_KEY": server.key}
        return subprocess.run(program, env=environment, timeout=120).returncode


if __name__ == "__main__":
    sys.exit(main())
