import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { openRepository } from "./repository.suite.ts";
import { createFolder, wallTest } from "./walled.suite.ts";

const folder = await createFolder();
const access = { write: true };

for (const mark of ["assume-unchanged", "skip-worktree"]) {
  wallTest(`a command hides no change from the person's Git by the mark ${mark}`, async () => {
    const { run, git } = await openRepository(folder);
    const { stderr } = await run(`echo evil >> a.txt; git update-index --${mark} a.txt`, { access });
    expect(git("status", "--short")).toBe(" M a.txt\n");
    expect(git("diff", "--stat")).toContain("a.txt");
    expect(stderr).toBe(
      "The index was taken over without the marks that hide changes (assume-unchanged, skip-worktree): a.txt.\n",
    );
    const later = await run(
      `git rm -q --cached a.txt; git update-index --add --cacheinfo 100644,$(git rev-parse HEAD:a.txt),a.txt; git update-index --${mark} a.txt`,
      { access },
    );
    expect(later.stderr).toContain("without the marks");
    expect(git("status", "--short")).toBe(" M a.txt\n");
  });

  wallTest(`the mark ${mark} of a person remains when a command changes the index`, async () => {
    const { run, git, root } = await openRepository(folder);
    git("update-index", `--${mark}`, "a.txt");
    await writeFile(join(root, "a.txt"), "own\n");
    const { stderr } = await run(
      `git update-index --no-${mark} a.txt; echo b > b.txt; git add b.txt; git update-index --cacheinfo 100644,$(git hash-object -w b.txt),run.sh`,
      { access },
    );
    expect([git("ls-files", "-v").split("\n")[0]?.[0], stderr]).toEqual([
      mark === "skip-worktree" ? "S" : "h",
      "",
    ]);
    expect(git("diff", "--name-only")).not.toContain("a.txt");
    expect(git("diff", "--cached", "--name-only")).toBe("b.txt\nrun.sh\n");
  });
}

wallTest("a command hides no change by times and sizes of files that it writes into the index", async () => {
  const { run, git, root } = await openRepository(folder);
  const old = git("rev-parse", "HEAD:a.txt").trim();
  const replaceObject = `python3 -c "
index = open('.git/index', 'rb').read()
new = bytes.fromhex(__import__('subprocess').check_output(['git', 'rev-parse', ':a.txt'], text=True).strip())
open('.git/index', 'wb').write(index.replace(new, bytes.fromhex('${old}')))
"`;
  for (const text of ["evil", "other"]) {
    await run(`echo ${text} >> a.txt; git add a.txt; sleep 0.1; ${replaceObject}`, { access });
    expect(git("diff", "--cached", "--name-only")).toBe("");
    expect(git("diff", "--name-only")).toBe("a.txt\n");
  }
  expect(await readFile(join(root, "a.txt"), "utf8")).toBe("a\nevil\nother\n");
});

wallTest("files outside of a sparse checkout stay outside when a command commits and merges", async () => {
  const { run, git, root } = await openRepository(folder);
  await mkdir(join(root, "in"));
  await mkdir(join(root, "out"));
  await writeFile(join(root, "in/a.txt"), "a");
  await writeFile(join(root, "out/a.txt"), "a");
  git("add", ".");
  git("commit", "--quiet", "--message=folders");
  git("checkout", "--quiet", "-b", "topic");
  await writeFile(join(root, "out/a.txt"), "b");
  await writeFile(join(root, "out/new.txt"), "new");
  git("add", ".");
  git("commit", "--quiet", "--message=topic");
  git("checkout", "--quiet", "main");
  git("sparse-checkout", "set", "in");
  const { stderr } = await run("git merge -q --ff-only topic", { access });
  expect([stderr, git("status", "--short")]).toEqual(["", ""]);
  expect(git("ls-files", "-v", "out")).toBe("S out/a.txt\nS out/new.txt\n");
  await run(
    "mkdir -p out; echo evil > out/a.txt; git update-index --skip-worktree out/a.txt in/a.txt; echo evil > in/a.txt",
    {
      access,
    },
  );
  expect(git("status", "--short")).toBe(" M in/a.txt\n M out/a.txt\n");
});

wallTest("an index keeps what a command staged, and Git finds the files unchanged", async () => {
  const { run, git } = await openRepository(folder);
  await run(
    "echo b > b.txt; : > empty.txt; git add b.txt empty.txt; git add -N run.sh; echo c > c.txt; git add -N c.txt",
    { access },
  );
  expect(git("status", "--short")).toBe("A  b.txt\n A c.txt\nA  empty.txt\n");
  expect(git("diff", "--name-only")).toBe("c.txt\n");
  git("fsck");
});
