import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/files.ts";
import { KitClient } from "../../src/client/index.ts";
import { freePort } from "../../src/testing/free-port.ts";
import { servedCases } from "./served-cases.ts";
import { outputVariables, ServerOutput } from "./server-output.ts";
import { apiKey, createTargetProject, type TargetProject } from "./target-project.ts";

/** `npm run test:targets` installs it, with workerd. */
const wrangler = fileURLToPath(
  new URL("../../vendors/node_modules/wrangler/bin/wrangler.js", import.meta.url),
);
const hasWrangler = existsSync(wrangler);

const folders: string[] = [];
const newFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "kit-workerd-"));
  folders.push(folder);
  return folder;
};
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

/** Runs workerd through `wrangler dev`, like a user. The state of its objects is in a folder and survives a kill. */
async function serveWorker(
  folder: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<ServerOutput> {
  const port = await freePort();
  const variableArguments = Object.entries(variables).flatMap(([name, value]) => [
    "--var",
    `${name}:${value}`,
  ]);
  const state = await newFolder();
  const server = new ServerOutput(
    [
      ...[process.execPath, wrangler, "dev", "--config", join(folder, "wrangler.jsonc")],
      ...[
        "--ip",
        "127.0.0.1",
        "--port",
        String(port),
        "--persist-to",
        state,
        "--show-interactive-dev-session=false",
      ],
      ...variableArguments,
    ],
    { CI: "1", WRANGLER_SEND_METRICS: "false", XDG_CONFIG_HOME: state },
  );
  await server.start();
  return server;
}

describe.skipIf(!hasWrangler)("a worker", () => {
  let project: TargetProject;
  let server: ServerOutput;
  let built = "";

  beforeAll(async () => {
    project = await createTargetProject();
    const { exitCode, stdout, stderr } = await project.kit(["build", "--target", "cloudflare"]);
    expect(stderr).toBe("");
    expect(exitCode).toBe(0);
    built = stdout;
    server = await serveWorker(join(project.root, "build/cloudflare"), outputVariables);
  });
  afterAll(async () => {
    await server?.end("SIGKILL");
    await project?.remove();
  });

  test.each(servedCases)("workerd: $name", async ({ run }) => {
    await run(server);
  });

  test("the alarm wakes a run that sleeps after a kill, before any request comes", async () => {
    const client = new KitClient({ baseUrl: server.url, apiKey });
    const { run_id } = await client.workflows.start("count", { text: "six seven", wait_ms: 3_000 });
    await expect.poll(async () => (await client.runs.get(run_id)).status).toBe("waiting");
    await server.restart();
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    const requestedAt = Date.now();
    const run = await new KitClient({ baseUrl: server.url, apiKey }).runs.get(run_id);
    expect(run).toMatchObject({ status: "completed", result: { words: 2 } });
    expect(Date.parse(String(run.ended_at))).toBeLessThan(requestedAt);
  });

  test("the size of a worker leaves room in the free plan, and the build prints it", async () => {
    const code = await readFile(join(project.root, "build/cloudflare/app/worker.js"));
    expect(gzipSync(code).byteLength).toBeLessThan(2.5 * 1024 * 1024);
    expect(built).toMatch(/The worker has \d\.\d MB, \d\.\d MB compressed; Workers take 3\.0 MB/);
  });

  test("the same project builds to the same bytes, and contains no path of this machine", async () => {
    const path = join(project.root, "build/cloudflare/app/worker.js");
    const before = await readFile(path, "utf8");
    await rm(join(project.root, "build"), { recursive: true });
    await project.kit(["build", "--target", "cloudflare"]);
    const code = await readFile(path, "utf8");
    expect(code === before).toBe(true);
    expect([code.includes(project.root), code.includes(repositoryRoot)]).toEqual([false, false]);
  });

  test("a worker refuses a WebSocket and names the alternative", async () => {
    const reply = await fetch(`${server.url}/agents/reviewer/1`, { headers: { Upgrade: "websocket" } }).catch(
      () => undefined,
    );
    // Node's fetch sends no upgrade, so the handshake of the client's own WebSocket is tested.
    if (reply !== undefined) expect(reply.status).not.toBe(101);
    const socket = new WebSocket(server.url.replace("http", "ws"));
    const ended = await new Promise((resolve) => {
      socket.onopen = () => resolve("open");
      socket.onerror = () => resolve("refused");
    });
    expect(ended).toBe("refused");
  });
});

describe.skipIf(!hasWrangler)("without a key", () => {
  test("a worker answers only requests to names of this machine", async () => {
    const project = await createTargetProject();
    let server: ServerOutput | undefined;
    try {
      await project.kit(["build", "--target", "cloudflare"]);
      server = await serveWorker(join(project.root, "build/cloudflare"));
      expect((await fetch(`${server.url}/health`)).status).toBe(200);
    } finally {
      await server?.end("SIGKILL");
      await project.remove();
    }
  });
});

describe.skipIf(!hasWrangler)("the contracts of the stores in a Durable Object, on workerd", () => {
  let server: ServerOutput;

  beforeAll(async () => {
    const folder = await newFolder();
    await mkdir(join(folder, "app"));
    await writeFile(join(folder, "app/worker.js"), await bundleContracts());
    const config = {
      name: "contracts",
      main: "app/worker.js",
      no_bundle: true,
      compatibility_date: "2026-11-01",
      compatibility_flags: ["nodejs_compat"],
      durable_objects: { bindings: [{ name: "TESTS", class_name: "Tests" }] },
      migrations: [{ tag: "v1", new_sqlite_classes: ["Tests"] }],
    };
    await writeFile(join(folder, "wrangler.jsonc"), JSON.stringify(config));
    server = await serveWorker(folder);
  });
  afterAll(async () => {
    await server?.end("SIGKILL");
  });

  test("every case of the session store, the engine and the event log passes", async () => {
    const names = (await (await fetch(`${server.url}/tests`)).json()) as readonly string[];
    expect(names.length).toBeGreaterThan(100);
    const failed: string[] = [];
    const queue = [...names];
    const work = async (): Promise<void> => {
      for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
        const reply = await fetch(`${server.url}/run?name=${encodeURIComponent(name)}`);
        const { error } = (await reply.json()) as { readonly error?: string };
        if (error !== undefined) failed.push(`${name}: ${error}`);
      }
    };
    await work();
    expect(failed).toEqual([]);
  }, 180_000);
});

async function bundleContracts(): Promise<string> {
  const folder = join(repositoryRoot, "tests/targets/workerd");
  const bundle = await rolldown({
    cwd: repositoryRoot,
    input: { worker: join(folder, "contracts-worker.ts") },
    platform: "node",
    external: /^node:/,
    transform: { target: "es2024" },
    resolve: {
      conditionNames: ["workerd", "worker", "import", "module", "default"],
    },
    logLevel: "silent",
  });
  const { output } = await bundle.generate({ format: "esm", codeSplitting: false });
  await bundle.close();
  return output[0].code;
}
