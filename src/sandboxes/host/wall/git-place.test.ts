import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startOf } from "../../../processes/is-alive.ts";
import { holdGitPlace } from "./git-place.ts";
import { createFolder, openWalled, wallTest } from "./walled.suite.ts";

const folder = await createFolder();
const access = { write: true };

async function waitFor(file: string): Promise<void> {
  const end = Date.now() + 10_000;
  while (!existsSync(file) && Date.now() < end) await new Promise((next) => setTimeout(next, 20));
}

wallTest(
  "while a command runs in a folder without a repository, the person's Git finds none in it",
  async () => {
    const { root, run } = await openWalled(folder);
    await writeFile(join(root, "run.sh"), `#!/bin/sh\ntouch ${folder}/ran\n`);
    await chmod(join(root, "run.sh"), 0o755);
    const running = run(
      "git init -q .; git config core.fsmonitor $PWD/run.sh; mv .git old; rm -rf .git; git init -q made; mv made/.git .git; touch ready; until [ -e done ]; do sleep 0.02; done",
      { access },
    );
    await waitFor(join(root, "ready"));
    // Another command that ends meanwhile leaves the place held.
    await run("true", { access });
    expect(await readdir(join(root, ".git"))).toEqual([expect.stringMatching(/^kit-/)]);
    expect(() =>
      execFileSync("git", ["status"], {
        cwd: root,
        stdio: "ignore",
        env: { ...process.env, GIT_CEILING_DIRECTORIES: folder },
      }),
    ).toThrow();
    await writeFile(join(root, "done"), "");
    await running;
    expect(existsSync(join(folder, "ran"))).toBe(false);
    expect(existsSync(join(root, ".git"))).toBe(false);
  },
);

wallTest("a repository that the person makes while a command runs stays", async () => {
  const { root, run } = await openWalled(folder);
  const running = run("touch ready; until [ -e done ]; do sleep 0.02; done", { access });
  await waitFor(join(root, "ready"));
  execFileSync("git", ["init", "--quiet", root]);
  await writeFile(join(root, "done"), "");
  const { stderr } = await running;
  expect(stderr).toBe("");
  expect(existsSync(join(root, ".git/HEAD"))).toBe(true);
});

wallTest("a folder of the person's in the place of a repository stays", async () => {
  const { root, run } = await openWalled(folder);
  await mkdir(join(root, ".git"));
  await run("true", { access });
  expect(existsSync(join(root, ".git"))).toBe(true);
  await rm(root, { recursive: true });
});

test.skipIf(process.platform !== "linux")(
  "the place stays until the last process no longer needs it",
  async () => {
    const root = join(folder, "shared");
    await mkdir(root);
    const place = join(root, ".git");
    const release = holdGitPlace(root);
    // Another process joins, and this one ends first.
    const other = `kit-${process.ppid}-${startOf(process.ppid)}`;
    await writeFile(join(place, other), "");
    release();
    expect(await readdir(place)).toEqual([other]);
    // The other one ends first.
    const again = holdGitPlace(root);
    await rm(join(place, other));
    expect(await readdir(place)).toHaveLength(1);
    // A process that was killed does not keep it.
    await writeFile(join(place, "kit-4194304-1"), "");
    again();
    expect(existsSync(place)).toBe(false);
  },
);
