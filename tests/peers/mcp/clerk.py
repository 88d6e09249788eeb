"""Server that makes a task of each call, and answers `tasks/get` and `tasks/update` by its arguments: `METHOD=CODE` is an error
the first time. `asks` lets the task ask for a name until it receives one."""

import sys

import wire

errors = dict(argument.split("=") for argument in sys.argv[1:] if "=" in argument)
asks = "asks" in sys.argv
told = False


def complete(request, **result):
    wire.answer(request, {"resultType": "complete", **result})


def news(request):
    if told:
        complete(request, taskId="t1", status="completed", result={"content": [{"type": "text", "text": "done"}]})
    elif asks:
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        question = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": form}}
        complete(request, taskId="t1", status="input_required", inputRequests={"who": question})
    else:
        complete(request, taskId="t1", status="working")


for request in wire.messages(shake_hands=False):
    method = request.get("method")
    if method in errors:
        wire.refuse(request, int(errors.pop(method)), "busy, try again")
    elif method == "server/discover":
        complete(
            request, supportedVersions=["2026-07-28"], capabilities={"tools": {}}, ttlMs=0, cacheScope="private"
        )
    elif method == "tools/list":
        complete(request, tools=[wire.tool("act")], ttlMs=0, cacheScope="private")
    elif method == "tools/call":
        wire.answer(request, {"resultType": "task", "taskId": "t1", "status": "working"})
    elif method == "tasks/get":
        news(request)
    elif method == "tasks/update":
        told = True
        complete(request)
