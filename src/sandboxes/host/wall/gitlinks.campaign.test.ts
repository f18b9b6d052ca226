import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import { createFolder, openWalled, wallTest } from "./walled.suite.ts";

const folder = await createFolder();
const access = { write: true };
let count = 0;

function git(cwd: string, ...args: readonly string[]): string {
  const settings = ["user.name=a", "user.email=a@b.c", "protocol.file.allow=always"];
  return execFileSync("git", [...settings.flatMap((each) => ["-c", each]), ...args], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** A repository with one commit and with submodules that have none. */
async function makeRepository(path: string, submodules: readonly string[]): Promise<void> {
  await mkdir(path, { recursive: true });
  git(path, "init", "--quiet", "--initial-branch=main");
  git(path, "commit", "--quiet", "--allow-empty", "--message=first");
  const commit = git(path, "rev-parse", "HEAD").trim();
  for (const each of submodules) {
    git(path, "update-index", "--add", "--cacheinfo", `160000,${commit},${each}`);
    await mkdir(join(path, each), { recursive: true });
  }
  git(path, "commit", "--quiet", "--allow-empty", "--message=second");
}

interface Case {
  readonly root: string;
  /** The place of the submodule, relative to the root. */
  readonly place: string;
  /** Where the person runs Git. */
  readonly cwd: string;
}

const cases: Readonly<Record<string, (base: string) => Promise<Case>>> = {
  "of a submodule": async (base) => {
    const root = join(base, "root");
    await makeRepository(join(base, "lib"), ["deps/x"]);
    await makeRepository(root, []);
    git(root, "submodule", "--quiet", "add", join(base, "lib"), "lib");
    git(root, "commit", "--quiet", "--message=submodule");
    return { root, place: "lib/deps/x", cwd: root };
  },
  "of the repository around the workspace": async (base) => {
    await makeRepository(base, ["pkg/mod"]);
    return { root: join(base, "pkg"), place: "mod", cwd: base };
  },
  "of a workspace that is a submodule": async (base) => {
    const outer = join(base, "outer");
    await makeRepository(join(base, "lib"), ["deps/x"]);
    await makeRepository(outer, []);
    git(outer, "submodule", "--quiet", "add", join(base, "lib"), "lib");
    return { root: join(outer, "lib"), place: "deps/x", cwd: outer };
  },
  "of a linked worktree in the workspace": async (base) => {
    const root = join(base, "root");
    await makeRepository(join(base, "main"), ["deps/x"]);
    await mkdir(root);
    git(join(base, "main"), "worktree", "add", "--quiet", join(root, "tree"));
    return { root, place: "tree/deps/x", cwd: join(root, "tree") };
  },
  "of a repository whose .git is a link": async (base) => {
    const root = join(base, "root");
    await makeRepository(join(root, "lib"), ["x"]);
    execFileSync("mv", [join(root, "lib/.git"), join(base, "real")]);
    await symlink("../../real", join(root, "lib/.git"));
    return { root, place: "lib/x", cwd: join(root, "lib") };
  },
};

async function createCase(name: string): Promise<Case & { readonly command: string; ran(): boolean }> {
  count += 1;
  const base = join(folder, `case-${count}`);
  await mkdir(base);
  const made = await cases[name]?.(base);
  if (made === undefined) throw new Error(name);
  const mark = join(folder, `ran-${count}`);
  const program = join(base, "run.sh");
  await writeFile(program, `#!/bin/sh\ntouch ${mark}\n`);
  await chmod(program, 0o755);
  const asAuthor = "git -c user.name=a -c user.email=a@b.c";
  const make = `make() { mkdir -p ${made.place}; (cd ${made.place} && git init -q . && ${asAuthor} commit -q --allow-empty -m x && git config core.fsmonitor ${program}); }`;
  const command = `${make}; make || { mv ${dirname(made.place)} old; make; }; touch ready; until [ -e done ]; do sleep 0.02; done`;
  return { ...made, command, ran: () => existsSync(mark) };
}

async function untilReady(root: string): Promise<void> {
  const end = Date.now() + 20_000;
  while (!existsSync(join(root, "ready")) && Date.now() < end)
    await new Promise((next) => setTimeout(next, 20));
}

for (const name of Object.keys(cases)) {
  wallTest(`a submodule ${name} gets no repository from a command while it runs`, async () => {
    const { root, place, cwd, command, ran } = await createCase(name);
    const { run } = await openWalled(folder, { root });
    const running = run(command, { access });
    await untilReady(root);
    git(cwd, "status");
    expect([ran(), existsSync(join(root, place, ".git"))]).toEqual([false, false]);
    await writeFile(join(root, "done"), "");
    await running;
  });
}

wallTest("a submodule of a submodule has no repository of a command whose kit was killed", async () => {
  const { root, cwd, command, ran } = await createCase("of a submodule");
  const program = `
    const { local } = await import(${JSON.stringify(join(import.meta.dirname, "../../local/local-sandbox.ts"))});
    const sandbox = await local().open({ agent: "a", instance_id: "a", session: "a", project_root: ${JSON.stringify(root)} });
    await sandbox.exec({ command: ${JSON.stringify(command)}, access: { write: true } });`;
  const kit: ChildProcess = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: "ignore",
  });
  const exited = new Promise((resolve) => kit.once("exit", resolve));
  await untilReady(root);
  kit.kill("SIGKILL");
  await exited;
  expect(existsSync(join(root, "ready"))).toBe(true);
  git(cwd, "status");
  expect(ran()).toBe(false);
});

wallTest(
  "no command with write access runs while the index of a submodule hides its submodules",
  async () => {
    const { root } = await createCase("of a submodule");
    const { run } = await openWalled(folder, { root });
    const refused = {
      code: "unavailable",
      message: expect.stringContaining("index of the repository in lib"),
    };
    git(join(root, "lib"), "update-index", "--split-index");
    await expect(run("true", { access })).rejects.toMatchObject(refused);
    expect(await run("true")).toMatchObject({ exit_code: 0 });
    git(join(root, "lib"), "update-index", "--no-split-index");
    expect(await run("true", { access })).toMatchObject({ exit_code: 0 });
    const index = join(root, ".git/modules/lib/index");
    const bytes = await readFile(index);
    await writeFile(index, bytes.subarray(0, 60));
    await expect(run("true", { access })).rejects.toMatchObject(refused);
    await rm(index);
    await symlink("/dev/zero", index);
    await expect(run("true", { access })).rejects.toMatchObject(refused);
    await rm(index);
    expect(await run("true", { access })).toMatchObject({ exit_code: 0 });
  },
);

wallTest("a command sees submodules that a person adds to a submodule before the next command", async () => {
  const { root } = await createCase("of a submodule");
  const { run } = await openWalled(folder, { root });
  await run("true", { access });
  const lib = join(root, "lib");
  git(lib, "update-index", "--add", "--cacheinfo", `160000,${git(lib, "rev-parse", "HEAD").trim()},late`);
  const { stdout } = await run(
    "mkdir lib/late/.git 2>&1; mkdir lib/other/.git 2>&1; mkdir lib/free; ls lib",
    {
      access,
    },
  );
  expect(stdout).toMatch(/late\/.git.*Read-only/);
  expect(stdout).toContain("free\nlate\n");
});
