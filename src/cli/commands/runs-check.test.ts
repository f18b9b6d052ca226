import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openService } from "../../app/service/open-service.ts";
import type { ProjectService } from "../../app/service/service.ts";
import { runKit } from "../testing/run-kit.ts";

const code = {
  release: `import { appendFileSync } from "node:fs";
import { join } from "node:path";
const log = join(import.meta.dirname, "../../did.txt");
export async function run(ctx) {
  await ctx.step("build", () => appendFileSync(log, "build\\n"));
  const [one, two] = await Promise.all([ctx.step("one", () => 1), ctx.step("two", () => 2)]);
  await ctx.now();
  const answer = await ctx.waitFor("approval");
  await ctx.step("publish", () => appendFileSync(log, "publish\\n"));
  return [one, two, answer];
}
`,
  writer: `import { createAgent, defineWorkflow } from "kit";
const writer = createAgent({ name: "writer", model: "offline/guide" });
export default defineWorkflow({
  async run(ctx) {
    const agent = await ctx.init(writer);
    await agent.session().prompt("Hello");
    await ctx.waitFor("go");
  },
});
`,
};

let root: string;
let service: ProjectService;
const runs: Record<string, string> = {};

beforeAll(async () => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "kit-check-")));
  write(root, code);
  service = await openService({ root });
  for (const name of ["release", "writer"]) runs[name] = (await service.startRun(name, {})).run_id;
  await vi.waitFor(
    async () => expect((await service.engine.listRuns({ status: "waiting" })).items).toHaveLength(2),
    { timeout: 30_000 },
  );
});
afterAll(async () => {
  await service?.close({ timeoutMs: 0 });
  rmSync(root, { recursive: true, force: true });
});

function write(folder: string, workflows: Readonly<Record<string, string>>): string {
  mkdirSync(join(folder, "src/workflows"), { recursive: true });
  for (const [name, text] of Object.entries(workflows))
    writeFileSync(join(folder, `src/workflows/${name}.js`), text);
  return folder;
}

/** A folder with other code, beside the project. */
function other(name: string, workflows: Readonly<Record<string, string>>): string {
  return write(join(root, name), { ...code, ...workflows });
}

const check = (...words: string[]) => runKit(["runs", "check", ...words], { cwd: root });

test("runs of unchanged code can continue, also next to a working server: no step runs, and the journal stays the same", async () => {
  const before = await service.engine.listRuns();
  expect(await check()).toMatchObject({ exitCode: 0, stderr: "2 runs in flight go on with this code.\n" });
  expect(await service.engine.listRuns()).toEqual(before);
  expect(readFileSync(join(root, "did.txt"), "utf8")).toBe("build\n");
  expect(readdirSync(join(root, ".kit"))).not.toContain("workspaces");
});

test("a renamed step and an inserted one are reported with the run, the position and both names, and exit code 1", async () => {
  const against = other("renamed", {
    release: code.release.replace('"two"', '"second"'),
    writer: code.writer.replace(
      "await ctx.waitFor",
      'await ctx.step("more", () => 1);\n    await ctx.waitFor',
    ),
  });
  const { exitCode, stdout, stderr } = await check("--against", "renamed");
  expect({ exitCode, stdout }).toEqual({
    exitCode: 1,
    stdout: `${runs.release}\trelease\twaiting\t3\tstep "two"\tstep "second"\n${runs.writer}\twriter\twaiting\t2\twait "go"\tstep "more"\n`,
  });
  expect(stderr).toContain("2 of 2 runs in flight would break.");
  expect(JSON.parse((await check("--against", against, "--json")).stdout)).toMatchObject({
    checked: 2,
    runs: [
      {
        run_id: runs.release,
        outcome: "mismatch",
        position: 3,
        recorded: 'step "two"',
        asked: 'step "second"',
      },
      { run_id: runs.writer, outcome: "mismatch", position: 2, recorded: 'wait "go"', asked: 'step "more"' },
    ],
  });
  const table = await runKit(["runs", "check", "--against", "renamed"], { cwd: root, columns: 80 });
  for (const line of table.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(160);
});

test("code that ends before the recorded end does not match, and a change inside patched() does", async () => {
  other("early", { release: `export async function run(ctx) { await ctx.step("build", () => 1); }` });
  expect((await check("--against", "early")).stdout).toContain('2\tstep "one"\tthe end of the run');
  other("patched", {
    release: code.release.replace(
      "await ctx.now()",
      'if (await ctx.patched("notify")) await ctx.step("notify", () => 1);\n  await ctx.now()',
    ),
  });
  expect(await check("--against", "patched")).toMatchObject({ exitCode: 0, stdout: "" });
});

test("a missing workflow, an invalid file and code that throws would fail the run, and the report tells why", async () => {
  other("thrown", { release: code.release.replace("await ctx.now()", 'throw new Error("not yet")') });
  const thrown = await check("--against", "thrown");
  expect(thrown).toMatchObject({ exitCode: 1, stdout: expect.stringContaining("not yet") });
  other("broken", { release: "export async function run(ctx {" });
  const broken = await check("--against", "broken");
  expect(broken).toMatchObject({ exitCode: 1, stdout: expect.stringContaining("its file is broken") });
  expect(broken.stderr).toContain("warning: src/workflows/release.js");
  rmSync(join(root, "broken/src/workflows/release.js"));
  expect((await check("--against", "broken")).stdout).toContain('There is no workflow named "release".');
});

test("an unknown folder, a file, and a project that never accepted work are wrong usage", async () => {
  expect(await check("--against", "nowhere")).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('There is no folder "nowhere".'),
  });
  expect((await check("--against", "src/workflows/release.js")).stderr).toContain("is not a folder");
  const empty = write(join(root, "fresh"), {});
  const { exitCode, stderr } = await runKit(["runs", "check", "--cwd", empty], { cwd: root });
  expect(exitCode).toBe(1);
  expect(stderr).toContain("There is no .kit/engine here");
  expect(readdirSync(empty)).toEqual(["src"]);
});
