import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { Trees } from "./trees.ts";
import { Workplace, type WorkplaceOptions } from "./workplace.ts";

test("a checkout that cannot be made, or whose setup fails, leaves no folder", async () => {
  await using repository = await createTemporaryRepository({ "a.mjs": "one\n", ".gitignore": "tmp\n" });
  await repository.init();
  await repository.commit("Begin", 1_700_000_000);
  const folder = join(repository.root, "tmp");
  await mkdir(folder);
  const { TMPDIR } = process.env;
  process.env.TMPDIR = folder;
  onTestFinished(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  });
  await using trees = await Trees.open(repository.root, {});
  const listing = await trees.list(await trees.snapshot());
  const made = (await readdir(folder)).length;
  const options: WorkplaceOptions = {
    trees,
    runner: { kind: "node" } as never,
    setup: "exit 3",
    timeoutMs: 10_000,
    isolation: { isolation: "off" },
    signal: undefined,
    packagesOf: repository.root,
  };
  const unknown = new Map(
    [...listing].map(([path, entry]) => [path, entry.replace(/[0-9a-f]{40}/, "1".repeat(40))]),
  );
  await expect(Workplace.open(options, unknown)).rejects.toThrow();
  await expect(Workplace.open(options, listing)).rejects.toThrow("The setup of the checkout failed");
  expect(await readdir(folder)).toHaveLength(made);
});
