import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type KitSetup, prepareRoot, profileOf } from "../../runtime/kit-setups.ts";
import { createServedModel } from "../model.ts";
import type { Serve } from "../subject.ts";

const built = (path: string): string => new URL(`../../../dist/${path}`, import.meta.url).href;

const filesOf = (setup: KitSetup): Readonly<Record<string, string>> => ({
  "src/agents/bench.js": `export const triggers = { webhook: true };
export default {
  kind: "kit.agent",
  describe: async () => (${JSON.stringify({
    model: "bench/zero",
    instructions: "You help.",
    compaction: { enabled: false },
    ...profileOf(setup),
  })}),
};
`,
  "src/workflows/waiting.js": "export const run = (ctx) => ctx.waitFor('word');\n",
});

/** kit like `kit start`: the built package, with sessions and accepted work in SQLite. */
export const serveKit =
  (setup: KitSetup): Serve =>
  (options) =>
    serve(setup, options);

async function serve(setup: KitSetup, { folder, ...model }: Parameters<Serve>[0]): Promise<number> {
  await prepareRoot(setup, folder);
  for (const [path, text] of Object.entries(filesOf(setup))) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  const { openProject, openService }: typeof import("../../../src/index.ts") = await import(
    built("index.js")
  );
  const { createServer }: typeof import("../../../src/server/index.ts") = await import(
    built("server/index.js")
  );
  const project = await openProject({ root: folder });
  const onError = (error: unknown): void => console.error(error);
  const service = await openService({
    root: folder,
    env: {},
    models: { "bench/zero": createServedModel(model) },
    onListenerError: onError,
  });
  await project.watch(() => undefined);
  const { port } = await createServer({ project, service, onError }).listen({ port: 0 });
  return port;
}
