import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { version } from "../base/own-package.ts";
import type { AnyEntry } from "./command.ts";
import { commandTable } from "./command-table.ts";
import { runKit, startKit } from "./testing/run-kit.ts";

const cwd = realpathSync(mkdtempSync(join(tmpdir(), "kit-main-")));
mkdirSync(join(cwd, "folder"));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const names = commandTable.flatMap((entry: AnyEntry) =>
  "commands" in entry ? entry.commands.map((command) => [entry.name, command.name]) : [[entry.name]],
);

test("kit without arguments, kit --help and kit help list the commands", async () => {
  const outputs = await Promise.all([[], ["--help"], ["help"]].map((args) => runKit(args, { cwd })));
  for (const { exitCode, stdout, stderr } of outputs) {
    expect(exitCode).toBe(0);
    expect(stderr).toBe("");
    expect(stdout).toBe(outputs[0]?.stdout);
    // A page of a terminal.
    expect(stdout.split("\n").length).toBeLessThanOrEqual(50);
    for (const { name, summary } of commandTable)
      expect(stdout).toMatch(new RegExp(`^  ${name} +${summary}$`, "m"));
  }
});

test.each(names)(
  "kit %s %s --help explains itself with an example",
  { concurrent: true },
  async (...name) => {
    const words = name.filter((word) => typeof word === "string");
    const { exitCode, stdout, stderr } = await runKit([...words, "--help"], { cwd });
    expect(stderr).toBe("");
    expect(exitCode).toBe(0);
    expect(stdout).toContain(`Usage: kit ${words.join(" ")}`);
    expect(stdout).toMatch(new RegExp(`^Examples:\\n(?:  .*\\n)*  kit ${words.join(" ")}`, "m"));
    for (const option of ["--json", "--config", "--cwd", "--help"]) expect(stdout).toContain(option);
  },
);

test.each([
  undefined,
  ...commandTable.flatMap((entry: AnyEntry) => ("commands" in entry ? [entry.name] : [])),
])("kit %s, which names no command, lists existing commands on one line", async (group) => {
  const words = group === undefined ? [] : [group];
  const { exitCode, stdout } = await runKit([...words, "--help"], { cwd });
  expect(exitCode).toBe(0);
  const [, examples = ""] = stdout.split("\nExamples:\n");
  const lines = examples.split("\n").filter((line) => line.startsWith("  "));
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) {
    expect(line).toMatch(new RegExp(`^  ${["kit", ...words].join(" ")} `));
    const withName = line.trim().split(" ").slice(1);
    expect(names.some((name) => name.every((word, index) => word === withName[index]))).toBe(true);
  }
});

test("kit help specs list equals kit specs list --help, and a group alone lists its commands", async () => {
  const [asHelp, asOption, group] = await Promise.all([
    runKit(["help", "specs", "list"], { cwd }),
    runKit(["specs", "list", "--help"], { cwd }),
    runKit(["specs"], { cwd }),
  ]);
  expect(asHelp).toEqual(asOption);
  expect(group?.exitCode).toBe(0);
  expect(group?.stdout).toContain("validate");
});

test("the version is that of the package", async () => {
  expect((await runKit(["--version"], { cwd })).stdout).toBe(`${version}\n`);
});

test.each([
  [["spces"], "Unknown command 'spces'.", "Did you mean specs?"],
  [["specs", "lst"], "Unknown command 'lst'.", "Did you mean list?"],
  [["specs", "list", "--framwork", "kiro"], "Unknown option '--framwork'.", "Did you mean --framework?"],
  [["specs", "list", "--framework", "kio"], "--framework: 'kio' is not a framework.", "Did you mean kiro?"],
  [["specs", "list", "--limit", "0"], "--limit: '0' is not a whole number from 1 to 1,000.", undefined],
  [["specs", "list", "--limit"], "Option '-n, --limit <number>' argument missing.", "kit specs list --help"],
  [["specs", "show"], "Missing required argument 'id'.", "kit specs show --help"],
  [
    ["specs", "list", "more"],
    "Too many arguments for 'list'. Expected 0 arguments but got 1: more.",
    undefined,
  ],
  [["specs", "list", "--cwd", "nowhere"], "--cwd: nowhere is not a folder.", undefined],
  [["start", "--port", "65536"], "--port: '65536' is not a whole number from 0 to 65,535.", undefined],
] as const)(
  "wrong usage %j ends with 2, the fault and a remedy",
  { concurrent: true },
  async (args, message, hint) => {
    const { exitCode, stdout, stderr } = await runKit(args, { cwd });
    expect(exitCode).toBe(2);
    expect(stdout).toBe("");
    const [first, second = ""] = stderr.split("\n");
    expect(first).toBe(`error: ${message}`);
    if (hint !== undefined) expect(second).toContain(hint);
    expect(stderr).not.toContain("    at ");
  },
);

test("with --json an error is also the envelope on stdout", async () => {
  const { exitCode, stdout, stderr } = await runKit(["specs", "lst", "--json"], { cwd });
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(/^error: /);
  expect(JSON.parse(stdout)).toMatchObject({
    error: { type: "invalid_request", message: "Unknown command 'lst'." },
  });
});

test("KIT_DEBUG=1 adds the stack of an error", async () => {
  const { stderr } = await runKit(["specs", "list", "--limit", "x"], { cwd, env: { KIT_DEBUG: "1" } });
  expect(stderr).toContain("    at ");
});

test("colours follow NO_COLOR and FORCE_COLOR, and piped output has none", async () => {
  const run = async (env: Record<string, string>): Promise<boolean> =>
    (await runKit(["--help"], { cwd, env })).stdout.includes("\u001b[");
  expect(await run({})).toBe(false);
  expect(await run({ FORCE_COLOR: "1" })).toBe(true);
  expect(await run({ FORCE_COLOR: "1", NO_COLOR: "1" })).toBe(true);
  expect(await run({ NO_COLOR: "1" })).toBe(false);
});

test("a reader that stops early does not break the command", async () => {
  const child = startKit(["--help"], { cwd });
  child.stdout.destroy();
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  expect(await new Promise((resolve) => child.on("close", resolve))).toBe(0);
  expect(stderr).toBe("");
});

test("the help loads the command table and no module of the commands", async () => {
  const script = `
    import { registerHooks } from "node:module";
    registerHooks({ load(url, context, next) { if (url.startsWith("file:")) console.error(url); return next(url, context); } });
    const { main } = await import(${JSON.stringify(new URL("main.ts", import.meta.url).href)});
    await main(["--help"]);`;
  const { stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
  const loaded = stderr.trimEnd().split("\n");
  expect(loaded.filter((url) => url.includes("/commander/")).length).toBeGreaterThan(0);
  expect(loaded.filter((url) => !url.includes("/commander/")).length).toBeLessThan(15);
  expect(loaded.filter((url) => /\/src\/(?!cli|base|protocol)|\/commands\//.test(url))).toEqual([]);
});
