/** One server-sent event as a client reads it. */
export interface ReceivedEvent {
  readonly id: string | undefined;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever was sent.
  readonly data: any;
}

/** The events of a reply as they come; stopping early closes the connection. */
export async function* readEventStream(reply: Response): AsyncGenerator<ReceivedEvent> {
  if (reply.body === null) return;
  let text = "";
  for await (const chunk of reply.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      const block = text.slice(0, end);
      text = text.slice(end + 2);
      const event = parseBlock(block);
      if (event !== undefined) yield event;
    }
  }
}

/** All events of a reply, to its end. */
export async function collectEvents(reply: Response): Promise<readonly ReceivedEvent[]> {
  const events: ReceivedEvent[] = [];
  for await (const event of readEventStream(reply)) events.push(event);
  return events;
}

function parseBlock(block: string): ReceivedEvent | undefined {
  const fields = new Map(
    block.split("\n").map((line) => {
      const colon = line.indexOf(": ");
      return [line.slice(0, colon), line.slice(colon + 2)] as const;
    }),
  );
  const data = fields.get("data");
  if (data === undefined) return undefined;
  return { id: fields.get("id"), event: fields.get("event") ?? "message", data: JSON.parse(data) };
}
