import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, symlinkSync } from "node:fs";
import { mkdir, readdir, readFile, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { rounds } from "../../../testing/campaign.suite.ts";
import { local } from "../../local/local-sandbox.ts";
import { sealArguments } from "./bubblewrap.ts";
import { findWall } from "./find-wall.ts";
import { createFolder, openWalled, wallTest } from "./walled.suite.ts";

const folder = await createFolder();

/** Swaps two names again and again, until a file says so. */
const swap = `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
one, other, stop = [name.encode() for name in sys.argv[1:]]
while not os.path.exists(stop):
    for _ in range(50): libc.renameat2(-100, one, -100, other, 2)
`;

function canSwap(): boolean {
  try {
    execFileSync("python3", ["-c", "import ctypes; ctypes.CDLL(None).renameat2"]);
    return true;
  } catch {
    return false;
  }
}

async function createVictim(name: string): Promise<string> {
  const victim = join(folder, name);
  await mkdir(join(victim, "workflows"), { recursive: true });
  await writeFile(join(victim, "secret"), "secret");
  return victim;
}

wallTest("a command has no descriptor of the mounts, and sees paths with special characters", async () => {
  const root = join(folder, "a b\\c\td");
  await mkdir(join(root, ".kit x/y z"), { recursive: true });
  const { run } = await openWalled(folder, { root });
  const { stdout, stderr } = await run("readlink /proc/self/fd/*; touch new; touch '.kit x/y z/new'; ls", {
    access: { write: true, readOnlyPaths: [".kit x/y z"] },
  });
  expect(stdout).not.toContain(folder);
  expect(stdout).toMatch(/\nnew\n$/);
  expect(stderr).toContain("Read-only file system");
});

wallTest("a root that was replaced by a link is refused, for commands and files", async () => {
  const victim = await createVictim("victim-root");
  const { root, run, sandbox } = await openWalled(folder, { root: join(folder, "outer/inner") });
  expect((await run("pwd")).stdout).toBe(`${root}\n`);
  await rename(root, join(folder, "outer/old"));
  await symlink(victim, root);
  for (const write of [false, true])
    await expect(run("cat secret", { access: { write } })).rejects.toMatchObject({ code: "unavailable" });
  await expect(sandbox.readFile("secret")).rejects.toMatchObject({ code: "unavailable" });
  await expect(sandbox.writeFile("new", "")).rejects.toMatchObject({ code: "unavailable" });
  expect((await readdir(victim)).sort()).toEqual(["secret", "workflows"]);
});

wallTest("a mount that a link led elsewhere stops the command before it starts", async () => {
  const { root } = await openWalled(folder);
  mkdirSync(join(root, ".github/workflows"), { recursive: true });
  const victim = await createVictim("victim-link");
  const { sandbox } = await openWalled(folder, { root });
  const running = sandbox.exec({
    command: "cat .github/secret; echo out > .github/new; echo ran",
    access: { write: true, readOnlyPaths: [".github/workflows"] },
  });
  renameSync(join(root, ".github"), join(root, "old"));
  symlinkSync(victim, join(root, ".github"));
  const outcome = await running.then(
    ({ stdout }) => stdout,
    (error: unknown) => error,
  );
  if (typeof outcome === "string") expect(outcome).not.toContain("secret");
  else expect(outcome).toMatchObject({ code: "unavailable" });
  expect((await readdir(victim)).sort()).toEqual(["secret", "workflows"]);
});

wallTest("bubblewrap creates no mount point outside for a link", async () => {
  const { root } = await openWalled(folder);
  const found = await findWall();
  if (found.wall !== "bubblewrap") return;
  await symlink(`/oldroot${folder}/created`, join(root, "package.json"));
  const plain = ["--ro-bind", "/", "/", "--bind", root, root];
  const blocked = ["--ro-bind", "/etc/passwd", join(root, "package.json"), "--", "/bin/true"];
  execFileSync(found.program, [...plain, ...blocked]);
  expect(existsSync(join(folder, "created"))).toBe(true);
  await rm(join(folder, "created"));
  expect(found.canSeal).toBe(true);
  expect(() =>
    execFileSync(found.program, [...plain, ...sealArguments(["/"]), ...blocked], { stdio: "ignore" }),
  ).toThrow();
  expect(existsSync(join(folder, "created"))).toBe(false);
});

const swaps = rounds(30, 400);

for (const overlap of ["the same root", "a root below the other"] as const) {
  wallTest(
    `a command that swaps folders and links leads no mount of others outside, with ${overlap}`,
    async ({ skip }) => {
      skip(!canSwap(), "python3 without renameat2: the swaps are not tested.");
      const victim = await createVictim(`victim-${overlap.length}`);
      const { root, run } = await openWalled(folder);
      const inner = overlap === "the same root" ? root : join(root, "inner");
      await mkdir(inner, { recursive: true });
      await writeFile(join(root, "swap.py"), swap);
      const prefix = overlap === "the same root" ? "" : "inner/";
      // The names do not exist when this command starts, so it keeps none of them.
      const attacker = run(
        `mkdir -p ${prefix}.github/workflows; ln -s ${victim} ${prefix}link; touch ready; exec python3 swap.py ${prefix}.github ${prefix}link stop`,
        { access: { write: true, readOnlyPaths: [".github/workflows"] }, timeoutMs: 120_000 },
      );
      while (!existsSync(join(root, "ready"))) await new Promise((next) => setTimeout(next, 10));
      // Another sandbox object, as another process has one.
      const other = await local({ root: inner }).open({ agent: "b", instance_id: "b", session: "b" });
      let ran = 0;
      for (let round = 0; round < swaps; round += 1) {
        const result = await other
          .exec({
            command:
              "cat .github/secret link/secret 2>/dev/null; touch .github/new link/new 2>/dev/null; echo ran",
            access: { write: true, readOnlyPaths: [".github/workflows"] },
          })
          .catch(() => undefined);
        if (result !== undefined) ran += 1;
        expect(result?.stdout ?? "").not.toContain("secret");
      }
      await writeFile(join(root, "stop"), "");
      await attacker;
      await other.close();
      expect(ran).toBeGreaterThan(0);
      expect((await readdir(victim)).sort()).toEqual(["secret", "workflows"]);
      expect(await readFile(join(victim, "secret"), "utf8")).toBe("secret");
      expect(await readdir(join(await realpath(victim), "workflows"))).toEqual([]);
      await rm(root, { recursive: true });
    },
  );
}

wallTest("a command starts in its folder however many paths are mounted", async () => {
  const { root, run } = await openWalled(folder);
  const readOnlyPaths = Array.from({ length: 100 }, (_, index) => `file-${index}`);
  for (const path of readOnlyPaths) await writeFile(join(root, path), "");
  await mkdir(join(root, "sub"));
  const { stdout } = await run("pwd", { cwd: "sub", access: { write: true, readOnlyPaths } });
  expect(stdout).toBe(`${root}/sub\n`);
});

wallTest(
  "a folder for temporary files in the workspace is refused, because commands could replace what is in it",
  async () => {
    const walled = await openWalled(folder);
    const outside = process.env.TMPDIR;
    await mkdir(join(walled.root, "t"));
    process.env.TMPDIR = join(walled.root, "t");
    try {
      await expect(walled.run("true")).rejects.toMatchObject({ code: "unavailable" });
    } finally {
      if (outside === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = outside;
    }
  },
);
