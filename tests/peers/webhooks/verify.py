"""Verifies recorded webhooks with the libraries that receivers use: that of Standard Webhooks, and OpenAI's.

`verify.py FILE`, where FILE holds {"now", "cases": [{"body", "headers", "secrets"}]}. Each case has to be accepted with
each of its secrets, and refused with another one, another body, another id and at another time. Both verifiers read the
clock, so it is set to when the requests were made.
"""

import base64
import datetime
import json
import sys
import time

import standardwebhooks.webhooks as standard
from openai import OpenAI

STRANGER = "whsec_" + base64.b64encode(b"a stranger's own thirty-two bytes").decode()


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        recorded = json.load(file)
    set_clock(recorded["now"])
    right = 0
    for case in recorded["cases"]:
        body, headers = case["body"], case["headers"]
        for secret in case["secrets"]:
            expect(taken(secret, body, headers), "a message as it was sent")
            right += 1
        expect(not taken(STRANGER, body, headers), "a stranger's secret")
        expect(not taken(case["secrets"][0], body + " ", headers), "another body")
        expect(not taken(case["secrets"][0], body, {**headers, "webhook-id": "msg_other"}), "another id")
        right += 3
    set_clock(recorded["now"] + 3600)
    expect(not taken(case["secrets"][0], body, headers), "an hour later")
    print(f"{right} verdicts are right, and an old message is refused")


def taken(secret: str, body: str, headers: dict) -> bool:
    """The verdict of both verifiers, which must agree."""
    verdicts = [by_standard_webhooks(secret, body, headers), by_openai(secret, body, headers)]
    expect(len(set(verdicts)) == 1, f"the verifiers agree: {verdicts}")
    return verdicts[0]


def by_standard_webhooks(secret: str, body: str, headers: dict) -> bool:
    try:
        return standard.Webhook(secret).verify(body, headers) == json.loads(body)
    except standard.WebhookVerificationError:
        return False


def by_openai(secret: str, body: str, headers: dict) -> bool:
    from openai import InvalidWebhookSignatureError

    try:
        OpenAI(api_key="none").webhooks.verify_signature(body, headers, secret=secret)
        return True
    except InvalidWebhookSignatureError:
        return False


def set_clock(now: int) -> None:
    """Sets the clock, which the verifiers read in two places."""

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(now, tz)

    standard.datetime = Clock
    time.time = lambda: float(now)


def expect(holds: bool, what: str) -> None:
    if not holds:
        sys.exit(f"wrong: {what}")


if __name__ == "__main__":
    main(sys.argv[1])
