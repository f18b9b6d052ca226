import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type KitSetup, prepareRoot, profileOf } from "../kit-setups.ts";
import type { OpenSubject, Subject } from "../subject.ts";
import { createDelayedModel, createZeroModel } from "../zero-model.ts";

const built = (path: string): string => new URL(`../../../dist/${path}`, import.meta.url).href;

/** kit like a user's: the built package, `initAgent`, the default sandbox and store, every built-in tool. */
export function createKit(setup: KitSetup): Subject {
  return { stores: true, streams: true, open: (request) => open(request, setup) };
}

async function open(request: Parameters<Subject["open"]>[0], setup: KitSetup): Promise<OpenSubject> {
  const kit: typeof import("../../../src/index.ts") = await import(built("index.js"));
  const memory: typeof import("../../../src/stores/memory/index.ts") = await import(
    built("stores/memory/index.js")
  );
  const echo = kit.defineTool<{ readonly text: string }>({
    name: "echo",
    description: "Says it again.",
    input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    execute: async ({ text }) => text,
  });
  const { delay, file, script } = request;
  const model = delay === undefined ? createZeroModel(script) : createDelayedModel(script, delay);
  const root = file === undefined ? await mkdtemp(join(tmpdir(), "kit-bench-")) : dirname(file);
  await prepareRoot(setup, root);
  const agent = await kit.initAgent(
    kit.createAgent({
      model: "bench/zero",
      instructions: "You help.",
      tools: [echo],
      compaction: { enabled: false },
      ...profileOf(setup),
    }),
    {
      root,
      env: {},
      models: { "bench/zero": model },
      // The stored variant uses the default store: SQLite below `.kit`.
      ...(file === undefined && { store: new memory.InMemorySessionStore() }),
    },
  );
  return {
    prompt: (session) => agent.session(session).prompt("hi"),
    async stream(session, onDelta) {
      const stream = agent.session(session).stream("hi");
      for await (const event of stream) if (event.type === "text_delta") onDelta();
      await stream.result;
    },
    async listen(session, onDelta) {
      const stop = agent.onEvent((event) => {
        if (event.type === "text_delta") onDelta();
      });
      await agent.session(session).prompt("hi");
      stop();
    },
    reopen: async (session) => (await agent.session(session).history()).length,
    async close() {
      await agent.close();
      if (file === undefined) await rm(root, { recursive: true });
    },
  };
}
