#!/usr/bin/env python3
"""Lets the official clients work with a served agent, behind a proxy that breaks connections. `run_cases.py TOOLGATE CMD…`

Each CMD is a program that gets in its environment

  TOOLGATE_URL, TOOLGATE_KEY   the proxy, and a key
  DIRECT_URL                   the server itself
  SIGNED                       a webhook of Standard Webhooks' own library: {"secret", "body", "headers", "old_headers"}
"""

import base64
import datetime
import json
import os
import shlex
import subprocess
import sys
import tempfile

from standardwebhooks.webhooks import Webhook

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gateway"))

from breaking_proxy import BreakingProxy  # noqa: E402
from served import Served  # noqa: E402

CONFIG = """
store: { sqlite: { path: runs.db } }
gateway: { listen: "127.0.0.1:0" }
models:
  orders: { scripted: { file: conversation.yaml } }
  desk: { scripted: { file: desk.yaml } }
servers:
  shop: { stdio: { command: "TOOLGATE", args: [demo-server] } }
agents:
  orders: { model: orders }
  desk: { model: desk, servers: [shop], policy: default }
"""

CONVERSATION = """
turns:
  - say: I look both orders up, größer 🚚 than one fragment, so that a stream breaks in the middle of it.
    stream: { fragments: 40, delay_ms: 60 }
    calls:
      - { name: ext_lookup_order, arguments: { id: A-1077 } }
      - { name: ext_lookup_order, arguments: { id: A-1041 } }
  - expect: { contains: late }
    say: Order A-1077 is late 🚚, and there is no order A-1041.
    stream: { fragments: 40, delay_ms: 60 }
"""

DESK = """
turns:
  - calls:
      - { name: mcp_shop_find_customer, arguments: { name: Ada } }
      - { name: ext_lookup_order, arguments: { id: A-1077 } }
  - say: Ada is a customer.
"""


def signed():
    secret = "whsec_" + base64.b64encode(os.urandom(32)).decode()
    body, now = '{"type":"webhook.test","data":{}}', datetime.datetime.now(datetime.timezone.utc)

    def headers(sent_at):
        signatures = "v1,bm9uZQ== " + Webhook(secret).sign("msg_1", sent_at, body)
        return {"webhook-id": "msg_1", "webhook-timestamp": str(int(sent_at.timestamp())), "webhook-signature": signatures}

    old = now - datetime.timedelta(minutes=10)
    return {"secret": secret, "body": body, "headers": headers(now), "old_headers": headers(old)}


def main():
    binary, *commands = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "desk.yaml"), "w", encoding="utf-8") as file:
            file.write(DESK)
        with Served(binary, folder, CONFIG.replace("TOOLGATE", os.path.abspath(binary)), CONVERSATION) as server:
            for command in commands:
                proxy = BreakingProxy(server.port)
                environment = {
                    **os.environ, "TOOLGATE_URL": proxy.url, "TOOLGATE_KEY": server.key,
                    "DIRECT_URL": f"http://127.0.0.1:{server.port}", "SIGNED": json.dumps(signed()),
                }
                subprocess.run(shlex.split(command), env=environment, check=True, timeout=120)
                assert all(proxy.broken.values()), f"the proxy broke too little: {proxy.broken}"
                print(f"ok   {os.path.basename(command)}: {proxy.broken}")


if __name__ == "__main__":
    main()
