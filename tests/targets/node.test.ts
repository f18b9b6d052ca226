import { existsSync } from "node:fs";
import { cp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { servedCases } from "./served-cases.ts";
import { ServerOutput } from "./server-output.ts";
import { createTargetProject, type TargetProject } from "./target-project.ts";

let project: TargetProject;
// Outside the project, so that Node finds none of its packages by chance.
const folder = join(tmpdir(), `kit-output-${process.pid}`);
let server: ServerOutput;

beforeAll(async () => {
  project = await createTargetProject();
  const { exitCode, stderr } = await project.kit(["build"]);
  expect(stderr).toBe("");
  expect(exitCode).toBe(0);
  await cp(join(project.root, "build/node"), folder, { recursive: true });
  server = new ServerOutput([process.execPath, join(folder, "server.mjs"), "--port", "0"]);
  await server.start();
});

afterAll(async () => {
  await server?.end("SIGKILL");
  await project?.remove();
  await rm(folder, { recursive: true, force: true });
});

test.each(servedCases)("node: $name", async ({ run }) => {
  await run(server);
});

test("the output contains the files that kit reads, and nothing else of the project", async () => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .filter((path) => !/^(kit|chunks|\.kit)\//.test(path))
    .sort();
  expect(paths).toEqual(
    [
      ".agents/roles/careful.md",
      ".agents/skills/explain/SKILL.md",
      ".agents/skills/explain/tone.txt",
      ".kiro/specs/returns/requirements.md",
      "AGENTS.md",
      "docs/money.md",
      "kit-build.json",
      "kit.config.js",
      "package.json",
      "server.mjs",
      "src/agents/reviewer.js",
      "src/agents/tone.md",
      "src/settings.js",
      "src/webhooks/chat.js",
      "src/workflows/count.js",
    ].sort(),
  );
});

test("the same project builds to the same bytes, and contains no path of this machine", async () => {
  const out = join(project.root, "build/again");
  const { exitCode } = await project.kit(["build", "--out", out]);
  expect(exitCode).toBe(0);
  const manifest = (at: string): Promise<string> => readFile(join(at, "kit-build.json"), "utf8");
  expect(await manifest(out)).toBe(await manifest(folder));
  for (const path of Object.keys(JSON.parse(await manifest(out)).files)) {
    const text = await readFile(join(out, path), "utf8");
    expect(text.includes(project.root) || text.includes(process.cwd()), path).toBe(false);
  }
});

test("a server that gets SIGTERM exits with 0, and its data is in its own folder", async () => {
  expect(existsSync(join(folder, ".kit/sessions.db"))).toBe(true);
  expect(await server.end("SIGTERM")).toBe(0);
});
