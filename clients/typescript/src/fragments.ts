// Fragments of a reply, without the part that a resumed stream repeats.

import type { Schemas } from "./operations.js";

/** Position in the text and in the reasoning of the reply in progress, in characters (code points). */
export class Fragments {
  private readonly positions = new Map<string, number>();

  /** The event; of a fragment, the part that was not returned before, or `undefined` if all of it was. */
  new(event: Schemas["StreamEvent"]): Schemas["StreamEvent"] | undefined {
    if (event.type === "llm.call.started") this.positions.clear();
    if (event.type !== "llm.text.delta" && event.type !== "llm.reasoning.delta") return event;
    const sequence = `${event.type} ${event.attempt}`;
    const seen = this.positions.get(sequence) ?? 0;
    if (event.next_index <= seen) return undefined;
    this.positions.set(sequence, event.next_index);
    if (event.index >= seen) return event;
    return { ...event, index: seen, text: [...event.text].slice(seen - event.index).join("") };
  }
}
