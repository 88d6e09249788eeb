"""Scenarios of an MCP server as tests of pytest: one test for each case, from the JSON report of `toolgate mcp test`.

Run: pytest examples/mcp_test
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

SCENARIOS = Path(__file__).with_name("shop.yaml")


def cases():
    program = os.environ.get("TOOLGATE_BIN", "toolgate")
    ran = subprocess.run([program, "mcp", "test", "--json", SCENARIOS], capture_output=True, text=True)
    # 0: every case passed, 1: a case did not. Any other code means that nothing ran.
    assert ran.returncode in (0, 1), ran.stderr
    return json.loads(ran.stdout)["cases"]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["title"])
def test_scenario(case):
    if case["outcome"] == "skipped":
        pytest.skip(case["reason"])
    findings = [finding for attempt in case["attempts"] for finding in attempt["findings"]]
    assert case["outcome"] == "passed", case.get("reason") or json.dumps(findings, indent=2)
