import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openWalled, type Walled } from "./walled.suite.ts";

let count = 0;

/** A repository with one commit, a program that leaves a mark if the person's Git runs it, and that Git. */
export async function openRepository(
  folder: string,
): Promise<Walled & { git(...args: readonly string[]): string; ran(): boolean }> {
  count += 1;
  const root = join(folder, `repository-${count}`);
  const mark = join(folder, `ran-${count}`);
  await mkdir(root);
  const git = (...args: readonly string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  git("init", "--quiet", "--initial-branch=main");
  await writeFile(join(root, "a.txt"), "a\n");
  await writeFile(join(root, "run.sh"), `#!/bin/sh\necho ran > ${mark}\n`);
  await chmod(join(root, "run.sh"), 0o755);
  git("add", ".");
  git("commit", "--quiet", "--message=first");
  const walled = await openWalled(folder, { root });
  return { ...walled, git, ran: () => existsSync(mark) };
}
