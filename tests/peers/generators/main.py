"""Program over the generated client: starts a run, answers its call, and follows its events."""

import json
import os

import toolgate_generated as toolgate
import urllib3


def main():
    url, key = os.environ["TOOLGATE_URL"], os.environ["TOOLGATE_KEY"]
    client = toolgate.ApiClient(toolgate.Configuration(host=url, access_token=key))
    runs = toolgate.RunsApi(client)

    tool = toolgate.ExternalTool(name="lookup_order")
    started = runs.create_run_with_http_info(toolgate.NewRun(input=toolgate.NewInput("How is order A-1077?"), external_tools=[tool]))
    assert "location" in started.headers, "a new run has an address"
    run = started.data
    assert run.status == toolgate.Status.PENDING, f"the run waits: {run.status}"

    call = run.pending[0].actual_instance
    assert isinstance(call, toolgate.PendingExternalResult) and call.tool.name == "lookup_order", "the pending item is typed"
    result = toolgate.ResultAnswer(call_id=call.call_id, type="result", output={"state": "late"})
    run = runs.resume_run(run.id, resume=toolgate.Resume(answers=[toolgate.Answer(result)]))
    assert run.status == toolgate.Status.COMPLETED, f"the run completed: {run.status}"

    page = [event.actual_instance for event in runs.watch_run(run.id, include="content", limit=100).data]
    assert isinstance(page[-1], toolgate.EventExecutionCompleted) and page[-1].output.text, "the last event of the page is typed"

    followed = follow(url, key, run.id)
    assert [type(event) for event in followed] == [type(event) for event in page], "the stream has the events of the page"

    try:
        runs.read_run("run_unknown")
        raise AssertionError("an unknown run is refused")
    except toolgate.exceptions.NotFoundException as refused:
        assert refused.data.code == toolgate.ErrorCode.NOT_FOUND, "a problem is typed"
    print(len(followed), "events")


def follow(url, key, run):
    """The generated operation reads a page. A stream is read by hand; its messages are typed."""
    headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {key}"}
    response = urllib3.request("GET", f"{url}/v1/runs/{run}/events?include=content", headers=headers, preload_content=False)
    lines = b"".join(response.stream()).decode().splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [toolgate.StreamEvent.from_json(message).actual_instance for message in data]


if __name__ == "__main__":
    main()
