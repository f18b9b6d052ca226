import { execFileSync } from "node:child_process";
import { existsSync, renameSync, writeFileSync } from "node:fs";
import { appendFile, chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { guardOf } from "../../../agents/policy/protected-paths.ts";
import type { ExecResult } from "../../contract.ts";
import { openRepository } from "./repository.suite.ts";
import { createFolder, type Walled, wallTest } from "./walled.suite.ts";

const folder = await createFolder();
const access = { write: true, guard: guardOf({}, []) };

type Repository = Awaited<ReturnType<typeof openRepository>>;

async function openProject(): Promise<Repository> {
  const repository = await openRepository(folder);
  const { root, git } = repository;
  await mkdir(join(root, "node_modules/p"), { recursive: true });
  await mkdir(join(root, "libs"));
  for (const [path, text] of [
    [".env", "A=old"],
    ["package.json", "{}"],
    ["libs/package.json", "{}"],
    ["node_modules/p/index.js", "1"],
  ] as const)
    await writeFile(join(root, path), text);
  git("add", "package.json");
  git("commit", "--quiet", "--message=package");
  return repository;
}

/** Replaces a file as editors do. */
function save(path: string, text: string): void {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

/** Runs a command that waits for the file `done`, and calls `during` meanwhile. */
async function during(
  { run, root }: Walled,
  { command = "", write = true }: { readonly command?: string; readonly write?: boolean },
  work: () => unknown,
): Promise<ExecResult> {
  const running = run(`echo ready; until [ -e done ]; do :; done; ${command}`, {
    access: { ...access, write },
    onOutput: ({ text }) => text.includes("ready") && ready.resolve(),
  });
  const ready = Promise.withResolvers<void>();
  await Promise.race([ready.promise, running]);
  await work();
  return await running.finally(() => rm(join(root, "done"), { force: true }));
}

const replacements: Readonly<Record<string, (repository: Repository) => unknown>> = {
  "package.json": ({ root }) => save(join(root, "package.json"), '{"a":1}'),
  "libs/package.json": ({ root }) => {
    renameSync(join(root, "libs/package.json"), join(root, "libs/package.json~"));
    writeFileSync(join(root, "libs/package.json"), '{"a":1}');
  },
  ".env": ({ root }) => save(join(root, ".env"), "A=new"),
  node_modules: async ({ root }) => {
    await rm(join(root, "node_modules"), { recursive: true });
    await mkdir(join(root, "node_modules"));
  },
  ".git": async ({ root, git }) => {
    await rm(join(root, ".git"), { recursive: true });
    git("init", "--quiet");
  },
};

for (const [path, replace] of Object.entries(replacements)) {
  wallTest(`a command ends when another program replaces ${path}, and the result names it`, async () => {
    const project = await openProject();
    const { exit_code, timed_out, stderr } = await during(project, {}, () => replace(project));
    expect({ exit_code, timed_out }).toEqual({ exit_code: null, timed_out: false });
    expect(stderr).toContain("kit stopped the command, because another program replaced these paths");
    expect(stderr).toMatch(new RegExp(`any program uses them: ${path.replaceAll(".", "\\.")}\\.\n$`));
  });
}

wallTest("a command without write access ends when another program replaces a file of secrets", async () => {
  const project = await openProject();
  const { exit_code, stderr } = await during(project, { write: false }, () => {
    save(join(project.root, "package.json"), "{}");
    save(join(project.root, ".env"), "A=new");
  });
  expect(exit_code).toBe(null);
  expect(stderr).toContain("uses them: .env.\n");
});

wallTest("a path that was replaced just before a command ended is named in its result", async () => {
  const project = await openProject();
  const { root } = project;
  const { stderr } = await during(project, { command: "echo evil > package.json; true" }, () => {
    save(join(root, "package.json"), '{"a":1}');
    writeFileSync(join(root, "done"), "");
  });
  expect(stderr).toContain("before any program uses them: package.json.\n");
});

wallTest("a command goes on when files are written in place, and protected paths are removed", async () => {
  const project = await openProject();
  const { root, git, run } = project;
  const result = await during(project, {}, async () => {
    await writeFile(join(root, "package.json"), '{"a":1}');
    await appendFile(join(root, ".env"), "\nB=2");
    await chmod(join(root, "package.json"), 0o600);
    await writeFile(join(root, "node_modules/p/index.js"), "2");
    save(join(root, "a.txt"), "b\n");
    git("config", "a.b", "c");
    git("commit", "--quiet", "--all", "--message=in place");
    git("checkout", "--quiet", "HEAD~1", "a.txt");
    await rm(join(root, "libs"), { recursive: true });
    // kit renames what this one makes.
    await run("mkdir new; echo '{}' > new/package.json; git init -q new", { access });
    await run("echo b > b.txt; git add b.txt", { access });
    // kit looks at the paths more often than this.
    await new Promise((next) => setTimeout(next, 500));
    await writeFile(join(root, "done"), "");
  });
  expect([result.exit_code, result.stderr]).toEqual([0, ""]);
  expect(existsSync(join(root, "new/refused-package.json"))).toBe(true);
  expect(await readFile(join(root, ".env"), "utf8")).toBe("A=old\nB=2");
});

wallTest("a command goes on when a person's checkout changes no protected path", async () => {
  const project = await openProject();
  const { root, git } = project;
  git("checkout", "--quiet", "-b", "topic");
  await writeFile(join(root, "a.txt"), "topic\n");
  git("commit", "--quiet", "--all", "--message=topic");
  const result = await during(project, { command: "cat a.txt" }, async () => {
    git("checkout", "--quiet", "main");
    git("stash", "list");
    execFileSync("touch", ["package.json", ".env"], { cwd: root });
    await new Promise((next) => setTimeout(next, 300));
    await writeFile(join(root, "done"), "");
  });
  expect([result.exit_code, result.stdout, result.stderr]).toEqual([0, "ready\na\n", ""]);
});
