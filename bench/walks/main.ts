/**
 * `node bench/walks/main.ts` counts the source files and functions that one piece of work passes through.
 *
 * It takes V8's precise coverage around one warm call in this process; a function counts if it ran at
 * least once. Only files below `src/` count, without tests and test helpers. `--json` prints the rows,
 * `--list NAME` prints the functions of one walk: line, length, calls. `--check`: exits with 1 if a prompt passes through more than it may,
 * by decisions/2026-11-23-files-and-walks.md.
 */
import { spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import type { Profiler } from "node:inspector";
import { Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openAgents, openProject, openService } from "../../src/index.ts";
import { createServer } from "../../src/server/index.ts";
import { createScriptedModel, type ScriptedTurn } from "../../src/testing/scripted-model.ts";

interface Walk {
  readonly name: string;
  readonly files: number;
  readonly functions: number;
  readonly calls: number;
  /** `room files/functions`, the largest first. */
  readonly rooms: string;
}

/** The most files and functions of a walk. */
const limits: Readonly<Record<string, readonly [files: number, functions: number]>> = {
  "POST /agents/echo/1, stream, second prompt": [68, 380],
  "prompt in a program": [37, 179],
};

const { values } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    list: { type: "string" },
    check: { type: "boolean", default: false },
  },
});
const source = fileURLToPath(new URL("../../src/", import.meta.url));
const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
const walks: Walk[] = [];

async function walk(name: string, work: () => Promise<unknown>): Promise<void> {
  await rest();
  await session.post("Profiler.takePreciseCoverage");
  await work();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const rooms = new Map<string, { files: number; functions: number }>();
  let [files, functions, calls] = [0, 0, 0];
  for (const script of result) {
    const path = script.url.startsWith("file:") ? relative(source, fileURLToPath(script.url)) : "..";
    if (path.startsWith("..") || path.includes("testing/") || /\.(test|suite)\.ts$/.test(path)) continue;
    // A module is a function without a name that starts at the file's first character: it runs when the module is loaded.
    const ran = script.functions.filter(
      ({ functionName, ranges: [range] }) =>
        (range?.count ?? 0) > 0 && (functionName !== "" || range?.startOffset !== 0),
    );
    if (ran.length === 0) continue;
    const room = rooms.get(path.split("/")[0] ?? "") ?? { files: 0, functions: 0 };
    rooms.set(path.split("/")[0] ?? "", {
      files: room.files + 1,
      functions: room.functions + ran.length,
    });
    files += 1;
    functions += ran.length;
    calls += ran.reduce((sum, { ranges }) => sum + (ranges[0]?.count ?? 0), 0);
    if (values.list === name) await list(path, ran);
  }
  const busiest = [...rooms].toSorted(([, one], [, other]) => other.functions - one.functions);
  walks.push({
    name,
    files,
    functions,
    calls,
    rooms: busiest.map(([room, count]) => `${room} ${count.files}/${count.functions}`).join(", "),
  });
}

/** Returns one line for each function: its position, its number of lines, and how often it ran. */
async function list(path: string, ran: readonly Profiler.FunctionCoverage[]): Promise<void> {
  const content = await readFile(join(source, path), "utf8");
  const lineAt = (offset: number): number => content.slice(0, offset).split("\n").length;
  console.log(path);
  for (const { functionName, ranges } of ran) {
    const { startOffset, endOffset, count } = ranges[0] ?? { startOffset: 0, endOffset: 0, count: 0 };
    const first = lineAt(startOffset);
    const name = functionName || content.slice(startOffset, endOffset).split("\n")[0]?.slice(0, 60);
    console.log(`  ${first} +${lineAt(endOffset) - first} x${count} ${name}`);
  }
}

const folder = await mkdtemp(join(tmpdir(), "kit-walks-"));
try {
  await writeTree(folder);
  await walkProject();
  await walkService();
  await walkProgram();
  await countModules();
} finally {
  await rm(folder, { recursive: true, force: true });
}
if (values.json) console.log(JSON.stringify(walks, undefined, 2));
else {
  console.log(
    "| Walk | files | functions | calls | by room (files/functions) |\n| --- | --- | --- | --- | --- |",
  );
  for (const row of walks)
    console.log(`| ${row.name} | ${row.files} | ${row.functions} | ${row.calls} | ${row.rooms} |`);
}

for (const [name, [files, functions]] of values.check ? Object.entries(limits) : []) {
  const walked = walks.find((walk) => walk.name === name);
  if (walked !== undefined && walked.files <= files && walked.functions <= functions) continue;
  console.error(
    `${name}: ${walked?.files} files and ${walked?.functions} functions, of ${files} and ${functions}. Take a step away, or decide on more.`,
  );
  process.exitCode = 1;
}

async function writeTree(root: string): Promise<void> {
  const agent = (rest: string): string =>
    `export const triggers = { webhook: true };\nexport default { kind: "kit.agent", describe: async () => ({ model: "walk/${rest}, compaction: { enabled: false } }) };\n`;
  const tree = {
    "kit.toml": "",
    "AGENTS.md": "# Rules\n\n- Write short functions.\n",
    ".kiro/specs/cart/requirements.md":
      "# Requirements\n\n### Requirement 1\n\n#### Acceptance Criteria\n\n1. WHEN a shopper adds an item THEN the cart SHALL hold it\n",
    ".kiro/specs/cart/tasks.md": "# Tasks\n\n- [ ] 1. Add the cart\n  - _Requirements: 1.1_\n",
    "src/agents/echo.js": agent(`echo"`),
    "src/agents/shell.js": agent(`shell", allowShell: true`),
    "src/workflows/wait.js": "export const run = (ctx) => ctx.waitFor('go');\n",
  };
  for (const [path, content] of Object.entries(tree)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
  }
}

async function walkProject(): Promise<void> {
  let project: Awaited<ReturnType<typeof openProject>> | undefined;
  await (await openProject({ root: folder })).close();
  await rm(join(folder, ".kit"), { recursive: true, force: true });
  await walk("openProject, no index yet", async () => {
    project = await openProject({ root: folder });
  });
  await writeFile(join(folder, "AGENTS.md"), "# Rules\n\n- Write short functions.\n- Test them.\n");
  await walk("refresh after one saved file", async () => await project?.refresh());
  await project?.close();
}

async function walkProgram(): Promise<void> {
  const agents = await openAgents({ root: folder, env: {}, models: modelsOf() });
  const echo = await agents.instance("echo", "program");
  const prompt = async (): Promise<unknown> => await echo.session().prompt("Hello");
  await prompt();
  await prompt();
  await walk("prompt in a program", prompt);
  await agents.close();
}

async function walkService(): Promise<void> {
  const project = await openProject({ root: folder });
  const service = await openService({ root: folder, env: {}, models: modelsOf() });
  const server = createServer({ project, service });
  const { port } = await server.listen({ port: 0 });
  const post = async (path: string, body: unknown, headers: Record<string, string> = {}): Promise<string> => {
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    const content = await reply.text();
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${content}`);
    return content;
  };
  const get = async (path: string): Promise<unknown> =>
    await (await fetch(`http://127.0.0.1:${port}${path}`)).json();
  const streamed = { accept: "text/event-stream" };
  const ask = async (path: string, headers = {}): Promise<string> =>
    await post(path, { message: "Hello" }, headers);
  await ask("/agents/echo/warm", streamed);
  await ask("/agents/echo/warm");
  await walk("POST /agents/echo/1, stream, first prompt", async () => await ask("/agents/echo/1", streamed));
  await walk("POST /agents/echo/1, stream, second prompt", async () => await ask("/agents/echo/1", streamed));
  await walk("POST /agents/echo/1, JSON", async () => await ask("/agents/echo/1"));
  await ask("/agents/shell/warm");
  await walk("POST /agents/shell/1 with one bash call", async () => await ask("/agents/shell/warm"));
  await get("/api/specs");
  await walk("GET /api/specs", async () => await get("/api/specs"));
  // A walk sleeps until the work is done: polling requests would be counted.
  const dispatch = async (): Promise<string> => {
    const receipt: unknown = JSON.parse(await post("/agents/echo/later/dispatch", { input: "Hello" }));
    await rest();
    return `/dispatches/${field(receipt, "dispatch_id")}`;
  };
  await settled(await dispatch(), "completed");
  let path = "";
  await walk("dispatch until its row is completed", async () => {
    path = await dispatch();
  });
  await settled(path, "completed");
  const start = async (): Promise<string> => {
    const id = field(JSON.parse(await post("/workflows/wait", {})), "run_id");
    await rest();
    return `/runs/${id}`;
  };
  const signal = async (): Promise<void> => {
    await post(`${path}/signal`, { name: "go", payload: {} });
    await rest();
  };
  path = await start();
  await settled(path, "waiting");
  await signal();
  await settled(path, "completed");
  await walk("run until it waits", async () => {
    path = await start();
  });
  await settled(path, "waiting");
  await walk("signal until the run is completed", signal);
  await settled(path, "completed");
  await server.close();
  await service.close();
  await project.close();

  async function settled(path: string, status: string): Promise<void> {
    for (let attempt = 0; attempt < 200; attempt += 1) {
      if (field(await get(path), "status") === status) return;
      await rest();
    }
    throw new Error(`${path} is not ${status}`);
  }
}

/** Returns the modules of `src/` that `kit run` loads for a prompt in the example shop, in a separate process. */
async function countModules(): Promise<void> {
  const [shop, coverage] = [join(folder, "shop"), join(folder, "coverage")];
  await cp(fileURLToPath(new URL("../../examples/shop", import.meta.url)), shop, { recursive: true });
  const main = new URL("../../src/cli/main.ts", import.meta.url).href;
  const child = spawnSync(
    process.execPath,
    [
      "--input-type=module",
      "--eval",
      `import(${JSON.stringify(main)}).then((cli) => cli.main(["run", "--prompt", "What do you know?"]))`,
    ],
    { cwd: shop, env: { ...process.env, NODE_V8_COVERAGE: coverage }, encoding: "utf8" },
  );
  if (child.status !== 0) throw new Error(`kit run ended with ${child.status}: ${child.stderr}`);
  const loaded = new Set<string>();
  for (const name of await readdir(coverage)) {
    const report: { result: { url: string }[] } = JSON.parse(await readFile(join(coverage, name), "utf8"));
    for (const { url } of report.result) {
      if (url.startsWith("file:") && fileURLToPath(url).startsWith(source)) loaded.add(url);
    }
  }
  walks.push({
    name: "kit run --prompt (modules loaded)",
    files: loaded.size,
    functions: 0,
    calls: 0,
    rooms: "",
  });
}

async function rest(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 300));
}

function field(value: unknown, name: string): string {
  return String((value as Record<string, unknown>)[name]);
}

function modelsOf(): Record<string, ReturnType<typeof createScriptedModel>> {
  const hello: ScriptedTurn = { deltas: ["Hel", "lo"] };
  let turns = 0;
  return {
    "walk/echo": createScriptedModel(() => hello),
    "walk/shell": createScriptedModel(() => {
      turns += 1;
      return turns % 2 === 1 ? { toolCalls: [{ name: "bash", input: { command: "echo hello" } }] } : hello;
    }),
  };
}
