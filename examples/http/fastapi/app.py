"""Backend with tools of its own for an agent, for a page that shows the progress of each answer.

The backend starts a run for each question, executes the calls of its tools in the background, and passes the events of the
run on to the page. Nothing is lost if it is restarted: toolgate keeps the runs, and the backend continues those in progress.
`TOOLGATE_URL` and `TOOLGATE_KEY` name the server. Start it with `uvicorn app:app --app-dir examples/http/fastapi`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from fastapi import Depends, FastAPI, Header, Request
from fastapi.responses import FileResponse, JSONResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel
from toolgate_client import ApiError, AsyncToolgate, ToolError, ToolgateError, ToolFunctions, current_call, models

ORDERS = {"A-1077": {"state": "late", "days": 4}, "A-1041": {"state": "delivered"}}
SENT: dict[str, str] = {}


def texts(*names: str) -> dict[str, object]:
    """The schema of arguments that are texts."""
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}


DECLARED: list[models.ExternalTool] = [
    {"name": "lookup_order", "description": "Looks an order up by its id.", "input_schema": texts("id")},
    {"name": "send_message", "description": "Sends a message to a customer.", "input_schema": texts("to", "text")},
]


async def lookup_order(id: str) -> object:
    if id not in ORDERS:
        raise ToolError(f"there is no order {id}")
    return ORDERS[id]


async def send_message(to: str, text: str) -> object:
    # A call that is executed a second time sends no second message.
    SENT.setdefault(current_call()["call_id"], f"{to}: {text}")
    return {"state": "sent"}


TOOLS: ToolFunctions = {"lookup_order": lookup_order, "send_message": send_message}

toolgate = AsyncToolgate()
workers: set[asyncio.Task[None]] = set()


async def execute_calls(run: str) -> None:
    try:
        await toolgate.continue_with_tools(run, TOOLS)
    except ToolgateError:
        logging.exception("failed to execute the calls of run %s", run)


def work_on(run: str) -> None:
    worker = asyncio.create_task(execute_calls(run))
    workers.add(worker)
    worker.add_done_callback(workers.discard)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    in_progress = await toolgate.runs.list(agent="orders", status=["running", "pending"], limit=100)
    for run in in_progress["data"]:
        work_on(run["id"])
    yield
    for worker in workers:
        worker.cancel()
    await toolgate.aclose()


app = FastAPI(lifespan=lifespan)


class Question(BaseModel):
    text: str


@app.exception_handler(ApiError)
async def refused(_: Request, error: ApiError) -> JSONResponse:
    return JSONResponse({"code": error.code, "detail": error.detail}, error.status)


@app.get("/")
async def page() -> FileResponse:
    return FileResponse(Path(__file__).with_name("page.html"))


@app.post("/questions", status_code=201)
async def ask(question: Question) -> dict[str, str]:
    body: models.NewRun = {"agent": "orders", "input": question.text, "external_tools": DECLARED}
    run = await toolgate.runs.create(body, prefer="respond-async")
    work_on(run["id"])
    return {"run": run["id"]}


async def known(run: str) -> str:
    """The run of the path, before the response begins: an unknown one is refused."""
    return (await toolgate.runs.read(run))["id"]


@app.get("/questions/{run}/events", response_class=EventSourceResponse)
async def events(
    run: Annotated[str, Depends(known)], last_event_id: Annotated[str | None, Header()] = None
) -> AsyncIterator[ServerSentEvent]:
    async for event in toolgate.events(run, after=last_event_id, include="content"):
        yield ServerSentEvent(event=event["type"], id=event["id"], data=event)
    yield ServerSentEvent(event="end")
