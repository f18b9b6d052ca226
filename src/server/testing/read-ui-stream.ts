import { asSchema, readUIMessageStream, type UIMessage, type UIMessageChunk, uiMessageChunkSchema } from "ai";
import { expect } from "vitest";

export interface Answer {
  readonly chunks: readonly UIMessageChunk[];
  readonly ids: readonly (string | undefined)[];
  readonly message: UIMessage;
  readonly isDone: boolean;
}

const schema = asSchema(uiMessageChunkSchema);

/** Reads a stream as a page does; each chunk must be valid. */
export async function readAnswer(
  reply: Response,
  { before, upTo = Infinity }: { before?: UIMessage | undefined; upTo?: number } = {},
): Promise<Answer> {
  expect(reply.headers.get("x-vercel-ai-ui-message-stream")).toBe("v1");
  const chunks: UIMessageChunk[] = [];
  const ids: (string | undefined)[] = [];
  let isDone = false;
  const text = reply.body?.pipeThrough(new TextDecoderStream());
  let rest = "";
  for await (const part of text ?? []) {
    rest += part;
    const frames = rest.split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      if (data === undefined) continue;
      isDone = data === "[DONE]";
      if (isDone) break;
      const checked = await schema.validate?.(JSON.parse(data));
      expect(checked).toMatchObject({ success: true });
      chunks.push(JSON.parse(data));
      ids.push(/^id: (\d+)$/m.exec(frame)?.[1]);
    }
    if (chunks.length >= upTo) break;
  }
  return { chunks, ids, message: await toMessage(chunks, before), isDone };
}

/** The message that the AI SDK builds of chunks. */
export async function toMessage(chunks: readonly UIMessageChunk[], before?: UIMessage): Promise<UIMessage> {
  let message: UIMessage | undefined = before;
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  for await (const next of readUIMessageStream({
    ...(before && { message: structuredClone(before) }),
    stream,
    onError: () => undefined,
  }))
    message = next;
  return JSON.parse(JSON.stringify(message ?? null));
}
