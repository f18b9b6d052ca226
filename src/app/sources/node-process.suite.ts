import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";

const url = (file: string): string => JSON.stringify(new URL(file, import.meta.url).href);

const prelude = `
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createService } from ${url("../service/create-service.ts")};
import { createEmbeddedEngine } from ${url("../../engine/embedded/create-embedded-engine.ts")};
import { loadSource } from ${url("discover-sources.ts")};
import { InMemorySessionStore } from ${url("../../stores/memory/memory-store.ts")};
import { createScriptedModel } from ${url("../../testing/scripted-model.ts")};
const root = process.argv[1];
const write = (path, text) => writeFileSync(join(root, path), text);
const open = async (script = () => ({ text: "ok" }), over = {}) => (await createService({
  root,
  store: new InMemorySessionStore(),
  sandbox: { name: "none", open: async () => { throw new Error("no sandbox"); } },
  resolveModel: async (name) => ({ name, model: createScriptedModel(script), structuredOutput: "never" }),
  defaultModel: "scripted/test",
  env: {},
  close: async () => undefined,
  ...over,
}, { engine: createEmbeddedEngine(), keepsWork: false })).app;
const systemOf = (call) => call.prompt[0].content;
const say = (value) => console.log(JSON.stringify(value));
`;

/** Runs code in a Node of its own, in which \`open\` opens the app of \`root\`; gives what it says. */
export async function inNode(root: string, code: string): Promise<unknown> {
  const child = startNode(root, code);
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [stdout, stderr, exitCode] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  if (exitCode !== 0 || stderr !== "") throw new Error(`It ended with ${exitCode}:\n${stderr}`);
  return JSON.parse(stdout);
}

/** Runs code in the same way until it says something, and kills the process then. */
export async function killedInNode(root: string, code: string): Promise<void> {
  const child = startNode(root, code);
  const errors = text(child.stderr);
  const said = once(createInterface({ input: child.stdout }), "line");
  const closed = once(child, "exit").then(async () => {
    throw new Error(`It ended by itself:\n${await errors}`);
  });
  closed.catch(() => undefined);
  await Promise.race([said, closed]);
  child.kill("SIGKILL");
  await closed.catch(() => undefined);
}

function startNode(root: string, code: string): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, ["--input-type=module", "--eval", `${prelude}\n${code}`, "--", root]);
}
