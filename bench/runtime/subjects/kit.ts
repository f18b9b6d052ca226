import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OpenSubject, Subject } from "../subject.ts";
import { createZeroModel } from "../zero-model.ts";

const built = (path: string): string => new URL(`../../../dist/${path}`, import.meta.url).href;

/**
 * kit as a user has it: the built package, `initAgent`, every built-in tool. Told nothing of a
 * repository, because no peer is; with `repository` it has specs, guidelines and instructions too.
 */
export function createKit(options: { readonly repository: boolean }): Subject {
  return { stores: true, streams: true, open: (request) => open(request, options.repository) };
}

async function open(request: Parameters<Subject["open"]>[0], repository: boolean): Promise<OpenSubject> {
  const kit: typeof import("../../../src/index.ts") = await import(built("index.js"));
  const memory: typeof import("../../../src/stores/memory/index.ts") = await import(
    built("stores/memory/index.js")
  );
  const sqlite: typeof import("../../../src/stores/sqlite/index.ts") = await import(
    built("stores/sqlite/index.js")
  );
  const echo = kit.defineTool<{ readonly text: string }>({
    name: "echo",
    description: "Says it again.",
    input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
    execute: async ({ text }) => text,
  });
  const root = await mkdtemp(join(tmpdir(), "kit-bench-"));
  const agent = await kit.initAgent(
    kit.createAgent({
      model: "bench/zero",
      instructions: "You help.",
      tools: [echo],
      specs: repository,
      guidelines: repository,
      projectInstructions: repository,
      compaction: { enabled: false },
    }),
    {
      root,
      env: {},
      models: { "bench/zero": createZeroModel(request.script) },
      store:
        request.file === undefined
          ? new memory.InMemorySessionStore()
          : new sqlite.SqliteSessionStore({ file: request.file }),
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
      const stop = agent.subscribe((event) => {
        if (event.type === "text_delta") onDelta();
      });
      await agent.session(session).prompt("hi");
      stop();
    },
    reopen: async (session) => (await agent.session(session).history()).length,
    async close() {
      await agent.close();
      await rm(root, { recursive: true });
    },
  };
}
