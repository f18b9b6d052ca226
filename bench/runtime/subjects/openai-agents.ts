import { loadPeer } from "../peers/install-peer.ts";
import {
  deltasPerAnswer,
  type OpenSubject,
  type Script,
  type Subject,
  toolCallsPerLoop,
} from "../subject.ts";

/** OpenAI Agents with its `MemorySession`; it has no store that survives the process. */
export const openaiAgents: Subject = { stores: false, streams: true, open };

interface Item {
  readonly type?: string;
  readonly role?: string;
}

interface RunResult {
  toTextStream(): AsyncIterable<string>;
}

interface OpenAiAgents {
  readonly Agent: new (options: unknown) => unknown;
  readonly MemorySession: new () => unknown;
  readonly Runner: new (options: {
    readonly tracingDisabled: boolean;
  }) => {
    run(agent: unknown, input: string, options: unknown): Promise<RunResult>;
  };
  readonly Usage: new (usage: unknown) => unknown;
  tool(definition: unknown): unknown;
}

interface Zod {
  readonly z: { object(fields: unknown): unknown; string(): unknown };
}

const usage = { requests: 1, inputTokens: 100, outputTokens: 10, totalTokens: 110 };

async function open({ script }: Parameters<Subject["open"]>[0]): Promise<OpenSubject> {
  const library = await loadPeer<OpenAiAgents>("openai-agents", "@openai/agents");
  const { z } = await loadPeer<Zod>("openai-agents", "zod");
  const echo = library.tool({
    name: "echo",
    description: "Says it again.",
    parameters: z.object({ text: z.string() }),
    execute: async ({ text }: { readonly text: string }) => text,
  });
  const agent = new library.Agent({
    name: "bench",
    instructions: "You help.",
    model: createModel(script, library),
    tools: [echo],
  });
  const runner = new library.Runner({ tracingDisabled: true });
  const sessions = new Map<string, unknown>();
  const sessionFor = (name: string): unknown => {
    let session = sessions.get(name);
    if (session === undefined) {
      if (sessions.size > 1_000) sessions.clear();
      session = new library.MemorySession();
      sessions.set(name, session);
    }
    return session;
  };
  return {
    prompt: (name) => runner.run(agent, "hi", { maxTurns: 20, session: sessionFor(name) }),
    async stream(_name, onDelta) {
      const result = await runner.run(agent, "hi", { stream: true });
      for await (const _delta of result.toTextStream()) onDelta();
    },
    close: async () => sessions.clear(),
  };
}

function createModel(script: Script, library: OpenAiAgents): unknown {
  let calls = 0;
  const answer = (input: string | readonly Item[]): readonly unknown[] => {
    if (script === "tools" && resultsSinceUser(typeof input === "string" ? [] : input) < toolCallsPerLoop) {
      calls += 1;
      const call = { type: "function_call", name: "echo", status: "completed" };
      return [{ ...call, callId: `call_${calls}`, arguments: '{"text":"the same again"}' }];
    }
    const text = script === "deltas" ? "word ".repeat(deltasPerAnswer) : "Hello there.";
    return [
      { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] },
    ];
  };
  return {
    getResponse: async (request: { readonly input: string | readonly Item[] }) => ({
      usage: new library.Usage(usage),
      output: answer(request.input),
      responseId: "response",
    }),
    async *getStreamedResponse(request: { readonly input: string | readonly Item[] }) {
      yield { type: "response_started" };
      for (let index = 0; index < deltasPerAnswer; index += 1)
        yield { type: "output_text_delta", delta: "word " };
      yield { type: "response_done", response: { id: "response", usage, output: answer(request.input) } };
    },
  };
}

function resultsSinceUser(items: readonly Item[]): number {
  let results = 0;
  for (let index = items.length - 1; index >= 0 && items[index]?.role !== "user"; index -= 1) {
    if (items[index]?.type === "function_call_result") results += 1;
  }
  return results;
}
