// Client of a server: the operations of the API by group, events of runs, and runs with tools of the application.

import { ApiError, ConnectionFailed, ToolError } from "./errors.js";
import { Fragments } from "./fragments.js";
import { Approvals, Files, Keys, Runs, type Schemas, Sessions, StreamTickets, Tools, Webhooks } from "./operations.js";
import { type Message, messages } from "./server_sent_events.js";
import { pause, type RequestOptions, Transport } from "./transport.js";

const ENDS = ["completed", "failed", "cancelled", "incomplete", "expired"].map((status) => `execution.${status}`);
/** Milliseconds before a broken stream is opened again. */
const RECONNECT_DELAY = 500;
/** Reasons why a result is not taken although nothing is wrong: another process answered, or the run ended. */
const SETTLED: (Schemas["ErrorReason"] | null)[] = ["already_answered", "run_over", "too_late"];

/** Event of a run. Its `type` tells its members. */
export type Event = Schemas["Event"];

/**
 * The function of each tool. It gets the arguments as one object, and the call; it may be called again for the same
 * `call_id` if a result is lost.
 */
export type ToolFunctions = { [name: string]: (input: any, call: Schemas["PendingExternalResult"]) => unknown };

export type ToolgateOptions = {
  /** Address of the server. Default: `TOOLGATE_URL`, or this machine. */
  url?: string | undefined;
  /** API key. Default: `TOOLGATE_KEY`. */
  key?: string | undefined;
  /** How often a request is sent again after a failure that passes. Default: 4. */
  retries?: number;
  fetch?: typeof globalThis.fetch;
};

export type EventOptions = {
  /** The id of the last event that is known. Default: all events are sent. */
  after?: string | undefined;
  /** Whether events have texts, arguments, results and fragments of replies. */
  include?: "content" | undefined;
  /** Whether the events end when the run ends, which is the default, or already when it is pending. */
  until?: "end" | "idle" | undefined;
  signal?: AbortSignal | undefined;
};

export type AllEventsOptions = {
  /** Only events of runs of this agent. */
  agent?: string | undefined;
  /** Only events of runs of this session. */
  session_id?: string | undefined;
  /** Only events of these types. */
  type?: Schemas["EventType"][] | undefined;
  /** The id of the last event that is known. Default: events from now on. */
  after?: string | undefined;
  /** Whether to say how far the stream is. */
  positions?: boolean | undefined;
  signal?: AbortSignal | undefined;
};

/**
 * How far a stream is: its caller has every event up to this `id`, which is a value for `after`. Comes whenever the stream was
 * opened, and after many events that the filters exclude. `"run_id" in event` is true for an event only.
 */
export type Position = Schemas["StreamMessageStreamPosition"];

export class Toolgate {
  readonly approvals: Approvals;
  readonly files: Files;
  readonly keys: Keys;
  readonly runs: Runs;
  readonly sessions: Sessions;
  readonly streamTickets: StreamTickets;
  readonly tools: Tools;
  readonly webhooks: Webhooks;
  private readonly transport: Transport;

  constructor({ url, key, retries = 4, fetch = (...request) => globalThis.fetch(...request) }: ToolgateOptions = {}) {
    const address = (url ?? environment("TOOLGATE_URL") ?? "http://127.0.0.1:8484").replace(/\/+$/, "");
    const transport = new Transport(address, key ?? environment("TOOLGATE_KEY"), retries, fetch);
    this.transport = transport;
    this.approvals = new Approvals(transport);
    this.files = new Files(transport);
    this.keys = new Keys(transport);
    this.runs = new Runs(transport);
    this.sessions = new Sessions(transport);
    this.streamTickets = new StreamTickets(transport);
    this.tools = new Tools(transport);
    this.webhooks = new Webhooks(transport);
  }

  /**
   * The events of a run, until it ends, or with `until: "idle"` is pending.
   *
   * A broken connection is opened again after the last event, so no event is missing and none comes twice. The same holds
   * for fragments of a reply: append each `text`; `llm.call.started` begins a new reply.
   */
  async *events(run: string, { after, include, until = "end", signal }: EventOptions = {}): AsyncGenerator<Event> {
    const ends = until === "end" ? ENDS : [...ENDS, "execution.pending"];
    const path = `/v1/runs/${encodeURIComponent(run)}/events`;
    for await (const event of this.stream(path, { query: { include, until }, signal }, after)) {
      yield event;
      if (ends.includes(event.type)) return;
    }
  }

  /**
   * The events of all runs after the event `after` (default: from now on), without content and without an end.
   *
   * A broken connection is opened again after the last event, so no event is missing and none comes twice.
   */
  allEvents(options: AllEventsOptions & { positions: true }): AsyncGenerator<Event | Position>;
  allEvents(options?: AllEventsOptions): AsyncGenerator<Event>;
  allEvents(options: AllEventsOptions = {}): AsyncGenerator<Event | Position> {
    return this.selected("/v1/events", options);
  }

  /** Those of `allEvents` that change the list of pending approvals. */
  approvalEvents(options: AllEventsOptions & { positions: true }): AsyncGenerator<Event | Position>;
  approvalEvents(options?: AllEventsOptions): AsyncGenerator<Event>;
  approvalEvents(options: AllEventsOptions = {}): AsyncGenerator<Event | Position> {
    return this.selected("/v1/approvals/events", options);
  }

  private selected(path: string, { after, positions = false, signal, ...query }: AllEventsOptions): AsyncGenerator<any> {
    return this.stream(path, { query, signal }, after, positions);
  }

  /** The events of a stream, which is opened again when it breaks, until the server has no more. */
  private async *stream(path: string, options: RequestOptions, after?: string, positions = false): AsyncGenerator<any> {
    const fragments = new Fragments();
    for (;;) {
      const headers = { Accept: "text/event-stream", "Last-Event-ID": after };
      const response = await this.transport.open("GET", path, { ...options, headers });
      if (response.status === 204 || !response.body) return;
      const type = response.headers.get("content-type");
      if (!type?.startsWith("text/event-stream")) throw new ConnectionFailed(`a stream of events was expected, not ${type}`);
      for await (const { id, data } of untilBroken(messages(response.body), options.signal)) {
        after = id ?? after;
        const message = data === "" ? undefined : (JSON.parse(data) as Schemas["StreamEvent"]);
        if (message?.type === "server.draining" || (message?.type === "stream.position" && !positions)) continue;
        const event = message && fragments.new(message);
        if (event) yield event;
      }
      await pause(RECONNECT_DELAY, options.signal);
    }
  }

  /**
   * The events of a run. When the run requests calls of `tools`, executes them and resumes the run with the results.
   *
   * Ends when the run ends, or when it requires something else: an approval, an answer, a tool without a function. The model
   * reads the error of a `ToolError`; any other exception is thrown.
   */
  async *eventsWithTools(run: string, tools: ToolFunctions, options: Omit<EventOptions, "until"> = {}): AsyncGenerator<Event> {
    for await (const event of this.events(run, options)) {
      yield event;
      if (event.type === "execution.pending" && !(await this.answerCalls(run, tools))) return;
    }
  }

  /** Executes the requested calls of `tools` and sends their results; whether the run requires nothing else. */
  async answerCalls(run: string, tools: ToolFunctions): Promise<boolean> {
    const { pending } = await this.runs.read(run);
    const isCall = (item: Schemas["Pending"]) => item.type === "external_result" && Object.hasOwn(tools, item.tool.name);
    const calls = pending.filter(isCall) as Schemas["PendingExternalResult"][];
    if (calls.length > 0) {
      const answers = await Promise.all(calls.map((item) => answered(item, tools)));
      try {
        await this.runs.resume(run, { answers, partial: true }, { prefer: "respond-async" });
      } catch (error) {
        if (!(error instanceof ApiError && SETTLED.includes(error.reason))) throw error;
      }
    }
    return pending.every((item) => isCall(item) || item.type === "task");
  }

  /** Executes the calls of `tools` of a run; the run when it has ended, or requires something else. */
  async continueWithTools(run: string, tools: ToolFunctions, options: { signal?: AbortSignal } = {}): Promise<Schemas["Run"]> {
    for await (const _ of this.eventsWithTools(run, tools, options));
    return this.runs.read(run, options);
  }

  /** Starts a run and executes its calls of `tools`; the run when it has ended, or requires something else. */
  async runWithTools(body: Schemas["NewRun"], tools: ToolFunctions, options: { signal?: AbortSignal } = {}): Promise<Schemas["Run"]> {
    const run = await this.runs.create(body, { prefer: "respond-async", ...options });
    return this.continueWithTools(run.id, tools, options);
  }
}

/** The result of a call. */
async function answered(item: Schemas["PendingExternalResult"], tools: ToolFunctions): Promise<Schemas["ResultAnswer"]> {
  try {
    const output = (await tools[item.tool.name]?.(item.arguments, item)) ?? null;
    return { type: "result", call_id: item.call_id, output };
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    return { type: "result", call_id: item.call_id, error: error.message };
  }
}

/** The items up to the first error, unless the caller aborted. */
async function* untilBroken(items: AsyncGenerator<Message>, signal: AbortSignal | undefined): AsyncGenerator<Message> {
  try {
    yield* items;
  } catch {
    signal?.throwIfAborted();
  }
}

function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: { [name: string]: string | undefined } } };
  return process?.env?.[name];
}
