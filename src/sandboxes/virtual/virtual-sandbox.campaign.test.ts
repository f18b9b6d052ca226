import { mkdtemp, readdir, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../../testing/test-folder.ts";
import { sandboxContract } from "../contract.suite.ts";
import { workspaceName } from "../host/workspace-name.ts";
import { virtual } from "./virtual-sandbox.ts";

const folder = testFolder(afterAll);

const owner = { agent: "tester", instance_id: "1", session: "default" };
let count = 0;

sandboxContract({
  name: "virtual",
  create() {
    count += 1;
    return virtual({ folder }).open({ ...owner, instance_id: String(count) });
  },
  reopen: () => virtual({ folder }).open({ ...owner, instance_id: String(count) }),
});

test("every agent, instance and session has a separate workspace below .kit/sandboxes", async () => {
  const root = await mkdtemp(join(folder, "project-"));
  const factory = virtual({ root });
  const owners = [
    owner,
    { ...owner, agent: "other" },
    { ...owner, instance_id: "2" },
    { ...owner, session: "two" },
    { ...owner, agent: "tester-1", instance_id: "" },
  ];
  for (const each of owners) {
    const sandbox = await factory.open(each);
    expect(await sandbox.list()).toEqual([]);
    await sandbox.writeFile("mine.txt", JSON.stringify(each));
  }
  for (const each of owners) {
    expect(await (await factory.open(each)).readFile("mine.txt")).toBe(JSON.stringify(each));
  }
  expect((await readdir(join(root, ".kit/sandboxes"))).length).toBe(owners.length);
});

test("any names yield one safe folder name, and different names never share one", () => {
  const hostile = fc.constantFrom(
    "..",
    ".",
    "",
    "../victim",
    "x/../victim",
    "/etc",
    "a\0b",
    "a\nb",
    "CON",
    "é",
    "É",
  );
  const text = fc.oneof(
    hostile,
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.constantFrom("a", "A", "a-b", "b"),
  );
  const owners = fc.record({ agent: text, instance_id: text, session: text });
  fc.assert(
    fc.property(owners, owners, (one, other) => {
      const name = workspaceName(one);
      expect(name).toMatch(/^[a-z0-9][a-z0-9-]{31,107}$/);
      const isSame = JSON.stringify(Object.values(one)) === JSON.stringify(Object.values(other));
      expect(name === workspaceName(other)).toBe(isSame);
    }),
    { numRuns: 2_000 },
  );
});

test("a new workspace starts with the given files, and an existing one is not changed", async () => {
  const factory = virtual({ folder, files: { "docs/a.md": "# A", "b.bin": new Uint8Array([1, 2]) } });
  const seeded = { ...owner, session: "seeded" };
  const opened = await Promise.all([factory.open(seeded), factory.open(seeded), factory.open(seeded)]);
  for (const sandbox of opened) expect(await sandbox.readFile("docs/a.md")).toBe("# A");
  await opened[0]?.rm("docs", { recursive: true });
  expect(await (await factory.open(seeded)).list()).toEqual([{ name: "b.bin", kind: "file" }]);
  expect((await readdir(folder)).filter((name) => name.startsWith("."))).toEqual([]);
});

test("files with invalid paths create no workspace", async () => {
  const factory = virtual({ folder, files: { "a.txt": "a", "../b.txt": "b" } });
  const wrong = { ...owner, session: "wrong" };
  await expect(factory.open(wrong)).rejects.toMatchObject({ code: "forbidden" });
  expect(await readdir(folder)).not.toContain(workspaceName(wrong));
});

test("commands have a home outside the workspace, and no variables of this process", async () => {
  const sandbox = await virtual({ folder, env: { LISTED: "yes" } }).open({ ...owner, session: "env" });
  const { stdout } = await sandbox.exec({ command: ["env"] });
  const environment = new Map(stdout.split("\n").map((line) => line.split("=", 2) as [string, string]));
  expect(environment.get("LISTED")).toBe("yes");
  expect(environment.get("HOME")).not.toBe(process.env.HOME);
  expect(environment.has("USER")).toBe(false);
  await sandbox.exec({ command: 'echo x > "$HOME/.settings"; echo y > "$TMPDIR/t"' });
  expect(await sandbox.list()).toEqual([]);
});

test("removing a workspace removes its home too, and it opens empty again", async () => {
  const factory = virtual({ folder });
  const removedOwner = { ...owner, session: "gone" };
  const sandbox = await factory.open(removedOwner);
  await sandbox.writeFile("a.txt", "a");
  await sandbox.exec({ command: "true" });
  const before = (await readdir(folder)).length;
  await factory.remove?.(removedOwner);
  await factory.remove?.(removedOwner);
  expect((await readdir(folder)).length).toBe(before - 2);
  expect(await (await factory.open(removedOwner)).list()).toEqual([]);
});

test("a link instead of a workspace folder is refused", async () => {
  const planted = { ...owner, session: "planted" };
  await symlink(tmpdir(), join(folder, workspaceName(planted)));
  await expect(virtual({ folder }).open(planted)).rejects.toMatchObject({ code: "unavailable" });
});

test("Git finds no repository around a workspace", async ({ skip }) => {
  const project = await mkdtemp(join(folder, "repository-"));
  const sandbox = await virtual({ folder: join(project, "below"), isolation: "off" }).open(owner);
  const outer = await sandbox.exec({ command: ["git", "init", "--quiet", project] });
  skip(outer.exit_code === 127, "There is no Git.");
  expect(await sandbox.exec({ command: ["git", "rev-parse", "--git-dir"] })).toMatchObject({
    exit_code: 128,
  });
  await sandbox.exec({ command: ["git", "init", "--quiet"] });
  expect(await sandbox.exec({ command: ["git", "rev-parse", "--git-dir"] })).toMatchObject({ exit_code: 0 });
});
