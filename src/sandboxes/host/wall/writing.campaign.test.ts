import { execFileSync } from "node:child_process";
import { mkdir, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { virtual } from "../../virtual/virtual-sandbox.ts";
import { createFolder, openWalled, wallTest } from "./walled.suite.ts";

const folder = await createFolder();

/** Commands that seem to only read, but write or run other programs. */
const attempts = [
  "touch PWNED",
  "git config alias.zz '!touch PWNED'; git zz",
  "git --shallow-file /dev/null config alias.zz '!touch PWNED'; git zz",
  "git config tar.x.command 'touch PWNED; cat'; git archive --format=x HEAD",
  "git config --global alias.zz '!touch PWNED'; git zz",
  "git config --global uploadpack.packObjectsHook 'touch PWNED;'; git clone . /tmp/clone",
  "git -c core.fsmonitor='touch PWNED; false' status",
  "git -c core.pager='touch PWNED' -p log; git grep -O'touch PWNED' a",
  "git bundle create PWNED HEAD; git format-patch -1 -o .; git init PWNED",
  "sed '1etouch PWNED' a.txt; sed 's/a/touch PWNED/e#' a.txt; sed -n wPWNED a.txt; sed -i s/a/b/ a.txt",
  "awk 'BEGIN { system(\"touch PWNED\") }'; awk 'BEGIN { print 1 > \"PWNED\" }'; awk 'BEGIN { print | \"touch PWNED\" }'",
  "printf 'all:\\n\\ttouch PWNED\\n' | make -f -; make --eval 'x:=$(shell touch PWNED)'",
  "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec='touch PWNED' a.txt; tar -cf PWNED a.txt",
  "npm exec -c 'touch PWNED'; npm explore . -- touch PWNED; npm init -y; npm test",
  "split --filter='touch PWNED' a.txt; split a.txt PWNED",
  "flock -c 'touch PWNED' a.txt; flock PWNED true; timeout 5 touch PWNED; nice touch PWNED; setsid touch PWNED",
  "strace -o '|touch PWNED' true; strace -o PWNED true; script -c 'touch PWNED' PWNED",
  "find . -maxdepth 0 -exec touch PWNED ';'; find . -fprint PWNED; xargs touch < a.txt; echo PWNED | xargs touch",
  "uniq a.txt PWNED; shuf -o PWNED a.txt; sort -o PWNED a.txt; tee PWNED < a.txt; dd if=a.txt of=PWNED; cp a.txt PWNED",
  "rbash -c 'touch PWNED'; bash +c 'touch PWNED'; bash -ic 'touch PWNED'; env touch PWNED; sh a.txt",
  'perl -e \'open F, ">PWNED"\'; python3 -c \'open("PWNED", "w")\'; node -e \'fs.writeFileSync("PWNED", "")\'',
  "ln -s /etc PWNED; ln a.txt PWNED; mkdir PWNED; mkfifo PWNED; mv a.txt PWNED; rm -rf .git a.txt; truncate -s 0 a.txt",
  "chmod 777 a.txt; chown 12345 a.txt; touch -t 200001010000 a.txt; setfattr -n user.x -v y a.txt",
  "scp -S 'sh -c \"touch PWNED\"' a.txt x:b; ssh -o ProxyCommand='touch PWNED' x; rsync -e 'touch PWNED' a.txt x:",
  "vim -es -c '!touch PWNED' -c q; ed -s a.txt < a.txt; patch -o PWNED a.txt < a.txt; curl -o PWNED file://$PWD/a.txt",
];

async function snapshot(root: string): Promise<readonly string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const lines = entries.map(async (entry) => {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) return `${path} ${await readFile(path, "latin1")}`;
    return entry.isSymbolicLink() ? `${path} -> ${await readlink(path)}` : path;
  });
  return (await Promise.all(lines)).sort();
}

function createRepository(root: string): void {
  const git = (...args: readonly string[]): unknown =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], {
      cwd: root,
      stdio: "ignore",
    });
  execFileSync("mkdir", ["-p", root]);
  git("init", "--quiet", "--initial-branch=main");
  execFileSync("sh", ["-c", "echo touch PWNED > a.txt"], { cwd: root });
  git("add", ".");
  git("commit", "--quiet", "--message=first");
}

wallTest("without allowWrite no program can write in the workspace or the user's home", async () => {
  const root = join(folder, "repository");
  createRepository(root);
  const home = join(folder, "user");
  await mkdir(home);
  await writeFile(join(home, ".gitconfig"), '[user]\n\tname = Ann "A" Example\n\temail = ann@example.com\n');
  const before = [await snapshot(root), await snapshot(home)];
  const realHome = process.env.HOME;
  process.env.HOME = home;
  try {
    const { run } = await openWalled(folder, { root });
    const lines = attempts.map((line) => `( ${line} ) >/dev/null 2>&1 </dev/null`);
    const { stdout } = await run(
      `${lines.join("\n")}\necho all; git log --format=%s; find / -name PWNED -not -path '/proc/*' -not -path '/tmp/*' 2>/dev/null`,
      { timeoutMs: 60_000 },
    );
    expect(stdout).toBe("all\nfirst\n");
  } finally {
    process.env.HOME = realHome;
  }
  expect([await snapshot(root), await snapshot(home)]).toEqual(before);
});

wallTest("without allowWrite no program can write in a virtual workspace", async () => {
  const sandbox = await virtual({ folder: join(folder, "all"), files: { "a.txt": "touch PWNED\n" } }).open({
    agent: "a",
    instance_id: "1",
    session: "s",
  });
  const lines = attempts.map((line) => `( ${line} ) >/dev/null 2>&1 </dev/null`);
  await sandbox.exec({ command: lines.join("\n"), access: { write: false }, timeoutMs: 60_000 });
  expect(await sandbox.list()).toEqual([{ name: "a.txt", kind: "file" }]);
  expect(await sandbox.readFile("a.txt")).toBe("touch PWNED\n");
});

wallTest("with allowWrite commands write in the workspace, and nowhere else", async () => {
  const { root, run, sandbox } = await openWalled(folder);
  await run(
    `echo in > in.txt; echo out > ../out.txt; echo out > ${folder}/out.txt; ln -s ${folder} up; echo out > up/out.txt; ln -s /etc etc; echo out > etc/kit`,
    { access: { write: true } },
  );
  expect(await sandbox.readFile("in.txt")).toBe("in\n");
  expect(await readdir(folder)).not.toContain("out.txt");
  expect(await readdir(root)).toEqual([".kit", "etc", "in.txt", "up"]);
});

wallTest(
  "with allowWrite a commit works, and programs that the host's Git would run cannot be changed",
  async () => {
    const root = join(folder, "written");
    createRepository(root);
    const decisive = async (): Promise<unknown> => [
      await readFile(join(root, ".git/config"), "utf8"),
      await snapshot(join(root, ".git/hooks")),
    ];
    const before = await decisive();
    const { run } = await openWalled(folder, { root });
    const hostile = [
      "git config alias.zz '!touch PWNED'",
      "echo 'touch PWNED' > .git/hooks/post-commit",
      "printf '[core]\\n\\tfsmonitor = touch PWNED\\n' > /tmp/c; cp /tmp/c .git/config; mv /tmp/c .git/config",
      "mv .git away; mv .git/hooks .git/old; rm -rf .git/hooks; ln -sfn /tmp .git/hooks",
      "mkdir -p evil; cp -r .git/objects .git/refs .git/HEAD evil; echo '[alias]' > evil/config",
    ];
    const { stdout } = await run(
      `${hostile.map((line) => `( ${line} ) 2>/dev/null`).join("\n")}
    echo b > b.txt; git add b.txt; git -c user.name=a -c user.email=a@b.c commit --quiet --message=second && git log --format=%s
    git checkout --quiet -b topic; git stash list; git status --short; echo ../evil > .git/commondir`,
      { access: { write: true } },
    );
    expect(stdout).toBe("second\nfirst\n?? evil/\n");
    expect(await decisive()).toEqual(before);
    expect(await readdir(join(root, ".git"))).not.toContain("commondir");
    expect(execFileSync("git", ["log", "--format=%s", "topic"], { cwd: root, encoding: "utf8" })).toBe(
      "second\nfirst\n",
    );
  },
);

wallTest("a linked worktree is usable, and its repository outside is protected", async () => {
  const main = join(folder, "main");
  createRepository(main);
  const root = join(folder, "linked");
  execFileSync("git", ["worktree", "add", "--quiet", "-b", "topic", root], { cwd: main });
  await writeFile(join(main, "private.txt"), "of the main worktree");
  const before = await readFile(join(main, ".git/config"), "utf8");
  const { run } = await openWalled(folder, { root });
  const read = await run(
    `git status --short && git log --format=%s; cat ${main}/private.txt; touch ${main}/.git/objects/x ${main}/x`,
  );
  expect(read.stdout).toBe("first\n");
  const written = await run(
    `echo c > c.txt; git add c.txt; git -c user.name=a -c user.email=a@b.c commit --quiet --message=third && git log --format=%s
    git config alias.zz '!x'; echo x > ${main}/.git/hooks/pre-commit; echo 'gitdir: /tmp' > .git; echo /tmp > ${main}/.git/worktrees/linked/commondir; touch ${main}/x`,
    { access: { write: true } },
  );
  expect(written.stdout).toBe("third\nfirst\n");
  expect(await readFile(join(main, ".git/config"), "utf8")).toBe(before);
  expect((await readdir(join(main, ".git/hooks"))).filter((name) => !name.endsWith(".sample"))).toEqual([]);
  expect((await readdir(main)).sort()).toEqual([".git", "a.txt", "private.txt"]);
  expect(execFileSync("git", ["-C", root, "status", "--short", "--branch"], { encoding: "utf8" })).toBe(
    "## topic\n",
  );
});

wallTest("a .git file that a model wrote makes no folder visible", async () => {
  const other = join(folder, "other");
  createRepository(other);
  await mkdir(join(other, ".git/worktrees/x"), { recursive: true });
  const { root, run } = await openWalled(folder);
  for (const target of [join(other, ".git"), join(other, ".git/worktrees/x"), folder, "/root/.ssh"]) {
    await writeFile(join(root, ".git"), `gitdir: ${target}\n`);
    for (const write of [false, true]) {
      const { stdout } = await run(`ls -A ${other} ${target}; cat ${other}/.git/HEAD`, { access: { write } });
      expect(stdout).not.toMatch(/HEAD|refs|a\.txt/);
    }
  }
});

wallTest("commands can neither write read-only paths nor rename a folder above them", async () => {
  const { root, run } = await openWalled(folder);
  await mkdir(join(root, "src/agents"), { recursive: true });
  await writeFile(join(root, "src/agents/a.ts"), "old");
  await writeFile(join(root, "package.json"), "old");
  const access = {
    write: true,
    readOnlyPaths: ["src/agents", "package.json", "none", "../out", "/etc/passwd"],
  };
  const { stdout } = await run(
    `echo new > src/agents/a.ts; echo new > src/agents/b.ts; mv src away; mv src/agents away; rm -rf src
    echo new > p; mv p package.json; rm package.json; echo new > src/b.ts && cat src/b.ts src/agents/a.ts package.json; ls src/agents`,
    { access },
  );
  expect(stdout).toBe("new\noldolda.ts\n");
});

wallTest("links in place of kit's and Git's own files expose nothing, and are restored", async () => {
  const root = join(folder, "links");
  createRepository(root);
  await mkdir(join(folder, "outside"));
  await writeFile(join(folder, "outside/secret"), "secret");
  await mkdir(join(root, "githooks"));
  await rm(join(root, ".git/hooks"), { recursive: true });
  await symlink("../githooks", join(root, ".git/hooks"));
  await symlink(join(folder, "outside"), join(root, ".kit"));
  const { run } = await openWalled(folder, { root });
  const { stdout } = await run(
    `cat .kit/secret; echo x > .kit/new; echo x > githooks/pre-commit; echo x > .git/hooks/pre-commit; mv githooks away
    rm -rf .git/hooks; mkdir .git/hooks; echo x > .git/hooks/pre-commit; ls .git/hooks`,
    { access: { write: true } },
  );
  expect(stdout).toBe("pre-commit\n");
  expect([await readlink(join(root, ".git/hooks")), await readdir(join(root, "githooks"))]).toEqual([
    "../githooks",
    [],
  ]);
  expect(await readdir(join(folder, "outside"))).toEqual(["secret"]);
  await rm(join(root, ".git/hooks"));
  await rm(join(root, ".git/config"));
  await symlink(join(folder, "outside"), join(root, ".git/hooks"));
  await symlink(join(folder, "outside/secret"), join(root, ".git/config"));
  const access = { write: true };
  expect(
    (await run("cat .git/config .git/hooks/*; cat ../outside/*; echo x > .git/config", { access })).stdout,
  ).toBe("");
  expect(await readFile(join(folder, "outside/secret"), "utf8")).toBe("secret");
  await writeFile(join(root, "loop"), "");
  for (const [folderName, target] of [
    [".git", "/root/.ssh"],
    [".git", "loop"],
    [".kit", "nowhere"],
  ] as const) {
    await rm(join(root, folderName), { recursive: true, force: true });
    await symlink(target, join(root, folderName));
    for (const write of [false, true])
      expect((await run("echo fine", { access: { write } })).stdout).toBe("fine\n");
  }
});
