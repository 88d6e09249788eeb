// Requests of the API, with retries.

import { ApiError, ConnectionFailed } from "./errors.js";

/** The longest delay that the server may ask for, in milliseconds; for a longer one, the error is thrown. */
const LONGEST_DELAY = 60_000;

export type RequestOptions = {
  query?: { [name: string]: string | number | boolean | string[] | undefined };
  headers?: { [name: string]: string | undefined };
  body?: unknown;
  signal?: AbortSignal | undefined;
};

/** Sends requests, again after failures that pass. A repeated POST has the same `Idempotency-Key`, so it counts once. */
export class Transport {
  constructor(
    readonly url: string,
    readonly key: string | undefined,
    readonly retries: number,
    readonly fetch: typeof globalThis.fetch,
  ) {}

  /** The body of a successful response; `undefined` if it is empty. */
  async call(method: string, path: string, form: "json" | "text" | "bytes" | "none", options: RequestOptions): Promise<any> {
    // Streams of events have pages as JSON.
    const accepted: { [name: string]: string } = form === "json" ? { Accept: "application/json" } : {};
    const response = await this.open(method, path, { ...options, headers: { ...accepted, ...options.headers } });
    if (form === "bytes") return new Uint8Array(await response.arrayBuffer());
    const text = await response.text();
    if (form === "text") return text;
    return form === "none" || text === "" ? undefined : JSON.parse(text);
  }

  /** A successful response, whose body is not read. */
  async open(method: string, path: string, options: RequestOptions): Promise<Response> {
    const request = this.request(method, options);
    for (let attempt = 0; ; attempt += 1) {
      const failure = await this.attempt(this.address(path, options), request);
      if (failure instanceof Response) return failure;
      const asked = failure instanceof ApiError ? failure.retryAfter : undefined;
      if (attempt === this.retries || !mayRepeat(failure, method) || (asked ?? 0) > LONGEST_DELAY) throw failure;
      await pause(asked ?? Math.min(500 * 2 ** attempt, 8000) * (0.5 + Math.random() / 2), options.signal);
    }
  }

  private address(path: string, { query = {} }: RequestOptions): string {
    const set = Object.entries(query).filter(([, value]) => value !== undefined);
    const parameters = new URLSearchParams(set.map(([name, value]) => [name, String(value)]));
    return `${this.url}${path}${set.length > 0 ? `?${parameters}` : ""}`;
  }

  private request(method: string, { headers = {}, body, signal }: RequestOptions): RequestInit {
    const sent = new Headers();
    if (method === "POST") sent.set("Idempotency-Key", crypto.randomUUID());
    if (this.key) sent.set("Authorization", `Bearer ${this.key}`);
    // `fetch` itself names the boundary of a form.
    const content = body instanceof FormData ? body : body === undefined ? null : JSON.stringify(body);
    if (typeof content === "string") sent.set("Content-Type", "application/json");
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) sent.set(name, value);
    // A browser keeps a 410, and would answer a stream that begins again with the one of its old cursor.
    return { method, headers: sent, body: content, signal: signal ?? null, cache: "no-store" };
  }

  private async attempt(address: string, request: RequestInit): Promise<Response | ApiError | ConnectionFailed> {
    try {
      const response = await this.fetch(address, request);
      return response.ok ? response : await ApiError.of(response);
    } catch (cause) {
      request.signal?.throwIfAborted();
      return new ConnectionFailed(`${request.method} ${address}: ${cause}`, { cause });
    }
  }
}

/** Whether the same request may succeed soon, and counts once if the first one arrived. */
function mayRepeat(failure: ApiError | ConnectionFailed, method: string): boolean {
  return failure instanceof ApiError ? failure.isTransient : method === "GET" || method === "POST";
}

/** Waits for these milliseconds, or throws when the signal aborts. */
export async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const abort = () => (clearTimeout(timer), reject(signal?.reason));
    const timer = setTimeout(() => (signal?.removeEventListener("abort", abort), resolve()), milliseconds);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
