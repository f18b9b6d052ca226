import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { loadSource } from "../sources/load-source.ts";
import { createApp } from "./create-app.ts";

type Script = Parameters<typeof createScriptedModel>[0];
type AppOptions = Parameters<typeof createApp>[0];

/** Runs code, in which `open` opens the app of `root`; gives what it says. Code that imports is for `inNode`. */
export async function runCode(root: string, code: string): Promise<unknown> {
  let said: unknown;
  const tools = {
    root,
    join,
    loadSource,
    write: (path: string, text: string) => writeFileSync(join(root, path), text),
    open: (script: Script = () => ({ text: "ok" }), over: Partial<AppOptions> = {}) =>
      createApp({
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
        ...over,
      }),
    systemOf: (call: { readonly prompt: readonly { readonly content: unknown }[] }) =>
      call.prompt[0]?.content,
    say: (value: unknown) => {
      said = JSON.parse(JSON.stringify(value));
    },
  };
  const AsyncFunction = Object.getPrototypeOf(async () => undefined).constructor;
  await new AsyncFunction(...Object.keys(tools), code)(...Object.values(tools));
  return said;
}
