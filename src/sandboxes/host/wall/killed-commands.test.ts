import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, expect } from "vitest";
import { guardOf } from "../../../agents/policy/protected-paths.ts";
import { finishKilled, recordBefore, recordsFolder } from "./killed-commands.ts";
import { createFolder, openFilled, openWalled, wallTest } from "./walled.suite.ts";

const folder = await createFolder();
const state = process.env.XDG_STATE_HOME;
process.env.XDG_STATE_HOME = join(folder, "state");
afterAll(() => {
  if (state === undefined) delete process.env.XDG_STATE_HOME;
  else process.env.XDG_STATE_HOME = state;
});
const access = { write: true, guard: guardOf({}, []) };

const openWith = (files: Readonly<Record<string, string>>) => openFilled(folder, files);

/** Leaves a record as a kit with another process id left it; returns its file. */
async function leaveRecord(
  root: string,
  unfinished: Parameters<typeof recordBefore>[1],
  process_ = "99999999-1",
): Promise<string> {
  const before = new Set(await files());
  recordBefore({ root, state: join(root, ".kit") }, unfinished);
  const [file = ""] = (await files()).filter((each) => !before.has(each));
  const left = join(dirname(file), `${process_}-00000000-0000-4000-8000-000000000000.json`);
  await rename(file, left);
  return left;
}

async function files(): Promise<readonly string[]> {
  const entries = await readdir(recordsFolder(), { recursive: true }).catch(() => []);
  return entries.filter((name) => name.endsWith(".json")).map((name) => join(recordsFolder(), name));
}

wallTest("records that a clone brings count for nothing", async () => {
  const { root } = await openWith({});
  const kit = join(root, ".kit/running-commands");
  await mkdir(kit, { recursive: true });
  const before = [["../planted", { kind: "read-only", link: "/etc/passwd" }]];
  await writeFile(join(kit, "99999999-1.json"), JSON.stringify({ root, before }));
  await writeFile(join(kit, "99999998-1.json"), "null");
  const { run } = await openWalled(folder, { root });
  expect((await run("echo ran", { access })).stdout).toBe("ran\n");
  expect(existsSync(join(folder, "planted"))).toBe(false);
});

wallTest("a record without the form of one is removed, and makes nothing", async () => {
  const { root } = await openWith({});
  const file = await leaveRecord(root, { before: [], granted: [], hasGuard: true });
  const link = { kind: "read-only", link: "/etc/passwd" };
  for (const content of [
    null,
    {},
    [],
    { before: [null], granted: [] },
    { before: [["../planted", link]], granted: [] },
    { before: [["/planted", link]], granted: [] },
    { before: [["a", { kind: "x" }]], granted: [] },
  ]) {
    await writeFile(file, JSON.stringify(content));
    const { run } = await openWalled(folder, { root });
    expect((await run("echo ran", { access })).stdout).toBe("ran\n");
    expect(existsSync(file)).toBe(false);
  }
  expect(existsSync(join(folder, "planted"))).toBe(false);
});

wallTest("after a kill, paths that the killed agent was allowed to change stay as they are", async () => {
  const { root, run } = await openWith({ "package.json": "mine", "a/.npmrc": "mine" });
  const file = await leaveRecord(root, { before: [], granted: ["package.json", "a"], hasGuard: true });
  await mkdir(join(root, ".vscode"));
  const { stderr } = await run("true", { access });
  expect(stderr).toContain(".vscode.");
  expect(await readFile(join(root, "package.json"), "utf8")).toBe("mine");
  expect(await readFile(join(root, "a/.npmrc"), "utf8")).toBe("mine");
  expect(existsSync(file)).toBe(false);
});

wallTest(
  "after a kill, the empty folder in the place of a repository stays, and the next command runs",
  async () => {
    const { root, run } = await openWith({});
    await mkdir(join(root, ".git"));
    await leaveRecord(root, { before: [], granted: [], hasGuard: true });
    const { stdout, stderr } = await run("echo ran", { access });
    expect([stdout, stderr]).toEqual(["ran\n", ""]);
    await writeFile(join(root, ".git/config"), "planted");
    await leaveRecord(root, { before: [], granted: [], hasGuard: true });
    expect((await run("true", { access })).stderr).toContain(": .git.");
    expect(existsSync(join(root, ".git/config"))).toBe(false);
  },
);

wallTest("after a kill of a command without a guard, only repositories are refused", async () => {
  const { root, run } = await openWith({ "package.json": "mine" });
  await leaveRecord(root, { before: [], granted: [], hasGuard: false });
  await mkdir(join(root, "a/.git"), { recursive: true });
  expect((await run("true", { access })).stderr).toContain(": a/.git.");
  expect(await readFile(join(root, "package.json"), "utf8")).toBe("mine");
});

wallTest("a process with the id of a killed one does not stand for it", async () => {
  const { root, run } = await openWith({});
  const file = await leaveRecord(root, { before: [], granted: [], hasGuard: true }, `${process.pid}-1`);
  await mkdir(join(root, ".vscode"));
  expect((await run("true", { access })).stderr).toContain(".vscode");
  expect(existsSync(file)).toBe(false);
  const remove = recordBefore(
    { root, state: join(root, ".kit") },
    { before: [], granted: [], hasGuard: true },
  );
  const find = () => ({ paths: new Map([["a.txt", { kind: "read-only" as const }]]), folders: new Map() });
  expect(finishKilled({ root, state: join(root, ".kit") }, { find, isLeft: () => false })).toEqual([]);
  remove();
  expect(await files()).toEqual([]);
});
