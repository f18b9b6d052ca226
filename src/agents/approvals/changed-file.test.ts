import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Sandbox, SandboxFactory } from "../../sandboxes/contract.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";
import { readChangedFile } from "./changed-file.ts";

const owner = { agent: "tester", instance_id: "1", session: "default" };
const call = { tool: "write", args: { path: "src/a.md", content: "new\n" } };
let root = "";
let sandbox: Sandbox | undefined;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "kit-changed-")));
});
afterEach(async () => {
  await sandbox?.close();
  await rm(root, { recursive: true, force: true });
});

async function read(factory: SandboxFactory, made: unknown = call, before?: string) {
  sandbox = await factory.open(owner);
  if (before !== undefined) await sandbox.writeFile("src/a.md", before);
  const opened = sandbox;
  return await readChangedFile(made as typeof call, {
    sandbox: async () => opened,
    projectRoot: root,
    mask: (text) => text.replaceAll("s3cret", "***"),
  });
}

test("a file of the project is named from the project's root, and readers get its present text themselves", async () => {
  expect(await read(local({ root }), call, "old\n")).toEqual({ path: "src/a.md", in_project: true });
});

test("a workspace below the project is part of it", async () => {
  await mkdir(join(root, "packages/one"), { recursive: true });
  const inside = local({ root: join(root, "packages/one") });
  expect(await read(inside, call, "old\n")).toEqual({ path: "packages/one/src/a.md", in_project: true });
});

test("a file of a session's own workspace has its text, without secrets", async () => {
  const own = virtual({ folder: root });
  expect(await read(own, call, "old s3cret\n")).toEqual({ path: "src/a.md", before: "old ***\n" });
});

test("a new file is named so, and a long text is left out", async () => {
  const own = virtual({ folder: root });
  expect(await read(own)).toEqual({ path: "src/a.md", before: "", is_new: true });
  await sandbox?.close();
  expect(await read(local({ root }))).toEqual({ path: "src/a.md", in_project: true, is_new: true });
  await sandbox?.close();
  expect(await read(own, call, "x".repeat(50_001))).toEqual({ path: "src/a.md" });
});

test("calls of other tools change no file that kit knows", async () => {
  expect(await read(local({ root }), { tool: "bash", args: { path: "src/a.md" } })).toBeUndefined();
});
