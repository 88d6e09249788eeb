// An application on the types that openapi-typescript generates: starts a run, runs its own tool, reads the answer.
//
// TOOLGATE_URL  where toolgate serves the agent of examples/http

import createClient from "openapi-fetch";
import type { components, paths } from "./toolgate";

declare const process: { env: Record<string, string | undefined> };

type Run = components["schemas"]["Run"];
type Answer = components["schemas"]["Answer"];
type Pending = components["schemas"]["Pending"];

// A run can also be started as a stream of events, so the media types are named.
const client = createClient<paths, "application/json" | "application/problem+json">({ baseUrl: process.env.TOOLGATE_URL });

const tools: Record<string, (input: Record<string, unknown>) => unknown> = {
  lookup_order: (input) => ({ order: input.id, state: "late" }),
  send_message: () => ({ state: "sent" }),
};

/** The result of a pending item. The discriminator narrows it to one branch. */
function answer(item: Pending): Answer {
  if (item.type !== "external_result") throw new Error(`a pending item of type ${item.type}`);
  const tool = tools[item.tool.name];
  if (tool === undefined) throw new Error(`no tool ${item.tool.name}`);
  return { type: "result", call_id: item.call_id, output: tool(item.arguments) };
}

function ok<T>(response: { data?: T; error?: { code: string; detail?: string | null } }): T {
  if (response.data === undefined) throw new Error(`${response.error?.code}: ${response.error?.detail}`);
  return response.data;
}

function expect(holds: boolean, what: unknown): void {
  if (!holds) throw new Error(JSON.stringify(what));
}

const external_tools = Object.keys(tools).map((name) => ({ name, description: name }));
const body = { input: "How are A-1077 and A-1041?", external_tools };
let run: Run = ok(await client.POST("/v1/runs", { body }));
let turns = 0;
for (; run.status === "pending"; turns += 1) {
  const path = { run: run.id };
  run = ok(await client.POST("/v1/runs/{run}/resume", { params: { path }, body: { answers: run.pending.map(answer) } }));
}
expect(run.status === "completed" && turns === 2, run);

const path = { run: run.id };
const read = ok(await client.GET("/v1/runs/{run}", { params: { path } }));
expect(read.usage.total_tokens === run.usage.total_tokens, read);
const messages = ok(await client.GET("/v1/runs/{run}/messages", { params: { path } }));
const parts = messages.data.flatMap((message) => message.content);
const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
expect(texts[0] === body.input && texts.length === 4, texts);
const missing = await client.GET("/v1/runs/{run}", { params: { path: { run: "run_0199f3a07c1e7d0a8f3c9b1d2e4f5a6b" } } });
expect(missing.error?.code === "not_found", missing.error);
console.log(run.output?.text);
