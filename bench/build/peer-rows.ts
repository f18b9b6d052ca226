import { execFile } from "node:child_process";
import { cp, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { installPeer } from "../runtime/peers/install-peer.ts";
import { measureColdStarts, startProgram } from "./cold-start.ts";
import { type Row, sizeOf } from "./row.ts";

/** A peer's project with the agent of `kit init`, its build, and its deployable output. */
interface Peer {
  readonly name: string;
  readonly label: string;
  readonly packages: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
  /** The command of the build, below node_modules. */
  readonly build: readonly string[];
  /** Copies the deployable output into a folder outside the project; returns the reason if that fails. */
  deploy(project: string, output: string): Promise<string | undefined>;
  readonly server: string;
}

const variables = { MASTRA_TELEMETRY_DISABLED: "1" };

const mastra: Peer = {
  name: "mastra",
  label: "Mastra 1.71.0 (CLI 1.31.0): `mastra build`, which runs npm install",
  packages: { "@mastra/core": "1.71.0", mastra: "1.31.0", zod: "4.6.7" },
  files: {
    "src/mastra/index.ts": `import { Mastra } from "@mastra/core";
import { Agent } from "@mastra/core/agent";

const reviewer = new Agent({
  id: "reviewer",
  name: "reviewer",
  description: "Reviews a change or a file.",
  instructions: "You review code for the team. Name file and line.",
  model: "openai/gpt-5-mini",
});
export const mastra = new Mastra({ agents: { reviewer } });
`,
    "tsconfig.json": `{"compilerOptions": {"target": "ES2022", "module": "ES2022", "moduleResolution": "bundler", "strict": true}}\n`,
  },
  build: ["mastra/dist/index.js", "build"],
  deploy: async (project, output) => {
    await rm(output, { recursive: true, force: true });
    await rename(join(project, ".mastra/output"), output);
    return undefined;
  },
  server: "index.mjs",
};

/** Flue leaves packages out of its output: they are installed next to it, which is not part of the build. */
const flue: Peer = {
  name: "flue",
  label: "Flue 2.1.0 (@flue/vite 2.0.3): `vite build`, with its packages",
  packages: { "@flue/runtime": "2.1.0", "@flue/vite": "2.0.3", hono: "4.12.32", vite: "8.3.8" },
  files: {
    "vite.config.ts": `import { flue } from "@flue/vite";
import { defineConfig } from "vite";
export default defineConfig({ plugins: [flue()] });
`,
    "src/agents/reviewer.ts": `"use agent";
import { useModel } from "@flue/runtime";

export function Reviewer() {
  useModel("openai/gpt-5-mini");
  return "You review code for the team. Name file and line.";
}
`,
    "src/app.ts": `import { createAgentRouter } from "@flue/runtime/routing";
import { Hono } from "hono";
import { Reviewer } from "./agents/reviewer.ts";

const app = new Hono();
app.route("/agents/reviewer", createAgentRouter(Reviewer));
app.get("/health", (c) => c.json({ status: "ok" }));
export default app;
`,
  },
  build: ["vite/bin/vite.js", "build"],
  deploy: async (project, output) => {
    const packages = { "@flue/runtime": "2.1.0", hono: "4.12.32" };
    const reason = await installPeer("flue-output", packages, dirname(output));
    await rm(join(output, "dist"), { recursive: true, force: true });
    if (reason === undefined) await cp(join(project, "dist"), join(output, "dist"), { recursive: true });
    return reason;
  },
  server: "dist/server.mjs",
};

/** Mastra and Flue with the same agent, installed in a folder that the next run reuses. */
export async function* measurePeers(folder: string | undefined, rounds: number): AsyncGenerator<Row> {
  for (const peer of [mastra, flue]) {
    yield folder === undefined
      ? { label: peer.label, note: "left out: name a folder for its packages with --peers" }
      : await measurePeer(peer, folder, rounds).catch((error: unknown) => ({
          label: peer.label,
          note: `failed: ${error instanceof Error ? error.message : String(error)}`,
        }));
  }
}

async function measurePeer(peer: Peer, folder: string, rounds: number): Promise<Row> {
  const { label } = peer;
  const missing = await installPeer(peer.name, peer.packages, folder);
  if (missing !== undefined) return { label, note: `could not be installed: ${missing}` };
  const project = join(folder, peer.name);
  const output = join(folder, `${peer.name}-output`);
  for (const [path, text] of Object.entries(peer.files)) {
    await mkdir(dirname(join(project, path)), { recursive: true });
    await writeFile(join(project, path), text);
  }
  const [command = "", ...args] = peer.build;
  const started = performance.now();
  await promisify(execFile)(process.execPath, [join(project, "node_modules", command), ...args], {
    cwd: project,
    env: { ...process.env, ...variables },
  });
  const buildMs = performance.now() - started;
  const unready = await peer.deploy(project, output);
  if (unready !== undefined) return { label, buildMs, note: `could not be installed: ${unready}` };
  const server = join(output, peer.server);
  const start = await measureColdStarts(() => startProgram(() => [server], variables), rounds);
  return { label, buildMs, size: await sizeOf(output), start };
}
