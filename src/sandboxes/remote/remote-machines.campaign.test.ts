import { execFileSync } from "node:child_process";
import { chmod, lstat, mkdir, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { testFolder } from "../../testing/test-folder.ts";
import { e2bSubject } from "../e2b/testing/e2b-subject.ts";
import { useRemote } from "./testing/remote.suite.ts";

const bench = useRemote(e2bSubject);

/** Creates a Git repository with these files; commits all except those of `later`. */
async function repository(
  files: Readonly<Record<string, string>>,
  later: Readonly<Record<string, string>> = {},
): Promise<string> {
  const root = testFolder(onTestFinished);
  const writeSettings = async (variables: Readonly<Record<string, string>>): Promise<void> => {
    for (const [path, text] of Object.entries(variables)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    }
  };
  const git = (...args: readonly string[]): void => {
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", ...args], { cwd: root, stdio: "pipe" });
  };
  git("init", "-q");
  await writeSettings(files);
  git("add", "-A");
  git("commit", "-qm", "All");
  await writeSettings(later);
  return root;
}

const ownerIn = (root: string) => ({
  agent: "fixer",
  instance_id: "1",
  session: "default",
  project_root: root,
});

test("a machine gets tracked and new files in their current state, without ignored files and secrets", async () => {
  const root = await repository(
    {
      ".gitignore": "dist/\n",
      ".env.example": "TOKEN=\n",
      ".npmrc": "//registry/:_authToken=secret\n",
      "src/a.ts": "old\n",
      "src/gone.ts": "gone\n",
      "run.sh": "#!/bin/sh\n",
      "a name/ü 🚀.md": "text\n",
      [`${"long/".repeat(30)}deep.txt`]: "deep\n",
    },
    {
      "src/a.ts": "new\n",
      "src/fresh.ts": "fresh\n",
      ".env": "TOKEN=secret\n",
      "sub/.env.local": "x\n",
      "dist/a.js": "built\n",
    },
  );
  await rm(join(root, "src/gone.ts"));
  await chmod(join(root, "run.sh"), 0o755);
  await symlink("src/a.ts", join(root, "link.ts"));
  await symlink("/etc/passwd", join(root, "out.ts"));
  await mkdir(join(root, "deploy"));
  await writeFile(join(root, "deploy/server.key"), "PRIVATE\n");
  const sandbox = await bench.open({ upload: true }, ownerIn(root));
  const { stdout } = await sandbox.exec({
    command: "find . ! -type d | LC_ALL=C sort; cat src/a.ts; test -x run.sh && cat link.ts",
  });
  expect(stdout.split("\n")).toEqual([
    "./.env.example",
    "./.gitignore",
    "./a name/ü 🚀.md",
    "./link.ts",
    `./${"long/".repeat(30)}deep.txt`,
    "./run.sh",
    "./src/a.ts",
    "./src/fresh.ts",
    "new",
    "new",
    "",
  ]);
});

test("a folder of the repository is uploaded under its own path, and a project without Git is an error", async () => {
  const root = await repository({ "packages/api/a.ts": "a\n", "packages/web/b.ts": "b\n" });
  const sandbox = await bench.open({ upload: "packages/api" }, ownerIn(root));
  expect((await sandbox.glob("**")).paths).toEqual(["packages/api/a.ts"]);
  const none = await bench.open({ upload: "packages/apu" }, { ...ownerIn(root), instance_id: "2" });
  await expect(none.list()).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.stringContaining("packages/apu"),
  });
  const bare = testFolder(onTestFinished);
  const untracked = await bench.open({ upload: true }, ownerIn(bare));
  await expect(untracked.list()).rejects.toMatchObject({ hint: expect.stringContaining("git init") });
});

test("the changes of a session are returned as a patch, which applies completely or not at all", async () => {
  const root = await repository({
    ".gitignore": "out/\n",
    "a.txt": "one\ntwo\nthree\n",
    "b.txt": "b\n",
    "kept.txt": "kept\n",
    "bin.dat": "\0\x01\x02",
  });
  const owner = ownerIn(root);
  const sandbox = await bench.open({ upload: true }, owner);
  await sandbox.edit("a.txt", { old: "two", new: "2" });
  await sandbox.rm("b.txt");
  await sandbox.writeFile("new/c.txt", "c\n");
  await sandbox.writeBytes("bin.dat", new Uint8Array([0, 255, 1]));
  await sandbox.writeFile("out/built.js", "ignored\n");
  await sandbox.writeFile("node_modules/x/index.js", "ignored\n");
  const machines = await bench.factory({ upload: true }).machines?.(root);
  const changes = await machines?.changes(owner);
  expect(changes?.files).toEqual([
    { path: "a.txt", change: "modified" },
    { path: "b.txt", change: "deleted" },
    { path: "bin.dat", change: "modified" },
    { path: "new/c.txt", change: "added" },
  ]);
  expect(changes?.patch).toContain("-two\n+2\n");
  await writeFile(join(root, "a.txt"), "one\nsomething else\nthree\n");
  const conflict = machines?.apply(changes ?? { patch: "" });
  await expect(conflict).rejects.toMatchObject({ code: "conflict", hint: expect.stringContaining("a.txt") });
  expect(await readFile(join(root, "b.txt"), "utf8")).toBe("b\n");
  await writeFile(join(root, "a.txt"), "one\ntwo\nthree\n");
  await machines?.apply(changes ?? { patch: "" });
  expect(await readFile(join(root, "a.txt"), "utf8")).toBe("one\n2\nthree\n");
  expect(await readFile(join(root, "new/c.txt"), "utf8")).toBe("c\n");
  expect([...(await readFile(join(root, "bin.dat")))]).toEqual([0, 255, 1]);
  await expect(readFile(join(root, "b.txt"))).rejects.toMatchObject({ code: "ENOENT" });
});

test("the machines of a project are listed and removed, also those left by a crash, but never another project's", async () => {
  const [root, other] = [await repository({ "a.txt": "a\n" }), await repository({ "a.txt": "a\n" })];
  const used = await bench.open({}, ownerIn(root));
  await used.list();
  const elsewhere = await bench.open({}, ownerIn(other));
  await elsewhere.list();
  const sandbox = await bench.open({}, { ...ownerIn(root), instance_id: "crashed" });
  await sandbox.list();
  const records = join(root, ".kit/machines");
  for (const name of await readdir(records)) if (name.includes("crashed")) await rm(join(records, name));
  const machines = await bench.factory().machines?.(root);
  const listed = (await machines?.list()) ?? [];
  expect(
    listed.map(({ agent, instance_id, in_use, state }) => ({ agent, instance_id, in_use, state })),
  ).toEqual([
    { agent: "fixer", instance_id: "1", in_use: true, state: "running" },
    { agent: "fixer", instance_id: "crashed", in_use: false, state: "running" },
  ]);
  await machines?.destroy(listed[1]?.id ?? "");
  expect(await machines?.list()).toHaveLength(1);
  const [foreign] = (await (await bench.factory().machines?.(other))?.list()) ?? [];
  await expect(machines?.destroy(foreign?.id ?? "")).rejects.toMatchObject({ code: "not_found" });
  expect(bench.fake.machines.has(foreign?.id ?? "")).toBe(true);
});

test("a new machine that cannot be filled is removed again", async () => {
  const root = await repository({ "a.txt": "a\n" });
  const before = bench.fake.machines.size;
  const sandbox = await bench.open({ files: { "../x": "y" } }, ownerIn(root));
  await expect(sandbox.list()).rejects.toMatchObject({ code: "invalid_request" });
  expect(bench.fake.machines.size).toBe(before);
});

test("three concurrent openers of a new session share one machine", async () => {
  const root = await repository({ "a.txt": "a\n" });
  const before = bench.fake.machines.size;
  const openers = [1, 2, 3].map(() => bench.open({ upload: true }, ownerIn(root)));
  const sandboxes = await Promise.all(openers);
  const seen = await Promise.all(sandboxes.map((sandbox) => sandbox.readFile("a.txt")));
  expect(seen).toEqual(["a\n", "a\n", "a\n"]);
  expect(bench.fake.machines.size).toBe(before + 1);
});

test("no sandbox pauses a machine that another one uses, and the last one pauses it", async () => {
  const root = await repository({ "a.txt": "a\n" });
  const worker = await bench.open({ upload: true }, ownerIn(root));
  await worker.list();
  const [, machine] = [...bench.fake.machines].at(-1) ?? [];
  const running = worker.exec({ command: "sleep 1; echo done" });
  const idle = await bench.open({ idleMs: 100 }, ownerIn(root));
  await idle.readFile("a.txt");
  const closed = await bench.open({}, ownerIn(root));
  await closed.readFile("a.txt");
  await closed.close();
  const machines = await bench.factory({ idleMs: 100 }).machines?.(root);
  expect((await machines?.changes(ownerIn(root)))?.patch).toBe("");
  expect(await running).toMatchObject({ exit_code: 0, stdout: "done\n" });
  expect(machine?.state).toBe("running");
  await worker.close();
  expect(machine?.state).toBe("paused");
  expect(await readdir(join(root, ".kit/machines/using"))).toEqual([]);
});

test("the patch contains mode changes and links, and a link that leads out is refused", async () => {
  const root = await repository({
    ".gitignore": "out/\n",
    "run.sh": "true\n",
    "a.txt": "a\n",
    "plain.sh": "x\n",
  });
  await chmod(join(root, "plain.sh"), 0o755);
  await symlink("a.txt", join(root, "old"));
  await symlink("a.txt", join(root, "turned"));
  const owner = ownerIn(root);
  const sandbox = await bench.open({ upload: true }, owner);
  const change =
    "chmod +x run.sh; chmod -x plain.sh; rm old; ln -sfn run.sh turned; mkdir -p dir out; ln -s ../a.txt 'dir/new ü'; ln -s none dangling; ln -s dir to-dir; ln -s a.txt out/ignored";
  await sandbox.exec({ command: change });
  const machines = await bench.factory({ upload: true }).machines?.(root);
  const changes = await machines?.changes(owner);
  expect(changes?.files).toEqual([
    { path: "dangling", change: "added" },
    { path: "dir/new ü", change: "added" },
    { path: "old", change: "deleted" },
    { path: "plain.sh", change: "modified" },
    { path: "run.sh", change: "modified" },
    { path: "to-dir", change: "added" },
    { path: "turned", change: "modified" },
  ]);
  await machines?.apply(changes ?? { patch: "" });
  expect((await lstat(join(root, "run.sh"))).mode & 0o111).not.toBe(0);
  expect((await lstat(join(root, "plain.sh"))).mode & 0o111).toBe(0);
  expect(await readlink(join(root, "dir/new ü"))).toBe("../a.txt");
  expect(await readlink(join(root, "turned"))).toBe("run.sh");
  await expect(lstat(join(root, "old"))).rejects.toMatchObject({ code: "ENOENT" });
});

test.each(["/etc/passwd", "../outside", "dir/../../x", ".git/hooks"])(
  "a patch with a link to %s is refused completely",
  async (target) => {
    const root = await repository({ "a.txt": "a\n" });
    const sandbox = await bench.open({ upload: true }, ownerIn(root));
    await sandbox.exec({ command: ["ln", "-s", target, "link"] });
    await sandbox.writeFile("a.txt", "b\n");
    const machines = await bench.factory({ upload: true }).machines?.(root);
    const changes = await machines?.changes(ownerIn(root));
    expect(changes?.files).toHaveLength(2);
    await expect(machines?.apply(changes ?? { patch: "" })).rejects.toMatchObject({
      code: "forbidden",
      message: expect.stringContaining(target),
    });
    expect(await readFile(join(root, "a.txt"), "utf8")).toBe("a\n");
  },
);
