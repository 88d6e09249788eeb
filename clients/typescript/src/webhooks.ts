// Signatures of webhooks (Standard Webhooks).

import type { Schemas } from "./operations.js";

/** The most seconds between the clocks of sender and receiver. */
const TOLERANCE = 300;

/** Message that toolgate did not sign, or that is too old. */
export class InvalidWebhook extends Error {
  override name = "InvalidWebhook";
}

/** Message about a run or an approval. Its `type` tells the members of `data`. */
export type WebhookMessage = Schemas["WebhookMessage"];

/**
 * The message of a request with this raw body, if a signature of it is valid; otherwise throws `InvalidWebhook`. `secret` is
 * that of the webhook endpoint (`whsec_…`).
 */
export async function verifyWebhook(
  secret: string,
  body: string,
  headers: Headers | { [name: string]: string | string[] | undefined },
): Promise<WebhookMessage> {
  const named = (name: string) => (headers instanceof Headers ? headers.get(name) : headers[name]?.toString());
  const [id, sentAt, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(named);
  if (!id || !sentAt || !signatures) throw new InvalidWebhook("the headers of a signed message are missing");
  if (!(Math.abs(Date.now() / 1000 - Number(sentAt)) <= TOLERANCE)) {
    throw new InvalidWebhook("the message is too old, or the clocks differ");
  }
  const usage = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes(secret.replace(/^whsec_/, "")), usage, false, ["verify"]);
  const signed = new TextEncoder().encode(`${id}.${sentAt}.${body}`);
  // During a rotation the header has several signatures.
  for (const signature of signatures.split(" ").filter((one) => one.startsWith("v1,"))) {
    const given = isBase64(signature.slice(3)) ? bytes(signature.slice(3)) : new Uint8Array();
    if (await crypto.subtle.verify("HMAC", key, given, signed)) return JSON.parse(body) as WebhookMessage;
  }
  throw new InvalidWebhook("no signature is valid");
}

function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) && text.length % 4 === 0;
}

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
