import { existsSync } from "node:fs";
import { mkdtemp, rm, statfs, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { checkoutPrefix, checkoutsFolder } from "./checkouts-folder.ts";

const memory = "/dev/shm";
const gib = 1024 ** 3;
const isThere = existsSync(memory);
const { bavail, bsize } = isThere ? await statfs(memory) : { bavail: 0, bsize: 0 };
const isRoomy = Math.min(bavail * bsize, process.availableMemory() / 2) > 2 * gib;
const { TMPDIR } = process.env;

afterEach(() => {
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
});

test("checkouts are made in the folder of TMPDIR", async () => {
  process.env.TMPDIR = "/var/tmp";
  expect(await checkoutsFolder(1)).toBe("/var/tmp");
});

test.runIf(isRoomy)(
  "without TMPDIR, checkouts are made in memory, unless they have no room there",
  async () => {
    delete process.env.TMPDIR;
    expect(await checkoutsFolder(1)).toBe(memory);
    expect(await checkoutsFolder(1024 * 1024 * gib)).toBe(tmpdir());
  },
);

test.runIf(isThere)("a judge removes the checkouts that a killed one left in memory a day ago", async () => {
  delete process.env.TMPDIR;
  const old = await mkdtemp(join(memory, checkoutPrefix));
  const young = await mkdtemp(join(memory, checkoutPrefix));
  const before = new Date(Date.now() - 25 * 60 * 60_000);
  await utimes(old, before, before);
  try {
    await checkoutsFolder(1);
    expect([old, young].map((path) => existsSync(path))).toEqual([false, true]);
  } finally {
    await rm(young, { recursive: true, force: true });
  }
});
