import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { WorkspaceStore } from "../../protocol/workspace-store.ts";
import { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";
import { virtual } from "../virtual/virtual-sandbox.ts";
import { persistWorkspaces } from "./persistent-sandbox.ts";
import { openMachines, owner } from "./testing/open-machines.ts";

const machines = openMachines();
const { machine, folderOf } = machines;

/** The entries of a folder: kinds, modes, contents, link targets. */
function contentOf(folder: string, subfolder = ""): Record<string, string> {
  const content: Record<string, string> = {};
  for (const name of readdirSync(join(folder, subfolder))) {
    const path = join(subfolder, name);
    const stat = lstatSync(join(folder, path));
    const mode = (stat.mode & 0o777).toString(8);
    if (stat.isSymbolicLink()) content[path] = `-> ${readlinkSync(join(folder, path))}`;
    else if (stat.isDirectory())
      Object.assign(content, { [path]: `folder ${mode}` }, contentOf(folder, path));
    else content[path] = `${mode} ${readFileSync(join(folder, path), "latin1")}`;
  }
  return content;
}

test("the next machine gets the changes of all calls: files, modes, links, empty folders, and deletions", async () => {
  const sandbox = await machine("one").open(owner);
  await sandbox.writeFile("notes/plan.md", "# Plan");
  await sandbox.writeBytes("large.bin", new Uint8Array(2_500_000).fill(7));
  await sandbox.mkdir("empty/deep");
  await sandbox.writeFile("gone.txt", "gone");
  await sandbox.exec({
    command:
      "chmod 750 notes/plan.md; ln -s notes/plan.md link; ln -s /etc/passwd out; rm gone.txt; mkfifo pipe",
  });
  await sandbox.close();
  const two = await machine("two").open(owner);
  const { pipe: _, ...expected } = contentWithoutPipe(folderOf("one"));
  expect(contentOf(folderOf("two"))).toEqual(expected);
  expect(await two.readFile("link")).toBe("# Plan");
  await expect(two.readFile("out")).rejects.toMatchObject({ code: "forbidden" });
  // When the first machine opens the session again, its folder follows the changes of the second.
  await two.rm("notes", { recursive: true });
  await two.edit("large.bin", { old: "\u0007", new: "x", all: true }).catch(() => undefined);
  await two.writeFile("new.txt", "new");
  writeFileSync(join(folderOf("one"), "stale.txt"), "of another time");
  const back = await machine("one").open(owner);
  expect(contentOf(folderOf("one"))).toEqual(contentOf(folderOf("two")));
  expect(await back.exists("notes")).toBe(false);
});

function contentWithoutPipe(folder: string): Record<string, string> {
  rmSync(join(folder, "pipe"), { force: true });
  return contentOf(folder);
}

test("a save writes only changed pieces", async () => {
  const written: string[] = [];
  const counting: WorkspaceStore = {
    read: (key) => machines.store.read(key),
    readPiece: (...args) => machines.store.readPiece(...args),
    async writePiece(key, name, data) {
      written.push(name);
      await machines.store.writePiece(key, name, data);
    },
    commit: (...args) => machines.store.commit(...args),
    remove: (key) => machines.store.remove(key),
  };
  const sandbox = await persistWorkspaces(virtual({ folder: join(machines.root, "one"), isolation: "off" }), {
    store: counting,
    maxBytes: 10_000_000,
  }).open(owner);
  for (const name of ["a", "b", "c"]) await sandbox.writeFile(name, name);
  expect(written).toHaveLength(3);
  await sandbox.exec({ command: "cat a b c" });
  await sandbox.writeFile("copy", "a");
  expect(written).toHaveLength(3);
  const before = (await machines.store.read(owner))?.version;
  await sandbox.readFile("a");
  await sandbox.exec({ command: "true" });
  expect((await machines.store.read(owner))?.version).toBe(before);
  await Promise.all(Array.from({ length: 20 }, (_, index) => sandbox.writeFile(`p${index}`, `${index}`)));
  expect(contentOf(folderOf("one"))).toMatchObject({
    p0: expect.stringContaining("0"),
    p19: expect.stringContaining("19"),
  });
});

test("no call fails when files, folders and links appear and disappear during a scan", async () => {
  const sandbox = await machine("one").open(owner);
  const folder = folderOf("one");
  const until = Date.now() + 400;
  const change = async (index: number): Promise<void> => {
    for (let round = 0; Date.now() < until; round += 1) {
      const path = join(folder, `gone${index}`);
      await mkdir(path);
      await writeFile(join(path, "file"), `${round}`);
      await symlink("file", join(path, "link"));
      await rm(path, { recursive: true });
      await writeFile(path, "a file where a folder was");
      await rm(path);
      await symlink("kept", path);
      await rm(path);
    }
  };
  const calls = async (): Promise<void> => {
    for (let round = 0; Date.now() < until; round += 1) {
      const outcome = await sandbox.writeFile("kept", `${round}`).catch((error: unknown) => error);
      // A workspace that never stops changing cannot be saved; a removed file is not an error.
      if (outcome !== undefined) expect(outcome).toMatchObject({ code: "unavailable" });
    }
  };
  await Promise.all([calls(), ...Array.from({ length: 8 }, (_, index) => change(index))]);
  await sandbox.writeFile("kept", "last");
  const two = await machine("two").open(owner);
  expect(contentOf(folderOf("two"))).toEqual(contentOf(folder));
  expect(await two.readFile("kept")).toBe("last");
});

test("a workspace that is too large fails with a hint, and the last saved version stays", async () => {
  const sandbox = await machine("one", 1_000).open(owner);
  await sandbox.writeFile("small", "s");
  await expect(sandbox.writeFile("large", "x".repeat(2_000))).rejects.toMatchObject({
    code: "payload_too_large",
    hint: expect.stringContaining("sandbox.persist_max_mb"),
  });
  const two = await machine("two").open(owner);
  expect(await two.exists("small")).toBe(true);
  expect(await two.exists("large")).toBe(false);
});

test("a machine saves nothing after another machine has taken over", async () => {
  const sandbox = await machine("one").open(owner);
  await sandbox.writeFile("a", "1");
  const two = await machine("two").open(owner);
  await two.writeFile("a", "2");
  await expect(sandbox.writeFile("a", "stale")).rejects.toMatchObject({ code: "conflict" });
  expect(await (await machine("three").open(owner)).readFile("a")).toBe("2");
});

test("removing a session removes its workspace from the store", async () => {
  const factory = machine("one");
  await (await factory.open(owner)).writeFile("a", "1");
  await factory.remove?.(owner);
  expect(await machines.store.read(owner)).toBeUndefined();
  expect(await (await machine("two").open(owner)).list()).toEqual([]);
});

const piece = "0".repeat(64);
test.each([
  [
    "a path above the root",
    [{ path: "../out.txt", kind: "file", mode: 420, size: 0, modified: 0, pieces: [] }],
  ],
  ["an absolute path", [{ path: "/out.txt", kind: "file", mode: 420, size: 0, modified: 0, pieces: [] }]],
  [
    "a path that leaves a folder of the workspace",
    [
      { path: "a", kind: "folder", mode: 493 },
      { path: "a/../../out.txt", kind: "file", mode: 420, size: 0, modified: 0, pieces: [] },
    ],
  ],
  [
    "a path below a link",
    [
      { path: "out", kind: "link", target: "/" },
      { path: "out/tmp", kind: "file", mode: 420, size: 0, modified: 0, pieces: [] },
    ],
  ],
  [
    "the same path as a link and a folder",
    [
      { path: "a", kind: "link", target: ".." },
      { path: "a", kind: "folder", mode: 493 },
    ],
  ],
  [
    "a path below a file",
    [
      { path: "a", kind: "file", mode: 420, size: 0, modified: 0, pieces: [] },
      { path: "a/b", kind: "folder", mode: 493 },
    ],
  ],
  ["a NUL", [{ path: "a\0b", kind: "folder", mode: 493 }]],
  ["the root itself", [{ path: ".", kind: "folder", mode: 493 }]],
  ["a mode with setuid", [{ path: "a", kind: "file", mode: 0o4755, size: 0, modified: 0, pieces: [] }]],
  ["a device", [{ path: "a", kind: "device", mode: 420 }]],
  ["missing content", [{ path: "a", kind: "file", mode: 420, size: 1, modified: 0, pieces: [piece] }]],
  ["no list of entries", "entries"],
])("a hostile archive is refused, and nothing outside is touched: %s", async (_, entries) => {
  const outside = join(machines.root, "outside");
  mkdirSync(outside);
  await machines.store.writePiece(owner, "other", new Uint8Array([1]));
  await machines.store.commit(owner, { expected: 0, manifest: JSON.stringify({ entries }), pieces: [] });
  await expect(machine("one").open(owner)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("stored workspace"),
  });
  expect(readdirSync(outside)).toEqual([]);
  expect(existsSync(join(machines.root, "out.txt"))).toBe(false);
});

test("links that are in the way on the machine are replaced, not followed", async () => {
  const sandbox = await machine("one").open(owner);
  await sandbox.writeFile("notes/plan.md", "# Plan");
  const outside = join(machines.root, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "plan.md"), "mine");
  await machine("two").open({ ...owner, session: "other" });
  mkdirSync(folderOf("two"));
  symlinkSync(outside, join(folderOf("two"), "notes"));
  await machine("two").open(owner);
  expect(readFileSync(join(outside, "plan.md"), "utf8")).toBe("mine");
  expect(lstatSync(join(folderOf("two"), "notes")).isDirectory()).toBe(true);
  expect(readFileSync(join(folderOf("two"), "notes/plan.md"), "utf8")).toBe("# Plan");
});

test("a workspace is restored exactly, whatever the folder held before", async () => {
  const name = fc.constantFrom("a", "b", "ü", "c d");
  const tree = fc.array(
    fc.record({
      path: fc.array(name, { minLength: 1, maxLength: 3 }),
      kind: fc.constantFrom("file", "folder", "link"),
      content: fc.string({ maxLength: 20 }),
      mode: fc.constantFrom(0o600, 0o644, 0o755, 0o400),
    }),
    { minLength: 1, maxLength: 12 },
  );
  let round = 0;
  await fc.assert(
    fc.asyncProperty(tree, tree, async (drawn, before) => {
      round += 1;
      const key = { ...owner, instance_id: `r${round}` };
      const [from, to] = [`from${round}`, `to${round}`];
      const place = (machineName: string): string => folderOf(machineName, key);
      const fill = (folder: string, entries: typeof drawn): void => {
        for (const { path, kind, content, mode } of entries) {
          const file = join(folder, ...path);
          try {
            mkdirSync(join(file, ".."), { recursive: true });
            if (kind === "folder") mkdirSync(file);
            else if (kind === "link") symlinkSync(content.replaceAll("\0", "") || "x", file);
            else {
              writeFileSync(file, content, { flag: "wx" });
              chmodSync(file, mode);
            }
          } catch {
            // Another entry is in the way.
          }
        }
      };
      const sandbox = await machine(from).open(key);
      fill(place(from), drawn);
      await sandbox.exec({ command: "true" });
      const two = virtual({ folder: join(machines.root, to) });
      await two.open(key);
      fill(place(to), before);
      await machine(to).open(key);
      expect(contentOf(place(to))).toEqual(contentOf(place(from)));
    }),
    { numRuns: 15 },
  );
}, 30_000);

test("a restored file keeps its modification time", async () => {
  const sandbox = await machine("one").open(owner);
  await sandbox.writeFile("a", "1");
  const { mtimeMs } = statSync(join(folderOf("one"), "a"));
  await machine("two").open(owner);
  expect(Math.abs(statSync(join(folderOf("two"), "a")).mtimeMs - mtimeMs)).toBeLessThan(2);
});

test("after two machines are killed while they write, the next machine has every acknowledged change complete", async () => {
  const file = join(machines.root, "sessions.db");
  const script = new URL("./testing/writer-process.ts", import.meta.url).pathname;
  let lastSaved = -1;
  for (const [round, name] of ["one", "two", "one", "two"].entries()) {
    const child = spawn(process.execPath, [script, file, join(machines.root, name)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let printed = "";
    for await (const chunk of child.stdout) {
      printed += String(chunk);
      // Kill right after an answer, or in the middle of the next change.
      if (printed.split("\n").length > 3) {
        if (round % 2 === 1) await new Promise((resolve) => setTimeout(resolve, 7 * round));
        child.kill("SIGKILL");
        break;
      }
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    lastSaved = Math.max(
      lastSaved,
      ...printed
        .split("\n")
        .filter((line) => line !== "")
        .map(Number),
    );
    const sessions = new SqliteSessionStore({ file });
    machines.store = sessions.workspaces;
    const next = await persistWorkspaces(virtual({ folder: join(machines.root, `check${round}`) }), {
      store: machines.store,
      maxBytes: 100_000_000,
    }).open(owner);
    for (let index = 0; index <= lastSaved; index += 1)
      expect((await next.readFile(`file-${index}`)) === `${index} `.repeat(400_000)).toBe(true);
    sessions.close();
  }
  expect(lastSaved).toBeGreaterThan(6);
}, 60_000);
