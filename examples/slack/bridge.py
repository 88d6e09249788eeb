#!/usr/bin/env python3
"""Approvals in a Slack channel: a message with two buttons for each call that requires approval. Standard library only.

toolgate posts a webhook to /toolgate; Slack posts a pressed button to /slack. Both are verified by their signatures. A
button holds the digest of the call as the message shows it, so toolgate refuses a decision on a call that has changed,
and a second decision. A call that is too long for a message has no button to approve it.

  TOOLGATE_URL             where toolgate serves (default: http://127.0.0.1:8484)
  TOOLGATE_KEY             an API key with the scopes approvals:read and approvals:decide
  TOOLGATE_WEBHOOK_SECRET  the secret of the webhook endpoint, `whsec_…`
  SLACK_BOT_TOKEN          the token of the Slack app, with the scope chat:write
  SLACK_SIGNING_SECRET     the signing secret of the Slack app
  SLACK_CHANNEL            the id of the channel
  SLACK_APPROVERS          the ids of the Slack users who may decide, with commas between them
  SLACK_API                Slack's API (default: https://slack.com/api)
  PORT                     the port on 127.0.0.1 (default: 8485)
"""

import base64
import hashlib
import hmac
import http.server
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

LONGEST = 2800  # characters of arguments; Slack refuses a text block above 3000
OLDEST = 300  # seconds


def post(url, body, token=None):
    """The answer to a JSON request; None as body makes it a GET."""
    headers = {"Content-Type": "application/json; charset=utf-8"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=10) as answer:
        return json.loads(answer.read() or b"null") if "json" in answer.headers.get("Content-Type", "") else None


def toolgate(path, body=None):
    url = os.environ.get("TOOLGATE_URL", "http://127.0.0.1:8484").rstrip("/")
    return post(url + path, body, os.environ.get("TOOLGATE_KEY"))


def is_recent(timestamp):
    return timestamp.isdigit() and abs(time.time() - int(timestamp)) <= OLDEST


def is_from_toolgate(headers, body):
    """A signature of Standard Webhooks."""
    secret = base64.b64decode(os.environ["TOOLGATE_WEBHOOK_SECRET"].removeprefix("whsec_"))
    timestamp = headers.get("webhook-timestamp", "")
    signed = f"{headers.get('webhook-id', '')}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    given = headers.get("webhook-signature", "").split()
    return is_recent(timestamp) and any(hmac.compare_digest(expected.encode(), one.encode()) for one in given)


def is_from_slack(headers, body):
    timestamp = headers.get("x-slack-request-timestamp", "")
    signed = f"v0:{timestamp}:".encode() + body
    expected = "v0=" + hmac.new(os.environ["SLACK_SIGNING_SECRET"].encode(), signed, hashlib.sha256).hexdigest()
    return is_recent(timestamp) and hmac.compare_digest(expected.encode(), headers.get("x-slack-signature", "").encode())


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def argument(name, value):
    return f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def section(text):
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def ask(approval):
    """Posts the message about an approval."""
    arguments = escaped("\n".join(argument(name, value) for name, value in approval["arguments"].items()))
    # Three backticks would end the block early and show the rest as text of the bridge.
    arguments = arguments.replace("```", "`\u200b``")
    is_whole = len(arguments) <= LONGEST
    value = json.dumps({"id": approval["id"], "digest": approval["digest"]})
    button = lambda text, action, style: {
        "type": "button", "text": {"type": "plain_text", "text": text}, "style": style, "action_id": action, "value": value
    }
    facts = [f"*{escaped(approval['tool_name'])}* of agent {escaped(approval['agent'])}", escaped(approval["reason"])]
    if approval["outcome_unknown"]:
        facts.append("The call was sent before and may have taken effect.")
    if not is_whole:
        facts.append(f"The arguments are too long for Slack: `toolgate approvals show {approval['id']}`")
    buttons = [button("Approve", "approve", "primary")] if is_whole else []
    blocks = [
        section("\n".join(facts)),
        section(f"```{arguments[:LONGEST] or '(no arguments)'}```"),
        {"type": "actions", "elements": [*buttons, button("Deny", "deny", "danger")]},
    ]
    api = os.environ.get("SLACK_API", "https://slack.com/api")
    message = {"channel": os.environ["SLACK_CHANNEL"], "text": f"Approve {approval['tool_name']}?", "blocks": blocks}
    answer = post(f"{api}/chat.postMessage", message, os.environ["SLACK_BOT_TOKEN"])
    if not answer["ok"]:
        raise OSError(f"Slack refused the message: {answer['error']}")


def decide(pressed):
    """Sends the decision of a pressed button, and replaces the buttons by what became of it."""
    user, action = pressed["user"]["id"], pressed["actions"][0]
    if user not in os.environ["SLACK_APPROVERS"].split(","):
        return post(pressed["response_url"], {"text": f"<@{user}> may not decide.", "response_type": "ephemeral", "replace_original": False})
    approval = json.loads(action["value"])
    decision = {"decision": action["action_id"], "digest": approval["digest"], "reason": f"decided in Slack by {user}"}
    try:
        toolgate(f"/v1/approvals/{urllib.parse.quote(approval['id'])}/decision", decision)
        outcome = f"{'Approved' if action['action_id'] == 'approve' else 'Denied'} by <@{user}>."
    except urllib.error.HTTPError as refused:
        outcome = f"Not decided: {escaped(json.load(refused)['detail'])}"
    shown = [block for block in pressed["message"]["blocks"] if block["type"] == "section"]
    post(pressed["response_url"], {"replace_original": True, "text": outcome, "blocks": [*shown, section(outcome)]})


class Bridge(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 1 << 20))
        try:
            self.answer(self.handle_post(body))
        except (OSError, ValueError, KeyError) as error:
            print(f"{self.path}: {error}", file=sys.stderr, flush=True)
            self.answer(502)  # toolgate sends the message again

    def handle_post(self, body):
        if self.path == "/toolgate" and is_from_toolgate(self.headers, body):
            event = json.loads(body)
            if event["type"] == "approval.requested":
                approval = toolgate(f"/v1/approvals/{urllib.parse.quote(event['data']['approval_id'])}")
                if approval["status"] == "pending":
                    ask(approval)
            return 200
        if self.path == "/slack" and is_from_slack(self.headers, body):
            decide(json.loads(urllib.parse.parse_qs(body.decode())["payload"][0]))
            return 200
        return 403

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8485"))), Bridge)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
