// Cases of the TypeScript client, in the environment of run_cases.py.

import assert from "node:assert/strict";
import {
  ApiError, ConnectionFailed, type Event, InvalidWebhook, type Schemas, Toolgate, ToolError, type ToolFunctions, verifyWebhook,
} from "toolgate-client";

const tools: ToolFunctions = {
  lookup_order: async ({ id }: { id: string }, call) => {
    assert.deepEqual(call.arguments, { id });
    if (id !== "A-1077") throw new ToolError(`there is no order ${id}`);
    return { state: "late" };
  },
};

function newRun(agent = "orders", metadata: Record<string, unknown> = {}): Schemas["NewRun"] {
  const external_tools = [{ name: "lookup_order", description: "Looks an order up." }];
  return { agent, input: "How are A-1077 and A-1041?", external_tools, metadata };
}

/** No event is missing or comes twice, and the fragments of each reply are its text. */
function checkEvents(events: Event[], whole: (string | null)[]) {
  assert.deepEqual(events.flatMap((event) => event.id ?? []), whole);
  const texts: string[] = [];
  let text = "";
  for (const event of events) {
    if (event.type === "llm.text.delta") {
      assert.equal(event.index, [...text].length);
      text += event.text;
    }
    if (event.type === "llm.call.completed") {
      assert.ok(event.text?.startsWith(text), `${text} begins ${event.text}`);
      texts.push(text);
      text = "";
    }
  }
  assert.ok(texts.some((one) => one.includes("🚚")), texts.join());
}

async function all(events: AsyncGenerator<Event>): Promise<Event[]> {
  const found: Event[] = [];
  for await (const event of events) found.push(event);
  return found;
}

/** Whether no id comes twice, and each one after those before it: `57.1`, `57.2`, `57`, `58`. */
function inOrder(ids: string[]): boolean {
  const places = ids.map((id) => id.split(".").map(Number)).map(([seq = 0, index = 2 ** 32]) => [seq, index] as const);
  return places.slice(1).every(([seq, index], i) => seq > places[i]![0] || (seq === places[i]![0] && index > places[i]![1]));
}

async function runsWithTools(client: Toolgate) {
  const run = await client.runWithTools(newRun("orders", { case: "typescript" }), tools);
  assert.equal(run.status, "completed");
  assert.match(await client.runs.export(run.id), /there is no order A-1041/);
  // The response to the first request was lost; the repeated one found the same run.
  const listed = await client.runs.list({ metadata: JSON.stringify({ case: "typescript" }), status: ["completed", "failed"] });
  assert.deepEqual(listed.data.map((row) => row.id), [run.id]);
}

async function otherExceptionsAreThrown(client: Toolgate) {
  const { id } = await client.runs.create(newRun());
  const broken: ToolFunctions = { lookup_order: () => { throw new RangeError("broken"); } };
  await assert.rejects(client.answerCalls(id, broken), RangeError);
  assert.equal((await client.runs.read(id)).status, "pending");
  assert.equal(await client.answerCalls(id, tools), true);
}

async function streamsResume(client: Toolgate, direct: Toolgate) {
  const { id } = await client.runs.create(newRun(), { prefer: "respond-async" });
  const events = await all(client.eventsWithTools(id, tools, { include: "content" }));
  checkEvents(events, (await all(direct.events(id))).map((event) => event.id));
  assert.deepEqual(await all(client.events(id, { after: events.at(-1)?.id ?? undefined })), []);
  // The same events as pages.
  const page = await client.runs.listEvents(id, { include: "content", limit: 2 });
  assert.deepEqual([page.has_more, page.last_id], [true, page.data[1]?.id]);
  const rest = await client.runs.listEvents(id, { include: "content", after: page.last_id ?? "", limit: 100 });
  assert.deepEqual([...page.data, ...rest.data].map((event) => event.id), events.flatMap((event) => event.id ?? []));
  const ofAll = await client.runs.listAllEvents({ after: "0", type: ["execution.completed"], limit: 100 });
  assert.ok(ofAll.data.some((event) => event.run_id === id));
}

/** One stream is enough to work on several runs at the same time. */
async function streamsOfAllRunsResume(client: Toolgate, direct: Toolgate) {
  const stream = client.allEvents({ positions: true });
  // The proxy breaks the first connection here: what happens until the next one would be missing without the position.
  assert.equal((await stream.next()).value.type, "stream.position");
  const runs = await Promise.all([1, 2, 3].map(() => direct.runs.create(newRun(), { prefer: "respond-async" })));
  const inProgress = new Set(runs.map((run) => run.id));
  const events: (Event & { id: string })[] = [];
  let positions = 0;
  for await (const event of stream) {
    if (!("run_id" in event)) {
      positions += 1;
      continue;
    }
    assert.ok(event.id);
    events.push({ ...event, id: event.id });
    if (event.type === "execution.pending") await client.answerCalls(event.run_id, tools);
    if (event.type === "execution.completed") inProgress.delete(event.run_id);
    if (inProgress.size === 0) break;
  }
  assert.ok(positions > 0 && inOrder(events.map((event) => event.id)));
  for (const run of runs) {
    const found = events.filter((event) => event.run_id === run.id && event.type !== "execution.pending");
    const whole = (await all(direct.events(run.id))).filter((event) => event.id !== null);
    assert.deepEqual(found.map(({ seq, type }) => [seq, type]), whole.map(({ seq, type }) => [seq, type]));
  }
  // Any id of the stream is a place to continue from.
  const later: Event[] = [];
  for await (const event of client.allEvents({ after: events[7]?.id })) if (later.push(event) === events.length - 8) break;
  assert.deepEqual(later.map((event) => event.id), events.slice(8).map((event) => event.id));
}

async function inboxEventsAreStreamed(client: Toolgate, direct: Toolgate) {
  const abort = new AbortController();
  const stream = client.approvalEvents({ agent: "desk", type: ["approval.requested", "approval.decided"], positions: true, signal: abort.signal });
  const next = async () => {
    for (;;) {
      const { value, done } = await stream.next();
      if (done || value.type !== "stream.position") return value as Event;
    }
  };
  const position = (await stream.next()).value.id;
  const run = await direct.runWithTools(newRun("desk"), tools);
  const requested = await next();
  assert.deepEqual([requested.type, requested.run_id], ["approval.requested", run.id]);
  const approval = (await direct.approvals.list()).data.find((one) => one.run_id === run.id);
  assert.ok(approval);
  await direct.approvals.decide(approval.id, { decision: "deny" });
  const decided = await next();
  assert.deepEqual([decided.type, decided.run_id], ["approval.decided", run.id]);
  const silent = next();
  abort.abort();
  await assert.rejects(silent, { name: "AbortError" });
  for await (const event of client.approvalEvents({ type: ["approval.decided"], after: position })) {
    assert.deepEqual(event, decided);
    break;
  }
  const page = await client.approvals.listEvents({ type: ["approval.decided"], after: position });
  assert.deepEqual(page.data, [decided]);
}

async function ticketsOpenStreams(direct: Toolgate) {
  const ticket = await direct.streamTickets.create({ stream: "events" });
  const response = await fetch(new URL(ticket.url, process.env.DIRECT_URL));
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  await response.body?.cancel();
}

async function streamsAreAborted(client: Toolgate) {
  const { id } = await client.runs.create(newRun());
  const abort = new AbortController();
  const read = async () => {
    for await (const event of client.events(id, { signal: abort.signal })) if (event.type === "execution.pending") abort.abort();
  };
  await assert.rejects(read(), { name: "AbortError" });
}

async function approvalsAreDecided(client: Toolgate) {
  const run = await client.runWithTools(newRun("desk"), tools);
  assert.deepEqual(run.pending.map((item) => item.type), ["approval"]);
  const approval = (await client.approvals.list()).data.find((one) => one.run_id === run.id);
  assert.ok(approval);
  await client.approvals.decide(approval.id, { decision: "approve", digest: approval.digest });
  assert.equal((await all(client.events(run.id))).at(-1)?.type, "execution.completed");
  const second = client.approvals.decide(approval.id, { decision: "deny" });
  await assert.rejects(second, (error) => error instanceof ApiError && error.reason === "already_decided" && !error.retryable);
}

async function errorsAreTyped(client: Toolgate) {
  await assert.rejects(client.runs.create({ input: "?", agent: "unknown" }), (error) => {
    assert.ok(error instanceof ApiError);
    assert.deepEqual([error.status, error.code, error.problem.errors?.[0]?.pointer], [422, "validation", "/agent"]);
    return true;
  });
  await assert.rejects(client.allEvents({ after: "999999" }).next(), (error) => error instanceof ApiError && error.status === 422);
  // The first request is refused with 503, and sent again.
  assert.equal((await client.keys.readMe()).name, "key:tester");
  await assert.rejects(new Toolgate({ url: "http://127.0.0.1:1", retries: 0 }).runs.list(), ConnectionFailed);
}

async function filesAreUploaded(client: Toolgate, direct: Toolgate) {
  const content = new TextEncoder().encode("%PDF-1.7 a report");
  const uploads = [
    await client.files.upload(content, { name: "report.pdf", expires_in_s: 600 }),
    await client.files.upload(new Blob([content]), { name: "report.pdf" }),
    await client.files.upload(new File([content], "report.pdf")),
  ];
  for (const file of uploads) {
    assert.deepEqual([file.name, file.media_type, file.bytes], ["report.pdf", "application/pdf", content.length]);
    assert.deepEqual(await client.files.download(file.id), content);
  }
  const [file] = uploads;
  assert.ok(file);
  // The response to the first request was lost; the repeated one, with another boundary, found the same file.
  assert.deepEqual((await client.files.list()).data.map((one) => one.id), uploads.map((one) => one.id).reverse());
  const content_parts: Schemas["InputPart"][] = [{ type: "text", text: "Summarize it." }, { type: "file", file_id: file.id }];
  const run = await client.runs.create({ ...newRun(), input: [{ role: "user", content: content_parts }] });
  assert.ok((await client.runs.export(run.id)).includes(`media://sha256-${file.sha256}`));
  for (const one of uploads) await direct.files.delete(one.id);
  await assert.rejects(client.files.read(file.id), (error) => error instanceof ApiError && error.code === "not_found");
}

async function webhooksAreVerified() {
  const { secret, body, headers, old_headers } = JSON.parse(process.env.SIGNED ?? "");
  assert.deepEqual(await verifyWebhook(secret, body, headers), JSON.parse(body));
  assert.deepEqual(await verifyWebhook(secret, body, new Headers(headers)), JSON.parse(body));
  const forged: [string, string, Record<string, string>][] = [
    ["whsec_bm9uZQ==", body, headers],
    [secret, `${body} `, headers],
    [secret, body, { ...headers, "webhook-id": "msg_2" }],
    [secret, body, { ...headers, "webhook-signature": "v1,@@ v1, v1,é" }],
    [secret, body, old_headers],
    [secret, body, {}],
  ];
  for (const one of forged) await assert.rejects(verifyWebhook(...one), InvalidWebhook);
}

const client = new Toolgate();
const direct = new Toolgate({ url: process.env.DIRECT_URL });
await runsWithTools(client);
await otherExceptionsAreThrown(client);
await streamsResume(client, direct);
await streamsOfAllRunsResume(client, direct);
await inboxEventsAreStreamed(client, direct);
await ticketsOpenStreams(direct);
await streamsAreAborted(client);
await approvalsAreDecided(client);
await errorsAreTyped(client);
await filesAreUploaded(client, direct);
await webhooksAreVerified();
