"""Cases of the Python client, synchronous and asynchronous, in the environment of run_cases.py."""

import asyncio
import json
import os
import tempfile
import urllib.request
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

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


def check_events(events: list[models.Event], whole: list[str | None]) -> None:
    """No event is missing or comes twice, and the fragments of each reply are its text."""
    assert [event["id"] for event in events if event["id"]] == whole, (events, whole)
    texts, text = [], ""
    for event in events:
        if event["type"] == "llm.text.delta":
            assert event["index"] == len(text), (event, text)
            text += event["text"]
        if event["type"] == "llm.call.completed":
            assert event.get("text", "").startswith(text), (event, text)
            texts.append(text)
            text = ""
    assert any("🚚" in one for one in texts), texts


def in_order(ids: list[str]) -> bool:
    """Whether no id comes twice, and each one after those before it: `57.1`, `57.2`, `57`, `58`."""
    places = [(int(seq), int(index or 2**32)) for seq, _, index in (one.partition(".") for one in ids)]
    return places == sorted(set(places))


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
    # The same events as pages.
    page = client.runs.list_events(run, include="content", limit=2)
    assert page["has_more"] and page["last_id"] == page["data"][1]["id"], page
    rest = client.runs.list_events(run, include="content", after=page["last_id"], limit=100)
    listed = [event["id"] for event in (*page["data"], *rest["data"])]
    assert listed == [event["id"] for event in events if event["id"]], listed
    of_all = client.runs.list_all_events(after="0", type=["execution.completed"], limit=100)
    assert run in [event["run_id"] for event in of_all["data"]], of_all


def streams_of_all_runs_resume(client: Toolgate, direct: Toolgate) -> None:
    """One stream is enough to work on several runs at the same time."""
    with closing(client.all_events(positions=True)) as stream:
        # The proxy breaks the first connection here: what happens until the next one would be missing without the position.
        assert next(stream)["type"] == "stream.position"
        runs = {direct.runs.create(new_run(), prefer="respond-async")["id"] for _ in range(3)}
        frames, in_progress = [], set(runs)
        for event in stream:
            frames.append(event)
            if event["type"] == "execution.pending":
                client.answer_calls(event["run_id"], {"lookup_order": lookup_order})
            if event["type"] == "execution.completed":
                in_progress.remove(event["run_id"])
            if not in_progress:
                break
    events = [event for event in frames if event["type"] != "stream.position"]
    assert len(frames) > len(events) and in_order([event["id"] or "" for event in events]), frames
    for run in runs:
        found = [(event["seq"], event["type"]) for event in events if event["run_id"] == run]
        whole = [(event["seq"], event["type"]) for event in direct.events(run) if event["id"]]
        assert [one for one in found if one[1] != "execution.pending"] == whole, (found, whole)
    # Any id of the stream is a place to continue from.
    with closing(client.all_events(after=events[7]["id"])) as stream:
        for event in events[8:]:
            assert next(stream) == event


def inbox_events_are_streamed(client: Toolgate, direct: Toolgate) -> None:
    types: list[models.EventType] = ["approval.requested", "approval.decided"]
    with closing(client.approval_events(agent="desk", type=types, positions=True)) as stream:
        position = next(stream)
        run = direct.run_with_tools(new_run("desk"), {"lookup_order": lookup_order})
        requested = next(event for event in stream if event["type"] != "stream.position")
        assert (requested["type"], requested["run_id"]) == ("approval.requested", run["id"]), requested
        approval = next(one for one in direct.approvals.list()["data"] if one["run_id"] == run["id"])
        direct.approvals.decide(approval["id"], {"decision": "deny"})
        decided = next(event for event in stream if event["type"] != "stream.position")
        assert (decided["type"], decided["run_id"]) == ("approval.decided", run["id"]), decided
    with closing(client.approval_events(type=["approval.decided"], after=position["id"])) as stream:
        assert next(stream) == decided
    assert client.approvals.list_events(type=["approval.decided"], after=position["id"])["data"] == [decided]


def tickets_open_streams(direct: Toolgate) -> None:
    ticket = direct.stream_tickets.create({"stream": "events"})
    with urllib.request.urlopen(urljoin(os.environ["DIRECT_URL"], ticket["url"]), timeout=10) as stream:
        assert stream.readline() == b"event: stream.position\n"


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
    try:
        next(client.all_events(after="999999"))
        raise AssertionError("a cursor that the server never sent is refused")
    except ApiError as error:
        assert (error.status, error.code) == (422, "validation"), error.problem
    # The first request is refused with 503, and sent again.
    assert client.keys.read_me()["name"] == "key:tester"


def files_are_uploaded(client: Toolgate, direct: Toolgate) -> None:
    content = b"%PDF-1.7\n\xff\0 a report"
    with tempfile.NamedTemporaryFile(suffix="-report.pdf") as on_disk:
        on_disk.write(content)
        on_disk.flush()
        uploads = [
            (client.files.upload(content, name="report.pdf", expires_in_s=600), "report.pdf"),
            (client.files.upload(on_disk.name), os.path.basename(on_disk.name)),
            (client.files.upload(Path(on_disk.name)), os.path.basename(on_disk.name)),
            (client.files.upload(open(on_disk.name, "rb"), name="b.pdf"), "b.pdf"),
        ]
    for file, name in uploads:
        assert (file["name"], file["media_type"], file["bytes"]) == (name, "application/pdf", len(content)), file
        assert client.files.download(file["id"]) == content
    file = uploads[0][0]
    assert client.files.read(file["id"]) == file
    # The response to the first request was lost; the repeated one found the same file.
    assert [one["id"] for one in client.files.list()["data"]] == [one["id"] for one, _ in reversed(uploads)]
    parts: list[models.InputPart] = [{"type": "text", "text": "Summarize it."}, {"type": "file", "file_id": file["id"]}]
    run = client.runs.create({**new_run(), "input": [{"role": "user", "content": parts}]})
    assert "media://sha256-" + file["sha256"] in client.runs.export(run["id"])
    for one, _ in uploads:
        direct.files.delete(one["id"])
    try:
        client.files.read(file["id"])
        raise AssertionError("the file was deleted")
    except ApiError as error:
        assert error.code == "not_found", error.problem


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
        file = await client.files.upload(b"text", name="notes.md")
        assert await client.files.download(file["id"]) == b"text" and file["media_type"] == "text/markdown", file
        direct.files.delete(file["id"])
        async with aclosing(client.all_events(agent="orders", type=["execution.completed"], positions=True)) as stream:
            assert (await anext(stream))["type"] == "stream.position"
            run = (await client.run_with_tools(new_run(), tools))["id"]
            assert run in [event.get("run_id") for event in (await anext(stream), await anext(stream))]
            try:
                await asyncio.wait_for(anext(stream), 1)
                raise AssertionError("no other event is selected")
            except TimeoutError:
                pass


with Toolgate() as client, Toolgate(os.environ["DIRECT_URL"]) as direct:
    runs_with_tools(client)
    other_exceptions_are_raised(client)
    streams_resume(client, direct)
    streams_of_all_runs_resume(client, direct)
    inbox_events_are_streamed(client, direct)
    tickets_open_streams(direct)
    approvals_are_decided(client)
    errors_are_typed(client)
    files_are_uploaded(client, direct)
    asyncio.run(asynchronous(direct))
webhooks_are_verified()
