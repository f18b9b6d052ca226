import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createEmbeddedEngine } from "../../engine/embedded/create-embedded-engine.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import type { RuntimeParts } from "../runtime/agent-factory.ts";
import { createService } from "../service/create-service.ts";
import { loadSource } from "./discover-sources.ts";

type Script = Parameters<typeof createScriptedModel>[0];

/** Runs code, in which `open` opens the app of `root`; gives what it says. Code that imports is for `inNode`. */
export async function runCode(root: string, code: string): Promise<unknown> {
  let answer: unknown;
  const tools = {
    root,
    join,
    loadSource,
    write: (path: string, text: string) => writeFileSync(join(root, path), text),
    open: async (script: Script = () => ({ text: "ok" }), over: Partial<RuntimeParts> = {}) => {
      const parts: RuntimeParts = {
        root,
        store: new InMemorySessionStore(),
        sandbox: {
          name: "none",
          open: async () => {
            throw new Error("no sandbox");
          },
        },
        resolveModel: async (name) => ({
          name,
          model: createScriptedModel(script),
          structuredOutput: "never",
        }),
        defaultModel: "scripted/test",
        env: {},
        close: async () => undefined,
        ...over,
      };
      return (await createService(parts, { engine: createEmbeddedEngine(), keepsWork: false })).app;
    },
    systemOf: (call: { readonly prompt: readonly { readonly content: unknown }[] }) =>
      call.prompt[0]?.content,
    say: (value: unknown) => {
      answer = JSON.parse(JSON.stringify(value));
    },
  };
  const AsyncFunction = Object.getPrototypeOf(async () => undefined).constructor;
  await new AsyncFunction(...Object.keys(tools), code)(...Object.values(tools));
  return answer;
}
