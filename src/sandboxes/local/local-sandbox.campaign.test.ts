import { execFileSync } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../../testing/test-folder.ts";
import { sandboxContract } from "../contract.suite.ts";
import type { ExecResult, Sandbox } from "../contract.ts";
import { local } from "./local-sandbox.ts";
import type { LocalOptions } from "./open-local.ts";

const folder = testFolder(afterAll);

const owner = { agent: "tester", instance_id: "1", session: "default" };
let count = 0;

async function openNew(
  options: Omit<LocalOptions, "root"> = {},
): Promise<{ sandbox: Sandbox; root: string }> {
  count += 1;
  const root = join(folder, String(count));
  await mkdir(root);
  return { root, sandbox: await local({ root, ...options }).open(owner) };
}

sandboxContract({
  name: "local",
  create: async () => (await openNew()).sandbox,
  reopen: () => local({ root: join(folder, String(count)) }).open(owner),
});

sandboxContract({
  name: "local without isolation",
  create: async () => (await openNew({ isolation: "off" })).sandbox,
});

test("the sandbox is the real folder, which all sessions share", async () => {
  const { sandbox, root } = await openNew();
  await writeFile(join(root, "a.txt"), "alpha");
  const other = await local({ root }).open({ ...owner, session: "other" });
  expect([await sandbox.readFile("a.txt"), await other.readFile("a.txt")]).toEqual(["alpha", "alpha"]);
});

test("an absolute path in the workspace is accepted", async () => {
  const { sandbox, root } = await openNew();
  await sandbox.writeFile("sub/a.txt", "alpha");
  const absolute = (await sandbox.exec({ command: "pwd", cwd: "sub" })).stdout.trim();
  expect(absolute).toBe(join(root, "sub"));
  expect(await sandbox.at("sub").readFile(`${absolute}/a.txt`)).toBe("alpha");
  expect((await sandbox.glob(`${root}/**/*.txt`)).paths).toEqual(["sub/a.txt"]);
  expect(await sandbox.list(root)).toEqual([{ name: "sub", kind: "directory" }]);
  for (const path of [`${root}-evil/x`, `${root}/../x`, `${root}/sub/../../x`]) {
    const refused = await sandbox.readFile(path).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "forbidden" });
    expect(String(refused)).not.toContain(folder);
  }
});

test("commands get the basic variables of this process, and the listed ones", async () => {
  process.env.KIT_TEST_LISTED = "listed";
  process.env.KIT_TEST_OTHER = "other";
  try {
    const envOf = async (env: NonNullable<LocalOptions["env"]>): Promise<string> =>
      (await (await openNew({ env, isolation: "off" })).sandbox.exec({ command: ["env"] })).stdout;
    const names = await envOf(["KIT_TEST_LISTED", "KIT_TEST_UNSET"]);
    expect(names).toContain("KIT_TEST_LISTED=listed");
    expect(names).toContain(`HOME=${process.env.HOME}`);
    expect(names).not.toContain("KIT_TEST_OTHER");
    const values = await envOf({ KIT_TEST_OTHER: "mine", KIT_TEST_UNSET: undefined });
    expect(values).toContain("KIT_TEST_OTHER=mine");
    expect(values).not.toMatch(/KIT_TEST_(LISTED|UNSET)/);
  } finally {
    delete process.env.KIT_TEST_LISTED;
    delete process.env.KIT_TEST_OTHER;
  }
});

test("commands find no program in the workspace, even if its folders are on the search path", async () => {
  const { sandbox, root } = await openNew();
  await sandbox.writeFile("bin/tool", "#!/bin/sh\ntouch PWNED\n");
  await sandbox.exec({ command: "chmod 755 bin/tool" });
  await symlink(join(root, "bin"), join(folder, `elsewhere-${count}`));
  const PATH = [
    join(root, "bin"),
    `${root}/./bin/..//bin`,
    join(folder, `elsewhere-${count}`),
    "bin",
    "",
  ].join(":");
  for (const command of [["tool"], "tool"]) {
    expect(await sandbox.exec({ command, env: { PATH } })).toMatchObject({ exit_code: 127 });
  }
  expect(await sandbox.exists("PWNED")).toBe(false);
});

test("a search follows the ignore rules of the repository around the root", async () => {
  const { sandbox, root } = await openNew();
  for (const [file, text] of Object.entries({
    ".git/info/exclude": "private.txt\n",
    ".gitignore": "*.log\n",
    "api/a.txt": "a",
    "api/b.log": "b",
    "api/private.txt": "p",
  })) {
    await sandbox.upload(file, new TextEncoder().encode(text));
  }
  const api = await local({ root: join(root, "api") }).open(owner);
  expect((await api.glob("**")).paths).toEqual(["a.txt"]);
});

test.skipIf(process.platform !== "linux").each([
  ["setsid", "auto"],
  ["setsid", "off"],
  ["env -i setsid", "auto"],
  ["env -i setsid", "off"],
  ["env -i setsid -f", "off"],
  ["env -i setsid setsid", "off"],
] as const)(
  "a daemon that left its group by %s ends with its command (isolation: %s)",
  async (launcher, isolation) => {
    const { root } = await openNew();
    const sandbox = await local({ root, isolation }).open(owner);
    const daemon = "while :; do echo beat >> beats; sleep 0.1; done";
    const command = `${launcher} sh -c '${daemon}' >/dev/null 2>&1 & until [ -s beats ]; do sleep 0.1; done; echo done`;
    expect(await sandbox.exec({ command })).toMatchObject({ exit_code: 0, stdout: "done\n" });
    const { size } = await sandbox.stat("beats");
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect((await sandbox.stat("beats")).size).toBe(size);
  },
);

test("the error for a missing folder does not contain its path", async () => {
  for (const root of [join(folder, "none"), import.meta.filename]) {
    const refused = await local({ root })
      .open(owner)
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "unavailable" });
    expect(String(refused)).not.toContain(folder);
  }
});

test("Git does not treat a folder as a repository because of its file names", async ({ skip }) => {
  const { sandbox, root } = await openNew();
  const git = (...args: readonly string[]): Promise<ExecResult> =>
    sandbox.exec({ command: ["git", ...args] });
  const [major = 0, minor = 0] = (await git("version")).stdout.match(/\d+/g)?.map(Number) ?? [];
  skip(major < 2 || (major === 2 && minor < 38), "This Git does not know safe.bareRepository.");
  execFileSync("git", ["init", "--quiet", root]);
  await sandbox.mkdir("sub/objects");
  await sandbox.mkdir("sub/refs");
  await sandbox.writeFile("sub/HEAD", "ref: refs/heads/main\n");
  const settings = ["bare = false", "worktree = ..", `fsmonitor = "touch '${root}/ran'; true"`];
  await sandbox.writeFile("sub/config", `[core]\n${settings.join("\n")}\n`);
  expect(await git("-C", "sub", "status")).toMatchObject({ exit_code: 128 });
  expect(await sandbox.exists("ran")).toBe(false);
  expect(await git("status")).toMatchObject({ exit_code: 0 });
});
