// Page in a browser where a person approves or denies the calls of agents. The list is live: it follows the stream of the
// approvals inbox, so calls that appear, and those that are decided elsewhere, change it at once.
//
// The address of toolgate and an API key are in the fragment of the address, which a browser does not send:
// http://127.0.0.1:8001/inbox/#url=http://127.0.0.1:8484&key=tg_…
// The key needs the scopes approvals:read and approvals:decide, and `gateway.cors.origins` the origin of this page.

/** @import { Schemas } from "toolgate-client" */
import { ApiError, Toolgate } from "toolgate-client";

/** Milliseconds before another attempt to open the stream, or to read the list. */
const RETRY_DELAY = 1000;

const given = new URLSearchParams(location.hash.slice(1));
const toolgate = new Toolgate({ url: given.get("url") ?? undefined, key: given.get("key") ?? undefined });
const list = element(document, "main", HTMLElement);
const status = element(document, "[role=status]", HTMLElement);
const alert = element(document, "[role=alert]", HTMLElement);
const template = element(document, "template", HTMLTemplateElement);

/** @type {Map<string, HTMLElement>} The pending approvals that are shown, by id. */
const shown = new Map();
let isStale = false;
let isReading = false;

/** Follows the inbox. A stream that cannot continue, because its cursor is `gone` for example, is replaced by a new one. */
async function follow() {
  for (;;) {
    await attempt(followStream, status);
    await pause();
  }
}

async function followStream() {
  // The position comes when the stream is open, also after an interruption: what changed before it is in the list.
  for await (const _ of toolgate.approvalEvents({ positions: true })) void changed();
}

/** Reads the list, once for all changes that arrive while it is being read. */
async function changed() {
  isStale = true;
  if (isReading) return;
  isReading = true;
  while (isStale) {
    isStale = false;
    if (await attempt(refresh, status)) continue;
    isStale = true;
    await pause();
  }
  isReading = false;
}

/** Shows the pending approvals. One that is shown already stays as it is, with a reason that is being typed. */
async function refresh() {
  const pending = await allPending();
  for (const [id, card] of shown) if (!pending.some((approval) => approval.id === id)) remove(id, card);
  for (const approval of pending) if (!shown.has(approval.id)) show(approval);
  document.title = `Approvals (${shown.size})`;
}

async function allPending() {
  /** @type {Schemas["Approval"][]} */
  const found = [];
  for (let after; ; ) {
    const page = await toolgate.approvals.list({ limit: 100, after });
    found.push(...page.data);
    if (!page.has_more || !page.last_id) return found;
    after = page.last_id;
  }
}

/** @param {Schemas["Approval"]} approval */
function show(approval) {
  const card = element(/** @type {DocumentFragment} */ (template.content.cloneNode(true)), "article", HTMLElement);
  element(card, "h2", HTMLElement).textContent = approval.summary;
  element(card, "p", HTMLElement).textContent = `${approval.agent}: ${approval.task ?? ""} (${approval.reason})`;
  element(card, "pre", HTMLElement).textContent = JSON.stringify(approval.arguments, null, 2);
  for (const button of card.querySelectorAll("button")) {
    const decision = button.value === "approve" ? "approve" : "deny";
    button.addEventListener("click", () => attempt(() => decide(approval, decision, card), alert));
  }
  shown.set(approval.id, card);
  list.append(card);
}

/** @param {string} id @param {HTMLElement} card */
function remove(id, card) {
  shown.delete(id);
  card.remove();
}

/** @param {Schemas["Approval"]} approval @param {"approve" | "deny"} decision @param {HTMLElement} card */
async function decide(approval, decision, card) {
  const reason = element(card, "input", HTMLInputElement).value || undefined;
  // The digest refuses the decision if the call is not the one that is shown any more.
  await toolgate.approvals.decide(approval.id, { decision, reason, digest: approval.digest });
  remove(approval.id, card);
}

/** Shows an error of an action in an element. @param {() => Promise<void>} action @param {HTMLElement} place */
async function attempt(action, place) {
  try {
    await action();
    place.textContent = "";
    return true;
  } catch (error) {
    place.textContent = error instanceof ApiError ? error.problem.detail : String(error);
    return false;
  }
}

function pause() {
  return new Promise((resolve) => setTimeout(resolve, RETRY_DELAY));
}

/** @template {Element} T @param {ParentNode} parent @param {string} selector @param {{ new (): T }} kind @returns {T} */
function element(parent, selector, kind) {
  const found = parent.querySelector(selector);
  if (!(found instanceof kind)) throw new TypeError(`the page has no ${selector}`);
  return found;
}

await follow();
