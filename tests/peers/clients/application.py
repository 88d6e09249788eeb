"""An application on the client that openapi-python-client generates: starts a run, runs its own tool, reads the answer.

TOOLGATE_URL  where toolgate serves the agent of examples/http
"""

import os

from toolgate_client import Client
from toolgate_client.api.runs import create_run, list_messages, list_runs, read_run, resume_run
from toolgate_client.api.tools import list_servers
from toolgate_client.models import (
    ExternalTool,
    NewRun,
    PartText,
    PendingExternalResult,
    Problem,
    ResultAnswer,
    ResultAnswerType,
    Resume,
    Run,
    Status,
)

TOOLS = {
    "lookup_order": lambda arguments: {"order": arguments["id"], "state": "late"},
    "send_message": lambda arguments: {"state": "sent"},
}


def answered(run):
    """Runs the tools that the run waits for, and resumes it with their results."""
    answers = []
    for item in run.pending:
        assert isinstance(item, PendingExternalResult), item
        output = TOOLS[item.tool.name](item.arguments.to_dict())
        answers.append(ResultAnswer(type_=ResultAnswerType.RESULT, call_id=item.call_id, output=output))
    return resume_run.sync(run.id, client=client, body=Resume(answers=answers))


client = Client(base_url=os.environ["TOOLGATE_URL"])
tools = [ExternalTool(name=name, description=name) for name in TOOLS]
run = create_run.sync(client=client, body=NewRun(input_="How are A-1077 and A-1041?", external_tools=tools))
turns = 0
while isinstance(run, Run) and run.status == Status.PENDING:
    run, turns = answered(run), turns + 1
assert isinstance(run, Run), run
assert (run.status, turns) == (Status.COMPLETED, 2), run
assert "A-1077" in run.output.text, run.output

read = read_run.sync(run.id, client=client)
assert (read.id, read.usage.total_tokens) == (run.id, run.usage.total_tokens), read
messages = list_messages.sync(run.id, client=client)
texts = [part.text for message in messages.data for part in message.content if isinstance(part, PartText)]
assert texts[0] == "How are A-1077 and A-1041?" and len(texts) == 4, texts
assert [row.id for row in list_runs.sync(client=client).data] == [run.id]
assert list_servers.sync(client=client).data == []
missing = read_run.sync("run_0199f3a07c1e7d0a8f3c9b1d2e4f5a6b", client=client)
assert isinstance(missing, Problem) and missing.code == "not_found", missing
print(run.output.text)
