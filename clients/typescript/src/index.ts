export { Toolgate, type Event, type EventOptions, type ToolgateOptions, type ToolFunctions } from "./client.js";
export { ApiError, ConnectionFailed, ToolError } from "./errors.js";
export type { Schemas } from "./operations.js";
export { InvalidWebhook, verifyWebhook } from "./webhooks.js";
