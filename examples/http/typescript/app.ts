// Application in Node.js with tools of its own for an agent.
//
// It starts a run, executes the calls of its tools, and prints the events. It remembers the run and the last event in a file,
// so that it can be stopped at any moment, killed, too: started again, it continues with the very next event.
//
//   node app.ts "How are A-1077 and A-1041?"
//
//   TOOLGATE_URL  where toolgate serves (default: http://127.0.0.1:8484)
//   TOOLGATE_KEY  an API key, if the server requires one

import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { type Event, type Schemas, Toolgate, ToolError, type ToolFunctions } from "toolgate-client";

const STATE = "run.json";
const QUESTION = "How are A-1077 and A-1041?";

/** The question in progress. Its `key` is there before its run, so that the run is started once. */
type State = { question: string; key: string; after?: string };

const orders: Record<string, unknown> = { "A-1077": { state: "late", days: 4 }, "A-1041": { state: "delivered" } };

const tools: ToolFunctions = {
  lookup_order: ({ id }: { id: string }) => {
    if (!(id in orders)) throw new ToolError(`there is no order ${id}`);
    return orders[id];
  },
  send_message: ({ to, text }: { to: string; text: string }, { call_id }) => {
    // A call that is executed a second time has the same id, so a mail service would send one message.
    console.log(`  (to ${to}: ${text}, as ${call_id})`);
    return { state: "sent" };
  },
};

const declared: Schemas["ExternalTool"][] = [
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

function load(): State {
  if (existsSync(STATE)) return JSON.parse(readFileSync(STATE, "utf8")) as State;
  return { question: process.argv[2] ?? QUESTION, key: crypto.randomUUID() };
}

function save(state: State) {
  writeFileSync(`${STATE}.new`, JSON.stringify(state));
  renameSync(`${STATE}.new`, STATE);
}

function print(event: Event) {
  const failure = "error" in event && typeof event.error === "object" ? event.error?.message : undefined;
  const detail = failure ?? ("tool_name" in event ? event.tool_name : "");
  if (event.id) console.log(`${event.id.padStart(5)} ${event.type} ${detail}`);
}

const toolgate = new Toolgate();
const state = load();
save(state);
const body = { agent: "orders", input: state.question, external_tools: declared };
const run = await toolgate.runs.create(body, { prefer: "respond-async", idempotencyKey: state.key });
console.log(`run ${run.id}`);
for await (const event of toolgate.eventsWithTools(run.id, tools, { after: state.after })) {
  print(event);
  if (event.id) save(Object.assign(state, { after: event.id }));
}
const { status, output, error } = await toolgate.runs.read(run.id);
rmSync(STATE);
console.log(output?.text ?? `the run is ${status}: ${error?.message}`);
process.exitCode = status === "completed" ? 0 : 1;
