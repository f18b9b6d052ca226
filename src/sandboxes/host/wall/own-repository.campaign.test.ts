import { appendFileSync, existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { readGitIndex, writeGitIndex } from "./git-index.ts";
import { openRepository } from "./repository.suite.ts";
import { createFolder, openWalled, type Walled, wallTest } from "./walled.suite.ts";

const folder = await createFolder();
const access = { write: true };
const asAuthor = "git -c user.name=a -c user.email=a@b.c";
/** Commands that people, editors and prompts run. */
const personsCommands = [
  ["status"],
  ["diff"],
  ["status", "--porcelain", "-uall"],
  ["diff", "HEAD"],
  ["log", "-p"],
  ["stash", "list"],
];

/** Runs a command that waits, calls `during`, and ends the command. */
async function whileRunning(
  { run, root }: Walled,
  command: string,
  during: () => Promise<void>,
): Promise<void> {
  const running = run(`${command}\ntouch ready; until [ -e done ]; do sleep 0.02; done`, { access });
  const end = Date.now() + 10_000;
  while (!existsSync(join(root, "ready")) && Date.now() < end)
    await new Promise((next) => setTimeout(next, 20));
  try {
    await during();
  } finally {
    await writeFile(join(root, "done"), "");
    await running;
    for (const name of ["ready", "done"]) await rm(join(root, name), { force: true });
  }
}

const nested =
  "git init -q evil; git -C evil -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x; git -C evil config core.fsmonitor $PWD/run.sh";
const hostile: Readonly<Record<string, string>> = {
  "a gitlink": `${nested}; git update-index --add --cacheinfo 160000,$(git -C evil rev-parse HEAD),evil`,
  "an added repository": `${nested}; git add evil 2>/dev/null`,
  "a gitlink in an index of version 4": `${nested}; git add evil 2>/dev/null; git update-index --index-version 4; git add evil a.txt 2>/dev/null`,
  "a gitlink in a split index": `${nested}; git update-index --split-index; git add evil 2>/dev/null`,
  "a gitlink to a repository that a file names":
    "git init -q --bare stuff; git -C stuff config core.bare false; git -C stuff config core.worktree ..; git -C stuff config core.fsmonitor $PWD/run.sh; mkdir evil; echo 'gitdir: ../stuff' > evil/.git; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),evil",
  "a committed gitlink": `${nested}; git add evil 2>/dev/null; ${asAuthor} commit -q -m evil`,
  commondir:
    "mkdir x; cp -r .git/objects .git/refs x; (cat .git/config; printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/run.sh) > x/config; echo ../x > .git/commondir",
  "config.worktree": "printf '[core]\\n\\tfsmonitor = %s\\n' $PWD/run.sh > .git/config.worktree",
  hooks:
    "rm -rf .git/hooks; mkdir -p .git/hooks; cp run.sh .git/hooks/post-checkout; cp run.sh .git/hooks/fsmonitor-watchman",
  "the whole folder":
    "mv .git old; rm -f .git/HEAD .git/index .git/config; git init -q -b main .; git config core.fsmonitor $PWD/run.sh",
};

for (const [name, command] of Object.entries(hostile)) {
  wallTest(
    `during and after a command that leaves ${name}, the person's Git runs no program of it`,
    async () => {
      const repository = await openRepository(folder);
      repository.git("config", "extensions.worktreeConfig", "true");
      const runPersonsGit = async (): Promise<void> => {
        for (const args of personsCommands) repository.git(...args);
        expect(repository.ran()).toBe(false);
      };
      await whileRunning(repository, command, runPersonsGit);
      await runPersonsGit();
      repository.git("fsck");
      expect(
        (await readdir(join(repository.root, ".git"))).filter((entry) => /commondir|lock|\.kit$/.test(entry)),
      ).toEqual([]);
    },
  );
}

wallTest("a submodule without a repository gets none from a command", async () => {
  const repository = await openRepository(folder);
  const { git, run } = repository;
  git("update-index", "--add", "--cacheinfo", `160000,${git("rev-parse", "HEAD").trim()},libs/sub`);
  git("commit", "--quiet", "--message=submodule");
  await whileRunning(
    repository,
    "cd libs/sub; git init -q .; git config core.fsmonitor $PWD/../../run.sh; cd ../..; mv libs old; mkdir -p libs/sub; cp -r evil/.git libs/sub",
    async () => {
      git("status");
      expect(repository.ran()).toBe(false);
    },
  );
  expect(git("ls-files", "--stage", "libs/sub")).toMatch(/^160000/);
  const { stdout } = await run("git submodule status; git status --short", { access });
  expect(stdout).not.toContain("libs");
});

for (const name of [".git/hooks/post-checkout", "../escaped", "a.txt/../../escaped", "GIT~1/hooks/x"]) {
  wallTest(`an index with ${name} is not taken over, so the person's Git writes no such file`, async () => {
    const { run, git, root } = await openRepository(folder);
    const index = readGitIndex(await readFile(join(root, ".git/index")), 20);
    const program = index?.entries.find((entry) => entry.name.toString() === "run.sh");
    if (index === undefined || program === undefined) throw new Error("The index was not read.");
    const head = Buffer.from(program.head);
    head.writeUInt16BE(name.length, 60);
    const entries = [...index.entries, { ...program, head, name: Buffer.from(name) }].sort((one, other) =>
      one.name.compare(other.name),
    );
    await writeFile(join(root, "bad"), writeGitIndex({ ...index, entries }, 20));
    const { stderr } = await run("cp bad .git/index", { access });
    expect(stderr).toContain("Git would not add files of such names");
    for (const args of [
      ["restore", "."],
      ["checkout", "."],
    ])
      git(...args);
    expect(existsSync(join(root, ".git/hooks/post-checkout"))).toBe(false);
    expect(existsSync(join(folder, "escaped"))).toBe(false);
    expect(git("ls-files")).toBe("a.txt\nrun.sh\n");
  });
}

wallTest("a command adds no submodule to the index, whatever is in its place", async () => {
  const { run, git } = await openRepository(folder);
  for (const place of ["ln -s nowhere evil", "touch evil", "ln -s . evil", "mkdir evil"]) {
    const { stderr } = await run(
      `rm -rf evil; ${place}; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),evil`,
      { access },
    );
    expect(stderr).toContain("without the submodules that the command added: evil");
    expect(git("ls-files")).toBe("a.txt\nrun.sh\n");
  }
});

wallTest("no command runs while the place of a submodule is a link or behind one", async () => {
  const { run, git, root } = await openRepository(folder);
  git("update-index", "--add", "--cacheinfo", `160000,${git("rev-parse", "HEAD").trim()},libs/sub`);
  await symlink("nowhere", join(root, "libs"));
  await expect(run("true", { access })).rejects.toThrow("libs/sub is a submodule in the index");
  await rm(join(root, "libs"));
  await mkdir(join(root, "libs"));
  await symlink("../other", join(root, "libs/sub"));
  await expect(run("true", { access })).rejects.toThrow("libs/sub is a submodule in the index");
});

wallTest("commits, branches, stashes, conflicts and their end are the repository's", async () => {
  const { run, git, root } = await openRepository(folder);
  const script = async (text: string): Promise<string> => {
    const { stdout, stderr } = await run(text, {
      access,
      env: {
        GIT_AUTHOR_NAME: "a",
        GIT_AUTHOR_EMAIL: "a@b.c",
        GIT_COMMITTER_NAME: "a",
        GIT_COMMITTER_EMAIL: "a@b.c",
      },
    });
    return stdout + stderr;
  };
  expect(
    await script(
      "echo b > b.txt; git add b.txt; git commit -q -m second; git checkout -q -b topic; echo t > a.txt; git commit -qam topic; git tag v1",
    ),
  ).toBe("");
  expect([git("log", "--format=%s", "-3"), git("status", "--short", "--branch"), git("tag")]).toEqual([
    "topic\nsecond\nfirst\n",
    "## topic\n",
    "v1\n",
  ]);
  expect(
    await script(
      "git checkout -q main; echo m > a.txt; git commit -qam main; git stash list; git merge topic >/dev/null",
    ),
  ).toBe("");
  expect(git("status", "--short")).toBe("UU a.txt\n");
  expect(existsSync(join(root, ".git/MERGE_HEAD"))).toBe(true);
  expect(await script("git merge --abort; git rebase topic >/dev/null 2>&1; git status | head -1")).toContain(
    "rebase in progress",
  );
  expect(git("status")).toContain("rebase in progress");
  expect(
    await script(
      "git rebase --abort; git pack-refs --all; git branch -q -D topic 2>/dev/null; echo x > c.txt; git add c.txt; git stash -q",
    ),
  ).toBe("");
  expect([
    git("branch", "--format=%(refname:short)"),
    git("stash", "list").length > 0,
    git("status", "--short"),
  ]).toEqual(["main\n", true, ""]);
  expect((await readdir(join(root, ".git"))).filter((name) => name.startsWith("rebase"))).toEqual([]);
  git("fsck", "--strict");
});

wallTest(
  "the person's Git and several commands at once stage and commit without losing each other's files",
  async () => {
    const repository = await openRepository(folder);
    const { run, git, root } = repository;
    const add = (name: string): Promise<unknown> =>
      run(`echo ${name} > ${name}; until git add ${name} 2>/dev/null; do sleep 0.01; done; sleep 0.1`, {
        access,
      });
    await whileRunning(repository, "echo own > own.txt; git add own.txt", async () => {
      await writeFile(join(root, "mine.txt"), "mine");
      git("add", "mine.txt");
      appendFileSync(join(root, "a.txt"), "more\n");
      git("status");
      await Promise.all(["b", "c", "d", "e"].map((name) => add(`${name}.txt`)));
    });
    const staged = git("diff", "--cached", "--name-only").trim().split("\n");
    expect(staged).toEqual(["b.txt", "c.txt", "d.txt", "e.txt", "mine.txt", "own.txt"]);
    git("fsck");
  },
);

wallTest("a folder that a command puts in the place of .git, or links, is not touched", async () => {
  const { root, run } = await openWalled(folder);
  const victim = join(folder, `victim-of-links`);
  await mkdir(join(victim, "config.worktree"), { recursive: true });
  await writeFile(join(victim, "commondir"), "..");
  await writeFile(join(victim, "config.worktree/file"), "kept");
  for (const command of [
    "mkdir .git",
    `rmdir .git; ln -s ${victim} .git; sleep 0.1`,
    "mkdir -p .git/objects; touch .git/HEAD",
    `mv .git old; ln -s ${victim} .git`,
  ])
    await run(command, { access });
  expect([
    await readFile(join(victim, "commondir"), "utf8"),
    await readFile(join(victim, "config.worktree/file"), "utf8"),
  ]).toEqual(["..", "kept"]);
  expect((await readdir(victim)).sort()).toEqual(["commondir", "config.worktree"]);
  await rm(root, { recursive: true });
});

wallTest("a later command finds nothing of an earlier one in the copy of the repository", async () => {
  const { run, git, root } = await openRepository(folder);
  await rm(join(root, ".git/hooks"), { recursive: true });
  await run(
    "mkdir -p .git/hooks .git/rebase-merge .git/info; echo x | tee .git/hooks/post-commit .git/commondir .git/info/attributes .git/rebase-merge/todo-x .git/HEAD; rm .git/index; ln -s /tmp .git/lfs",
    { access },
  );
  git("commit", "--quiet", "--allow-empty", "--message=by a person");
  const { stdout } = await run(
    "ls .git .git/hooks .git/lfs .git/rebase-merge .git/info 2>/dev/null; git log --format=%s; git status --short",
    { access },
  );
  expect(stdout).not.toMatch(/post-commit|commondir|attributes|lfs|rebase-merge|todo-x/);
  expect(stdout).toContain("by a person\nfirst\n");
});

const links: Readonly<Record<string, string>> = {
  "the log of HEAD": "rm -f .git/logs/HEAD; ln -s ../../../victim .git/logs/HEAD",
  "the log of a branch":
    "rm -f .git/logs/refs/heads/main; ln -s ../../../../../victim .git/logs/refs/heads/main",
  "a folder of logs":
    "rm -rf .git/logs; ln -s ../../victims .git/logs; mkdir -p .git/logs; ln -sfn ../../../victims .git/logs/refs",
  "a branch":
    "git branch other; ln -sf ../../../../victim .git/refs/heads/other; git pack-refs --all; ln -sf ../../../../victim .git/refs/heads/main",
  "a folder of branches": "rm -rf .git/refs/heads; ln -s ../../../victims .git/refs/heads",
  "a note of objects":
    "ln -s ../../../../victim .git/objects/info/commit-graph; echo /tmp > .git/objects/info/alternates",
  "a resolved conflict": "mkdir -p .git/rr-cache; ln -s ../../../victims .git/rr-cache/x",
};

for (const [name, command] of Object.entries(links)) {
  wallTest(
    `the person's Git writes nothing through a link that a command puts in the place of ${name}`,
    async () => {
      const repository = await openRepository(folder);
      const { git, root } = repository;
      const victim = join(folder, "victim");
      await writeFile(victim, "kept");
      await mkdir(join(folder, "victims"), { recursive: true });
      const work = async (): Promise<void> => {
        git("commit", "--quiet", "--allow-empty", "--message=a person's");
        git("checkout", "--quiet", "-B", "topic");
        git("checkout", "--quiet", "main");
        git("gc", "--quiet");
        expect([await readFile(victim, "utf8"), await readdir(join(folder, "victims"))]).toEqual([
          "kept",
          [],
        ]);
      };
      await whileRunning(repository, command, work);
      await work();
      expect(existsSync(join(root, ".git/objects/info/alternates"))).toBe(false);
      expect(git("log", "--format=%s", "-1")).toBe("a person's\n");
    },
  );
}

wallTest("a command in a linked worktree changes branches, and nothing else of the repository", async () => {
  const { git, root } = await openRepository(folder);
  const linked = `${root}-linked`;
  git("worktree", "add", "--quiet", "-b", "topic", linked);
  const victim = join(folder, "victim-linked");
  await writeFile(victim, "kept");
  const { run } = await openWalled(folder, { root: linked });
  const { stderr } = await run(
    `echo b > b.txt; git add b.txt; ${asAuthor} commit -q -m second; git branch other; git tag v1
    echo x > ${root}/.git/HEAD; rm ${root}/.git/index; ln -sf ${victim} ${root}/.git/logs/HEAD; ln -sf ${victim} ${root}/.git/logs/refs/heads/topic; echo .. > ${root}/.git/commondir`,
    { access },
  );
  expect(stderr).toBe("");
  expect(git("log", "--format=%s", "topic")).toBe("second\nfirst\n");
  expect([git("branch", "--format=%(refname:short)"), git("tag"), git("status", "--short")]).toEqual([
    "main\nother\ntopic\n",
    "v1\n",
    "",
  ]);
  git("-C", linked, "commit", "--quiet", "--allow-empty", "--message=third");
  git("commit", "--quiet", "--allow-empty", "--message=fourth");
  expect(await readFile(victim, "utf8")).toBe("kept");
  expect(git("-C", linked, "status", "--short")).toBe("");
});

wallTest("branches that contain one another, and packed ones, are taken over", async () => {
  const { git, run, root } = await openRepository(folder);
  const names = async (command: string): Promise<string> => {
    expect((await run(command, { access })).stderr).toBe("");
    git("fsck");
    return git("branch", "--format=%(refname:short)").trim().replaceAll("\n", " ");
  };
  expect(await names("git branch a; git branch b/c")).toBe("a b/c main");
  expect(
    await names(
      "git branch -q -D a 2>/dev/null; git branch a/b; git branch -q -D b/c 2>/dev/null; git branch b",
    ),
  ).toBe("a/b b main");
  expect(await names("git pack-refs --all --prune; git branch -q -D b 2>/dev/null")).toBe("a/b main");
  git("branch", "by-person");
  expect(await names("git update-ref refs/heads/x HEAD; git update-ref -d refs/heads/a/b")).toBe(
    "by-person main x",
  );
  expect(git("reflog", "--format=%gs", "main")).toContain("commit (initial): first");
  expect((await readdir(join(root, ".git/refs/heads"))).sort()).toEqual(["by-person", "x"]);
});

wallTest("no command with write access runs while the index does not show its submodules", async () => {
  const { run, git } = await openRepository(folder);
  git("update-index", "--split-index");
  await expect(run("true", { access })).rejects.toMatchObject({ code: "unavailable" });
  expect(await run("true")).toMatchObject({ exit_code: 0 });
  git("update-index", "--no-split-index");
  expect(await run("true", { access })).toMatchObject({ exit_code: 0 });
});

wallTest(
  "a branch that a command packs is not lost if the file of packed branches is not taken over",
  async () => {
    const repository = await openRepository(folder);
    const { git, root, run } = repository;
    for (const name of ["work", "old"]) git("branch", name);
    git("pack-refs", "--all");
    git("branch", "new");
    git("commit", "--quiet", "--allow-empty", "--message=second");
    git("branch", "--force", "work");
    const work = git("rev-parse", "work");
    const running = run("touch ready; until [ -e done ]; do sleep 0.02; done; git pack-refs --all", {
      access,
    });
    while (!existsSync(join(root, "ready"))) await new Promise((next) => setTimeout(next, 20));
    git("branch", "--delete", "old");
    await writeFile(join(root, "done"), "");
    expect((await running).stderr).toContain("packed-refs of the repository was changed at the same time");
    expect(git("rev-parse", "work")).toBe(work);
    expect(git("branch", "--format=%(refname:short)").trim().split("\n")).toEqual(["main", "new", "work"]);
    // The next command sees them as well.
    expect((await run("git rev-parse work", { access })).stdout).toBe(work);
  },
);

wallTest(
  "a command replaces no object by another one, and keeps the replacements of the person",
  async () => {
    const { git, run } = await openRepository(folder);
    git("tag", "--annotate", "--message=x", "v1");
    const replace = "git replace $(git rev-parse HEAD:a.txt) $(echo evil | git hash-object -w --stdin)";
    expect((await run(replace, { access })).stderr).toContain("refs/replace/");
    expect((await run(`${replace}; git pack-refs --all`, { access })).stderr).toContain("refs/replace/");
    expect(git("show", "HEAD:a.txt")).toBe("a\n");
    git("replace", "HEAD:a.txt", "HEAD:run.sh");
    expect((await run("git pack-refs --all", { access })).stderr).toBe("");
    expect((await run("git branch other; git pack-refs --all", { access })).stderr).toBe("");
    expect(git("replace", "--list").trim().split("\n")).toHaveLength(1);
    expect(git("show", "HEAD:a.txt")).toContain("#!/bin/sh");
    git("fsck");
  },
);
