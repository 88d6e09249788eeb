// Messages of a stream of server-sent events.

/** Milliseconds without a byte after which a connection counts as broken: the server sends a comment every 15 seconds. */
const SILENCE = 45_000;

/** Message of a stream. One without data only has the position of the stream. */
export type Message = { id: string | undefined; data: string };

/** The messages until the stream ends, which it does by an error if the connection breaks. */
export async function* messages(body: ReadableStream<Uint8Array>): AsyncGenerator<Message> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await within(SILENCE, reader.read());
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const lines = block.split(/\r?\n/);
        const values = (field: string) => lines.filter((line) => line.startsWith(field)).map((line) => line.slice(field.length).trimStart());
        yield { id: values("id:").at(-1), data: values("data:").join("\n") };
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("the stream is silent")), milliseconds);
  });
  return Promise.race([promise, silence]).finally(() => clearTimeout(timer));
}
