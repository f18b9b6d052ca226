import { loadPeer } from "../peers/install-peer.ts";
import type { OpenSubject, Subject } from "../subject.ts";
import { createZeroModel } from "../zero-model.ts";

/** The AI SDK: `generateText` and `streamText`. It stores no conversations: the caller keeps the array. */
export const aiSdk: Subject = { stores: false, streams: true, open };

interface AiSdk {
  generateText(
    options: unknown,
  ): Promise<{ readonly response: { readonly messages: readonly unknown[] }; readonly text: string }>;
  streamText(options: unknown): { readonly textStream: AsyncIterable<string> };
  isStepCount(count: number): unknown;
  jsonSchema(schema: unknown): unknown;
  tool(definition: unknown): unknown;
}

async function open({ script }: Parameters<Subject["open"]>[0]): Promise<OpenSubject> {
  const ai = await loadPeer<AiSdk>("ai-sdk", "ai");
  const echo = ai.tool({
    description: "Says it again.",
    inputSchema: ai.jsonSchema({
      type: "object",
      properties: { text: { type: "string" } },
      required: ["text"],
    }),
    execute: async ({ text }: { readonly text: string }) => text,
  });
  const model = createZeroModel(script);
  const common = { model, system: "You help.", tools: { echo }, stopWhen: ai.isStepCount(20) };
  const sessions = new Map<string, unknown[]>();
  return {
    async prompt(session) {
      let messages = sessions.get(session);
      if (messages === undefined) {
        if (sessions.size > 1_000) sessions.clear();
        messages = [];
        sessions.set(session, messages);
      }
      messages.push({ role: "user", content: "hi" });
      const { response } = await ai.generateText({ ...common, messages });
      messages.push(...response.messages);
    },
    async stream(_session, onDelta) {
      for await (const _delta of ai.streamText({ ...common, prompt: "hi" }).textStream) onDelta();
    },
    close: async () => sessions.clear(),
  };
}
