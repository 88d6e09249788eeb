"""Cases of the Python client, synchronous and asynchronous, in the environment of run_cases.py."""

import asyncio
import json
import os
from typing import Any

from toolgate_client import ApiError, AsyncToolgate, InvalidWebhook, Toolgate, ToolError, current_call, models, verify_webhook

LOOKUP: models.ExternalTool = {"name": "lookup_order", "description": "Looks an order up."}


def lookup_order(id: str) -> dict[str, str]:
    assert current_call()["arguments"] == {"id": id}
    if id != "A-1077":
        raise ToolError(f"there is no order {id}")
    return {"state": "late"}


async def lookup_order_later(id: str) -> dict[str, str]:
    await asyncio.sleep(0)
    return lookup_order(id)


def new_run(agent: str = "orders", **metadata: Any) -> models.NewRun:
    return {"agent": agent, "input": "How are A-1077 and A-1041?", "external_tools": [LOOKUP], "metadata": metadata}


def check_events(events: list[dict[str, Any]], whole: list[str | None]) -> None:
    """No event is missing or comes twice, and the fragments of each reply are its text."""
    assert [event["id"] for event in events if event["id"]] == whole, (events, whole)
    texts, text = [], ""
    for event in events:
        if event["type"] == "llm.text.delta":
            assert event["index"] == len(text), (event, text)
            text += event["text"]
        if event["type"] == "llm.call.completed":
            assert event["text"].startswith(text), (event, text)
            texts.append(text)
            text = ""
    assert any("🚚" in one for one in texts), texts


def runs_with_tools(client: Toolgate) -> None:
    run = client.run_with_tools(new_run(case="sync"), {"lookup_order": lookup_order})
    assert run["status"] == "completed" and run["output"], run
    assert "there is no order A-1041" in client.runs.export(run["id"])
    # The response to the first request was lost; the repeated one found the same run.
    listed = client.runs.list(metadata=json.dumps({"case": "sync"}), status=["completed", "failed"])
    assert [row["id"] for row in listed["data"]] == [run["id"]], listed


def other_exceptions_are_raised(client: Toolgate) -> None:
    def broken(id: str) -> None:
        raise ZeroDivisionError

    started = client.runs.create(new_run())
    try:
        client.answer_calls(started["id"], {"lookup_order": broken})
        raise AssertionError("the exception of a tool is raised")
    except ZeroDivisionError:
        pass
    assert client.runs.read(started["id"])["status"] == "pending"
    assert client.answer_calls(started["id"], {"lookup_order": lookup_order})


def streams_resume(client: Toolgate, direct: Toolgate) -> None:
    run = client.runs.create(new_run(), prefer="respond-async")["id"]
    events = list(client.events_with_tools(run, {"lookup_order": lookup_order}, include="content"))
    check_events(events, [event["id"] for event in direct.events(run)])
    assert list(client.events(run, after=events[-1]["id"])) == []


def approvals_are_decided(client: Toolgate) -> None:
    run = client.run_with_tools(new_run("desk"), {"lookup_order": lookup_order})
    assert [item["type"] for item in run["pending"]] == ["approval"], run
    approval = next(one for one in client.approvals.list()["data"] if one["run_id"] == run["id"])
    client.approvals.decide(approval["id"], {"decision": "approve", "digest": approval["digest"]})
    last = list(client.events(run["id"]))[-1]
    assert last["type"] == "execution.completed", last
    try:
        client.approvals.decide(approval["id"], {"decision": "deny"})
        raise AssertionError("a second decision is refused")
    except ApiError as error:
        assert (error.code, error.reason, error.retryable) == ("conflict", "already_decided", False), error.problem


def errors_are_typed(client: Toolgate) -> None:
    try:
        client.runs.create({"input": "?", "agent": "unknown"})
        raise AssertionError("an unknown agent is refused")
    except ApiError as error:
        assert (error.status, error.code) == (422, "validation"), error.problem
        assert error.problem["errors"][0]["pointer"] == "/agent", error.problem
    # The first request is refused with 503, and sent again.
    assert client.keys.read_me()["name"] == "key:tester"


def webhooks_are_verified() -> None:
    signed = json.loads(os.environ["SIGNED"])
    secret, body, headers = signed["secret"], signed["body"], signed["headers"]
    assert verify_webhook(secret, body, headers) == json.loads(body)
    assert verify_webhook(secret, body.encode(), {name.title(): value for name, value in headers.items()})
    forged = [
        ("whsec_bm9uZQ==", body, headers),
        (secret, body + " ", headers),
        (secret, body, {**headers, "webhook-id": "msg_2"}),
        (secret, body, {**headers, "webhook-signature": "v1,@@ v1, v1,é"}),
        (secret, body, signed["old_headers"]),
        (secret, body, {}),
    ]
    for case in forged:
        try:
            verify_webhook(*case)
            raise AssertionError(f"refused: {case}")
        except InvalidWebhook:
            pass


async def asynchronous(direct: Toolgate) -> None:
    tools = {"lookup_order": lookup_order_later}
    async with AsyncToolgate() as client:
        run = (await client.runs.create(new_run(), prefer="respond-async"))["id"]
        events = [event async for event in client.events_with_tools(run, tools, include="content")]
        check_events(events, [event["id"] for event in direct.events(run)])
        found = await client.run_with_tools(new_run("desk"), tools)
        assert [item["type"] for item in found["pending"]] == ["approval"], found
        await client.runs.cancel(found["id"])


with Toolgate() as client, Toolgate(os.environ["DIRECT_URL"]) as direct:
    runs_with_tools(client)
    other_exceptions_are_raised(client)
    streams_resume(client, direct)
    approvals_are_decided(client)
    errors_are_typed(client)
    asyncio.run(asynchronous(direct))
webhooks_are_verified()
