import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import type { WorkspaceStore } from "../../protocol/workspace-store.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { virtual } from "../virtual/virtual-sandbox.ts";
import { persistWorkspaces } from "./persistent-sandbox.ts";
import { openMachines, owner } from "./testing/open-machines.ts";

const machines = openMachines();
const { machine, folderOf } = machines;

/** The texts of the files in a machine's folder; `undefined` for a folder. */
function contentOf(name: string): Record<string, string | undefined> {
  const folder = folderOf(name);
  const read = (path: string): string | undefined =>
    statSync(path).isFile() ? readFileSync(path, "utf8") : undefined;
  return Object.fromEntries(readdirSync(folder).map((path) => [path, read(join(folder, path))]));
}

test("a new session does not find the files of a deleted session of the same name", async () => {
  const first = await machine("one").open(owner);
  await first.writeFile("secret.txt", "of the first");
  await first.close();
  const two = machine("two");
  await (await two.open(owner)).close();
  await two.remove?.(owner);
  const again = await machine("one").open(owner);
  expect((await again.list()).map(({ name }) => name)).toEqual([]);
  await again.writeFile("new.txt", "of the second");
  expect(Object.keys(contentOf("one"))).toEqual(["new.txt"]);
  expect((await machines.store.read(owner))?.manifest).not.toContain("secret.txt");
});

test("files written before workspaces were saved stay, and are saved from then on", async () => {
  const before = await virtual({ folder: join(machines.root, "one"), isolation: "off" }).open(owner);
  await before.writeFile("old.txt", "old");
  await before.close();
  await (await machine("one").open(owner)).close();
  await machine("two").open(owner);
  expect(Object.keys(contentOf("two"))).toEqual(["old.txt"]);
});

test("the next process does not find what a first call had left half done when its process ended", async () => {
  const stop = new AbortController();
  const first = await machine("one").open(owner);
  const command = "echo part > part1; sleep 60";
  const call = first.exec({ command, signal: stop.signal }).catch(() => undefined);
  await expect.poll(() => Object.keys(contentOf("one"))).toEqual(["part1"]);
  // Each machine stands for a new process.
  const next = await machine("one").open(owner);
  expect(await next.list()).toEqual([]);
  stop.abort();
  await call;
});

test("a first call that writes too much leaves its files for the next process, which can remove some", async () => {
  const first = await machine("one", 100_000).open(owner);
  await expect(first.writeBytes("large", new Uint8Array(200_000))).rejects.toMatchObject({
    code: "payload_too_large",
  });
  const next = await machine("one", 100_000).open(owner);
  await next.rm("large");
  await next.writeFile("a", "a");
  await machine("two").open(owner);
  expect(Object.keys(contentOf("two"))).toEqual(["a"]);
});

test("a workspace has a location only while it is open, as its folder may be out of date before", async () => {
  const firstMachine = machine("one");
  expect(firstMachine.locate?.(owner)).toBeUndefined();
  const first = await firstMachine.open(owner);
  const second = await firstMachine.open(owner);
  await first.close();
  await first.close();
  expect(firstMachine.locate?.(owner)?.folder).toBe(folderOf("one"));
  await second.close();
  expect(firstMachine.locate?.(owner)).toBeUndefined();
});

test("a commit whose answer was lost causes no conflict in later calls", async () => {
  const answers = ["lost", "lost", "refused", "sent", "lost", "sent"];
  const broken: WorkspaceStore = {
    read: (key) => machines.store.read(key),
    readPiece: (...args) => machines.store.readPiece(...args),
    writePiece: (...args) => machines.store.writePiece(...args),
    remove: (key) => machines.store.remove(key),
    async commit(...args) {
      const answer = answers.shift() ?? "sent";
      if (answer !== "refused") await machines.store.commit(...args);
      if (answer !== "sent") throw new KitError({ code: "unavailable", message: "The connection is lost." });
    },
  };
  const sandbox = await persistWorkspaces(virtual({ folder: join(machines.root, "one"), isolation: "off" }), {
    store: broken,
    maxBytes: 10_000_000,
  }).open(owner);
  const outcomes: unknown[] = [];
  for (let round = 0; round < 8; round += 1) {
    await sandbox.rm(`file${round - 1}`).catch(() => undefined);
    outcomes.push(
      await sandbox.writeFile(`file${round % 3}`, `${round}`).catch((error: KitError) => error.code),
    );
  }
  expect(outcomes).not.toContain("conflict");
  expect(outcomes.at(-1)).toBeUndefined();
  await machine("two").open(owner);
  expect(contentOf("two")).toEqual(contentOf("one"));
});

test("after another writer's change one call fails, and the next call sees the change", async () => {
  const first = await machine("one").open(owner);
  await first.writeFile("a", "1");
  const two = await machine("two").open(owner);
  await two.writeFile("a", "2");
  await expect(first.writeFile("b", "1")).rejects.toMatchObject({
    code: "conflict",
    hint: expect.stringContaining("Make the missing changes again"),
  });
  await Promise.all([first.writeFile("c", "1"), first.mkdir("d")]);
  expect(contentOf("one")).toEqual({ a: "2", c: "1", d: undefined });
});

test("a worker of an earlier lease saves nothing under a later lease of the same machine", async () => {
  const sessions = new InMemorySessionStore();
  machines.store = sessions.workspaces;
  let fence = 1;
  const factory = persistWorkspaces(virtual({ folder: join(machines.root, "one"), isolation: "off" }), {
    store: machines.store,
    maxBytes: 10_000_000,
    fenceOf: () => fence,
  });
  sessions.claim(owner, 1);
  const stale = await factory.open(owner);
  await stale.writeFile("a", "kept");
  fence = 3;
  sessions.claim(owner, 3);
  await expect(stale.writeFile("a", "half do")).rejects.toMatchObject({ code: "lease_lost" });
  const next = await factory.open(owner);
  expect(await next.readFile("a")).toBe("kept");
  await next.writeFile("a", "done");
});

test("a workspace that has grown too large opens, so that files can be removed", async () => {
  const first = await machine("one").open(owner);
  await first.writeBytes("large", new Uint8Array(200_000));
  const small = await machine("two", 100_000).open(owner);
  await expect(small.writeFile("a", "a")).rejects.toMatchObject({ code: "payload_too_large" });
  await small.rm("large");
  await machine("three").open(owner);
  expect(Object.keys(contentOf("three"))).toEqual(["a"]);
});
