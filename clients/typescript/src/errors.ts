// Errors: responses of the API (`ApiError`), connections (`ConnectionFailed`), and those that a tool reports (`ToolError`).

import type { Schemas } from "./operations.js";

/** Error of a tool, thrown by its function: the model reads the text and the run continues. */
export class ToolError extends Error {
  override name = "ToolError";
}

/** Request without a whole response, after all retries. A request that has an effect may have taken effect. */
export class ConnectionFailed extends Error {
  override name = "ConnectionFailed";
}

/** Code of an error response. Open: later versions of the server may send others. */
export type ErrorCode = Schemas["ErrorCode"] | "unknown";

/** Error response: a problem document (RFC 9457). `code` and `reason` are stable, `detail` is for people. */
export class ApiError extends Error {
  override name = "ApiError";

  constructor(
    readonly status: number,
    readonly problem: Pick<Schemas["Problem"], "detail" | "retryable"> & Partial<Omit<Schemas["Problem"], "code">> & { code: ErrorCode },
    /** Milliseconds before a retry, if the server states them. */
    readonly retryAfter: number | undefined,
  ) {
    super(`${problem.code}: ${problem.detail} (request ${problem.request_id})`);
  }

  /** The error of a response. One that is not from toolgate, but from a proxy, has the code `unknown`. */
  static async of(response: Response): Promise<ApiError> {
    const { status } = response;
    const found = (await response.json().catch(() => null)) as Schemas["Problem"] | null;
    const isProblem = typeof found?.code === "string";
    const unknown = { code: "unknown" as const, detail: `HTTP ${status} without a problem`, retryable: [429, 502, 503, 504].includes(status) };
    const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
    const retryAfter = (isProblem ? found.retry_after_ms : null) ?? (Number.isNaN(seconds) ? undefined : seconds * 1000);
    return new ApiError(status, isProblem ? found : unknown, retryAfter);
  }

  get code(): ErrorCode {
    return this.problem.code;
  }

  get reason(): Schemas["ErrorReason"] | null {
    return this.problem.reason ?? null;
  }

  get retryable(): boolean {
    return this.problem.retryable;
  }

  /** Whether the client sends the request again. A conflict passes soon only if the server says when. */
  get isTransient(): boolean {
    if (this.status === 409) return this.retryable && this.retryAfter !== undefined;
    return this.retryable && ([408, 429, 503].includes(this.status) || this.code === "unknown");
  }
}
