export {
  Toolgate, type AllEventsOptions, type Event, type EventOptions, type Position, type ToolgateOptions, type ToolFunctions,
} from "./client.js";
export { ApiError, ConnectionFailed, type ErrorCode, ToolError } from "./errors.js";
export type { FileContent } from "./files.js";
export type { Schemas } from "./operations.js";
export { InvalidWebhook, verifyWebhook, type WebhookMessage } from "./webhooks.js";
