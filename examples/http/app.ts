// An application with its own tools for an agent, over HTTP, with only `fetch`. It does the same as `app.py`: it
// starts a run, follows its events, runs the requested tools, and sends their results. It also disconnects in the
// middle of the stream, reconnects after the last event it received, and misses nothing.
//
//   node app.ts     (Node.js 22.18 or newer runs TypeScript directly; Deno and Bun do, too)
//
//   TOOLGATE_URL  where toolgate serves (default: http://127.0.0.1:8484)
//   TOOLGATE_KEY  an API key, if the server requires one

declare const process: { env: Record<string, string | undefined>; exitCode: number };

const URL_OF_TOOLGATE = (process.env.TOOLGATE_URL ?? "http://127.0.0.1:8484").replace(/\/$/, "");
const KEY = process.env.TOOLGATE_KEY;

type Json = null | boolean | number | string | Json[] | { [field: string]: Json };
type Event = { type: string; [field: string]: Json };
type Owed = { type: string; call_id: string; tool: { name: string }; arguments: { [name: string]: Json } };
type Run = { id: string; status: string; pending: Owed[]; output: { text: string } | null; error: Json };

// The tools of this application. The model sees them as ext_lookup_order and ext_send_message.
const orders: Record<string, Json> = { "A-1077": { state: "late", days: 4 }, "A-1041": { state: "delivered" } };

const tools: Record<string, (given: { [name: string]: Json }) => Json> = {
  lookup_order: ({ id }) => orders[String(id)] ?? { error: `there is no order ${id}` },
  send_message: ({ to, text }) => {
    console.log(`  (to ${to}: ${text})`);
    return { state: "sent" };
  },
};

// The last event of a run is one of these.
const ends = ["completed", "failed", "cancelled", "incomplete", "expired"].map((status) => `execution.${status}`);

const declared: Json = [
  {
    name: "lookup_order",
    description: "Looks an order up by its id.",
    input_schema: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
  },
  {
    name: "send_message",
    description: "Sends a message to a customer.",
    input_schema: {
      type: "object",
      properties: { to: { type: "string" }, text: { type: "string" } },
      required: ["to", "text"],
    },
  },
];

/** Sends a request and returns the open response. */
async function request(method: string, path: string, body?: Json, headers: Record<string, string> = {}) {
  const sent = new Headers(headers);
  if (body !== undefined) sent.set("Content-Type", "application/json");
  if (KEY) sent.set("Authorization", `Bearer ${KEY}`);
  const answer = await fetch(URL_OF_TOOLGATE + path, {
    method,
    headers: sent,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!answer.ok) {
    const problem = (await answer.json()) as { code: string; detail: string; request_id: string };
    throw new Error(`${problem.code}: ${problem.detail} (request ${problem.request_id})`);
  }
  return answer;
}

/** Sends a request and returns the body of the response. */
async function asked(method: string, path: string, body?: Json, headers: Record<string, string> = {}): Promise<Run> {
  return (await (await request(method, path, body, headers)).json()) as Run;
}

/** The events of a run from the one after `after` on, each with its id; until the run is over. */
async function* events(run: string, after?: string): AsyncGenerator<[string | undefined, Event]> {
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (after) headers["Last-Event-ID"] = after;
  const answer = await request("GET", `/v1/runs/${run}/events`, undefined, headers);
  if (!answer.body) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const lines = block.split(/\r?\n/);
        const id = lines.find((line) => line.startsWith("id:"))?.slice(3).trim();
        const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
        if (data.length > 0) yield [id, JSON.parse(data.join("\n")) as Event];
      }
    }
  } finally {
    await reader.cancel();
  }
}

/** Runs the tools whose results the run waits for, and sends the results. */
async function give(run: string) {
  const found = await asked("GET", `/v1/runs/${run}`);
  const answers: Json[] = [];
  for (const item of found.pending) {
    const tool = tools[item.tool.name];
    if (item.type !== "external_result" || !tool) {
      throw new Error(`this application cannot answer a pending item of type ${item.type}`);
    }
    console.log(`  ${item.tool.name} ${JSON.stringify(item.arguments)}`);
    answers.push({ type: "result", call_id: item.call_id, output: tool(item.arguments) });
  }
  // The run continues in the background, and the events report its progress. Sending the same results twice is harmless.
  await asked("POST", `/v1/runs/${run}/resume`, { answers }, { Prefer: "respond-async" });
}

async function main() {
  const body: Json = { agent: "orders", input: "How are A-1077 and A-1041?", external_tools: declared };
  // With the same key a repeated request finds the same run, however often a connection breaks.
  const headers = { Prefer: "respond-async", "Idempotency-Key": crypto.randomUUID() };
  const run = (await asked("POST", "/v1/runs", body, headers)).id;
  console.log(`run ${run}`);
  const seen: string[] = [];
  let last: string | undefined;
  let isOver = false;
  let hungUp = false;
  while (!isOver) {
    for await (const [id, event] of events(run, last)) {
      if (id) {
        last = id;
        seen.push(`${id} ${event.type}`);
        console.log(`${id.padStart(5)} ${event.type}`);
      }
      if (event.type === "execution.pending") await give(run);
      isOver = ends.includes(event.type);
      if (seen.length === 6 && !hungUp) {
        hungUp = true;
        console.log("  -- the connection breaks; resuming from here");
        break;
      }
    }
  }
  const answer = await asked("GET", `/v1/runs/${run}`);
  if (answer.status !== "completed") throw new Error(`the run is ${answer.status}: ${JSON.stringify(answer.error)}`);
  console.log(answer.output?.text);
  const whole: string[] = [];
  for await (const [id, event] of events(run)) if (id) whole.push(`${id} ${event.type}`);
  if (whole.join() !== seen.join()) throw new Error(`events were missed or told twice:\n${seen}\n${whole}`);
  console.log(`${seen.length} events, none missed, none twice`);
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});

export {};
