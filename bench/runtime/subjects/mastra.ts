import { loadPeer } from "../peers/install-peer.ts";
import type { OpenSubject, Script, Subject } from "../subject.ts";
import { createAnswers, streamOf } from "../zero-model.ts";

/** Mastra's agent, with its memory in LibSQL if conversations are stored. */
export const mastra: Subject = { stores: true, streams: true, open };

interface Mastra {
  readonly agent: {
    readonly Agent: new (
      options: unknown,
    ) => {
      generate(text: string, options: unknown): Promise<{ readonly text: string }>;
      stream(text: string, options: unknown): Promise<{ readonly textStream: AsyncIterable<string> }>;
    };
  };
  readonly tools: { createTool(definition: unknown): unknown };
  readonly memory: { readonly Memory: new (options: unknown) => unknown };
  readonly libsql: { readonly LibSQLStore: new (options: unknown) => unknown };
  readonly zod: { readonly z: { object(fields: unknown): unknown; string(): unknown } };
}

async function open({ script, file }: Parameters<Subject["open"]>[0]): Promise<OpenSubject> {
  const load = <Module>(specifier: string): Promise<Module> => loadPeer<Module>("mastra", specifier);
  const library: Mastra = {
    agent: await load("@mastra/core/agent"),
    tools: await load("@mastra/core/tools"),
    memory: await load("@mastra/memory"),
    libsql: await load("@mastra/libsql"),
    zod: await load("zod"),
  };
  const { z } = library.zod;
  const echo = library.tools.createTool({
    id: "echo",
    description: "Says it again.",
    inputSchema: z.object({ text: z.string() }),
    execute: async ({ text }: { readonly text: string }) => ({ text }),
  });
  const memory =
    file === undefined
      ? undefined
      : new library.memory.Memory({
          storage: new library.libsql.LibSQLStore({ id: "bench", url: `file:${file}` }),
          options: { lastMessages: 1_000_000, semanticRecall: false, generateTitle: false },
        });
  const agent = new library.agent.Agent({
    id: "bench",
    name: "bench",
    instructions: "You help.",
    model: toModelV2(script),
    tools: { echo },
    memory,
  });
  const options = (session: string): object => ({
    maxSteps: 20,
    ...(memory === undefined ? {} : { memory: { thread: session, resource: "bench" } }),
  });
  return {
    prompt: (session) => agent.generate("hi", options(session)),
    async stream(session, onDelta) {
      const { textStream } = await agent.stream("hi", options(session));
      for await (const _delta of textStream) onDelta();
    },
    close: async () => undefined,
  };
}

/** The same model as the AI SDK's older interface, which Mastra calls most directly. */
export function toModelV2(script: Script): unknown {
  const usage = { inputTokens: 100, outputTokens: 10, totalTokens: 110 };
  const answers = createAnswers(script);
  const converted = new WeakMap<object, readonly PartV2[]>();
  const partsFor = (options: Parameters<typeof answers>[0]): readonly PartV2[] => {
    const parts = answers(options);
    let older = converted.get(parts);
    if (older === undefined) {
      older = parts.map((part) =>
        part.type === "finish" ? { type: part.type, finishReason: part.finishReason.unified, usage } : part,
      );
      converted.set(parts, older);
    }
    return older;
  };
  return {
    specificationVersion: "v2",
    provider: "zero",
    modelId: "zero",
    supportedUrls: {},
    async doGenerate(options: Parameters<typeof answers>[0]) {
      const parts = partsFor(options);
      const content = parts.flatMap((part) => {
        if (part.type === "text-delta") return [{ type: "text", text: part.delta }];
        return part.type === "tool-call" ? [part] : [];
      });
      return { content, finishReason: parts.at(-1)?.finishReason, usage, warnings: [] };
    },
    doStream: async (options: Parameters<typeof answers>[0]) => ({ stream: streamOf(partsFor(options)) }),
  };
}

interface PartV2 {
  readonly type: string;
  readonly delta?: string;
  readonly finishReason?: string;
}
