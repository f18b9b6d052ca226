import { loadPeer } from "../peers/install-peer.ts";
import {
  deltasPerAnswer,
  type OpenSubject,
  type Script,
  type Subject,
  toolCallsPerLoop,
} from "../subject.ts";

/** pi-agent-core: its `Agent` in memory. Its harness stores JSONL, slower than the peers measured with a store. */
export const pi: Subject = { stores: false, streams: true, open };

interface PiMessage {
  readonly role: string;
  readonly content: readonly unknown[];
}

interface PiStream {
  push(event: unknown): void;
  end(): void;
}

interface PiCore {
  readonly Agent: new (options: {
    readonly initialState: unknown;
    readonly streamFn: (model: unknown, context: { readonly messages: readonly PiMessage[] }) => PiStream;
  }) => {
    prompt(text: string): Promise<void>;
    subscribe(
      listener: (event: { type: string; assistantMessageEvent?: { type: string } }) => void,
    ): () => void;
    readonly state: { readonly errorMessage?: string };
  };
}

interface PiAi {
  createAssistantMessageEventStream(): PiStream;
  readonly Type: { Object(fields: unknown): unknown; String(): unknown };
}

const noCost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const model = {
  id: "zero",
  name: "zero",
  api: "zero",
  provider: "zero",
  baseUrl: "",
  reasoning: false,
  input: ["text"],
  cost: noCost,
  contextWindow: 128_000,
  maxTokens: 4_096,
};

async function open({ script }: Parameters<Subject["open"]>[0]): Promise<OpenSubject> {
  const { Agent } = await loadPeer<PiCore>("pi", "@earendil-works/pi-agent-core");
  const ai = await loadPeer<PiAi>("pi", "@earendil-works/pi-ai");
  const echo = {
    name: "echo",
    label: "Echo",
    description: "Says it again.",
    parameters: ai.Type.Object({ text: ai.Type.String() }),
    execute: async (_id: string, { text }: { readonly text: string }) => ({
      content: [{ type: "text", text }],
      details: null,
    }),
  };
  const streamFn = createStreamFunction(script, ai);
  const agents = new Map<string, InstanceType<PiCore["Agent"]>>();
  const agentFor = (session: string): InstanceType<PiCore["Agent"]> => {
    let agent = agents.get(session);
    if (agent === undefined) {
      if (agents.size > 1_000) agents.clear();
      agent = new Agent({ initialState: { systemPrompt: "You help.", model, tools: [echo] }, streamFn });
      agents.set(session, agent);
    }
    return agent;
  };
  const prompt = async (session: string): Promise<void> => {
    const agent = agentFor(session);
    await agent.prompt("hi");
    if (agent.state.errorMessage !== undefined) throw new Error(agent.state.errorMessage);
  };
  return {
    prompt,
    async listen(session, onDelta) {
      const stop = agentFor(session).subscribe((event) => {
        if (event.assistantMessageEvent?.type === "text_delta") onDelta();
      });
      await prompt(session);
      stop();
    },
    close: async () => agents.clear(),
  };
}

function createStreamFunction(
  script: Script,
  ai: PiAi,
): (model: unknown, context: { readonly messages: readonly PiMessage[] }) => PiStream {
  let calls = 0;
  return (_model, { messages }) => {
    const stream = ai.createAssistantMessageEventStream();
    const base = {
      role: "assistant",
      api: "zero",
      provider: "zero",
      model: "zero",
      usage: { input: 100, output: 10, cacheRead: 0, cacheWrite: 0, totalTokens: 110, cost: noCost },
      timestamp: Date.now(),
    };
    if (script === "tools" && resultsSinceUser(messages) < toolCallsPerLoop) {
      calls += 1;
      const toolCall = {
        type: "toolCall",
        id: `call_${calls}`,
        name: "echo",
        arguments: { text: "the same again" },
      };
      const message = { ...base, content: [toolCall], stopReason: "toolUse" };
      stream.push({ type: "start", partial: message });
      stream.push({ type: "toolcall_start", contentIndex: 0, partial: message });
      stream.push({ type: "toolcall_end", contentIndex: 0, toolCall, partial: message });
      stream.push({ type: "done", reason: "toolUse", message });
    } else {
      const deltas = script === "deltas" ? deltasPerAnswer : 1;
      const delta = script === "deltas" ? "word " : "Hello there.";
      const text = delta.repeat(deltas);
      const message = { ...base, content: [{ type: "text", text }], stopReason: "stop" };
      stream.push({ type: "start", partial: message });
      stream.push({ type: "text_start", contentIndex: 0, partial: message });
      for (let index = 0; index < deltas; index += 1) {
        stream.push({ type: "text_delta", contentIndex: 0, delta, partial: message });
      }
      stream.push({ type: "text_end", contentIndex: 0, content: text, partial: message });
      stream.push({ type: "done", reason: "stop", message });
    }
    stream.end();
    return stream;
  };
}

function resultsSinceUser(messages: readonly PiMessage[]): number {
  let results = 0;
  for (let index = messages.length - 1; index >= 0 && messages[index]?.role !== "user"; index -= 1) {
    if (messages[index]?.role === "toolResult") results += 1;
  }
  return results;
}
