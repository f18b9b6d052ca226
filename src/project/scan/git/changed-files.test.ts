import { access, chmod } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../../testing/temporary-repository.ts";
import { readFileDates } from "./file-dates.ts";
import { readChangedFiles, readGitState, toChangedPaths } from "./git-state.ts";

test("changes since a branch are those since the work left it, committed or not", async () => {
  const long = "line\n".repeat(30);
  await using repository = await createTemporaryRepository({
    "committed.ts": "1",
    "deleted.ts": "1",
    "moved.ts": long,
    "on-main.ts": "1",
    "staged.ts": "1",
    "unstaged.ts": "1",
    ".gitignore": "ignored.ts\n",
  });
  await repository.init();
  await repository.commit("one", 1000);
  await repository.git("switch", "--quiet", "--create", "work");
  await repository.write("committed.ts", "2");
  await repository.commit("work", 2000);
  await repository.git("switch", "--quiet", "main");
  await repository.write("on-main.ts", "2");
  await repository.commit("main goes on", 2500);
  await repository.git("switch", "--quiet", "work");
  await repository.write("staged.ts", "2");
  await repository.git("add", "staged.ts");
  await repository.write("unstaged.ts", "2");
  await repository.write("pkg/untracked.ts", "1");
  await repository.write("ignored.ts", "1");
  await repository.git("rm", "--quiet", "deleted.ts");
  await repository.git("mv", "moved.ts", "pkg/moved.ts");

  const changes = await readChangedFiles({ root: repository.root, since: "main" });
  expect(changes).toEqual([
    { path: "committed.ts", change: "modified" },
    { path: "deleted.ts", change: "deleted" },
    { path: "pkg/moved.ts", change: "renamed", from: "moved.ts" },
    { path: "pkg/untracked.ts", change: "untracked" },
    { path: "staged.ts", change: "modified" },
    { path: "unstaged.ts", change: "modified" },
  ]);
  expect(toChangedPaths(changes)).toContain("moved.ts");
  const inFolder = await readChangedFiles({ root: join(repository.root, "pkg"), since: "main" });
  expect(inFolder.map(({ path }) => path)).toEqual(["moved.ts", "untracked.ts"]);
});

test("a revision that is unknown, an option or not text is refused as a bad request", async () => {
  await using repository = await createTemporaryRepository({ "a.ts": "1" });
  await repository.init();
  await repository.commit("one", 1000);
  for (const since of ["nope", "", "--output=pwned", "-p", "a\0b", "x".repeat(300), "HEAD..HEAD", "^HEAD"]) {
    await expect(readChangedFiles({ root: repository.root, since })).rejects.toMatchObject({
      code: "invalid_request",
    });
  }
  await expect(access(join(repository.root, "pwned"))).rejects.toThrow();
});

test("a folder without a repository is reported", async () => {
  await using folder = await createTemporaryRepository();
  await expect(readChangedFiles({ root: folder.root, since: "main" })).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("not a Git repository"),
  });
});

test("a repository's own configuration starts no program", async () => {
  await using repository = await createTemporaryRepository({
    "a.md": "1",
    ".gitattributes": "*.md filter=evil diff=evil\n",
  });
  await repository.init();
  await repository.commit("one", 1000);
  const marker = join(repository.root, "ran");
  await repository.write(".git/evil.sh", `#!/bin/sh\ntouch "${marker}"\ncat\n`);
  await chmod(join(repository.root, ".git/evil.sh"), 0o755);
  const evil = join(repository.root, ".git/evil.sh");
  for (const key of [
    "core.fsmonitor",
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "diff.evil.command",
    "diff.evil.textconv",
    "diff.external",
    "gpg.program",
    "core.pager",
    "pager.log",
    "core.sshCommand",
  ]) {
    await repository.git("config", key, evil);
  }
  await repository.git("config", "filter.evil.required", "true");
  await repository.git("config", "log.showSignature", "true");
  await repository.write(".git/hooks/post-index-change", `#!/bin/sh\ntouch "${marker}"\n`);
  await chmod(join(repository.root, ".git/hooks/post-index-change"), 0o755);
  await repository.write("a.md", "2");

  const { root } = repository;
  const state = await readGitState(root);
  expect((await readFileDates({ root, state }))?.dates.get("a.md")?.last).toBe(1000);
  expect(await readChangedFiles({ root, since: "main" })).toEqual([{ path: "a.md", change: "modified" }]);
  await expect(access(marker)).rejects.toThrow();
});
