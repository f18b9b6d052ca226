import { execFile } from "node:child_process";
import { chmod, link, readdir, readFile, readlink, rename, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { KitError } from "../../base/kit-error.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { readFileInside, removeFileInside, writeFileInside } from "./write-file.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

async function write(root: string, path: string, content = "KIT-WROTE"): Promise<string> {
  return await writeFileInside({ root, readOnly: false }, { path, content });
}

async function read(root: string, path: string): Promise<string | undefined> {
  const content = await readFileInside(root, { path });
  return content && new TextDecoder().decode(content);
}

// safe-writes#1.1
test("a write creates folders, replaces the whole file and keeps its mode", async () => {
  await using folder = await createTemporaryRepository({ "a.sh": "old" });
  await chmod(join(folder.root, "a.sh"), 0o751);
  expect(await write(folder.root, "a.sh", "new")).toBe("a.sh");
  expect(await readFile(join(folder.root, "a.sh"), "utf8")).toBe("new");
  expect((await stat(join(folder.root, "a.sh"))).mode & 0o777).toBe(0o751);
  await write(folder.root, "日本語/deep/🚀 naïve.md");
  expect(await read(folder.root, "日本語/deep/🚀 naïve.md")).toBe("KIT-WROTE");
  expect((await readdir(folder.root)).sort()).toEqual(["a.sh", "日本語"]);
});

test("a link inside the project is followed and stays a link", async () => {
  await using folder = await createTemporaryRepository({ "AGENTS.md": "old", "docs/x.md": "old" });
  await symlink("AGENTS.md", join(folder.root, "CLAUDE.md"));
  await symlink(join(folder.root, "docs"), join(folder.root, "d"));
  expect(await write(folder.root, "CLAUDE.md")).toBe("AGENTS.md");
  expect(await write(folder.root, "d/x.md")).toBe("docs/x.md");
  expect(await readlink(join(folder.root, "CLAUDE.md"))).toBe("AGENTS.md");
  expect(await read(folder.root, "CLAUDE.md")).toBe("KIT-WROTE");
});

test("the other name of a hard link keeps its content", async () => {
  await using folder = await createTemporaryRepository({ "a.md": "old" });
  await link(join(folder.root, "a.md"), join(folder.root, "b.md"));
  await write(folder.root, "a.md");
  expect(await read(folder.root, "b.md")).toBe("old");
});

// safe-writes#2.2, safe-writes#2.3
test("special files, folders and read-only projects are refused at once", async () => {
  await using folder = await createTemporaryRepository({ "sub/x.md": "" });
  await promisify(execFile)("mkfifo", [join(folder.root, "pipe")]);
  for (const [path, code] of [
    ["pipe", "forbidden"],
    ["sub", "invalid_request"],
  ] as const) {
    await expect(write(folder.root, path)).rejects.toMatchObject({ code });
    await expect(read(folder.root, path)).rejects.toMatchObject({ code });
  }
  const readOnly = writeFileInside({ root: folder.root, readOnly: true }, { path: "a.md", content: "x" });
  await expect(readOnly).rejects.toMatchObject({ code: "forbidden" });
  expect(await readdir(folder.root)).toEqual(["pipe", "sub"]);
});

// safe-writes#1.2
test("a file that changed since it was read is a conflict and stays unchanged", async () => {
  await using folder = await createTemporaryRepository({ "a.md": "theirs" });
  const target = { root: folder.root, readOnly: false };
  const attempts = [
    { path: "a.md", content: "ours", expected: bytes("read before") },
    { path: "a.md", content: "ours", expected: null },
    { path: "gone.md", content: "ours", expected: bytes("was there") },
  ];
  for (const attempt of attempts) {
    await expect(writeFileInside(target, attempt)).rejects.toMatchObject({ code: "conflict" });
  }
  expect(await readdir(folder.root)).toEqual(["a.md"]);
  expect(await read(folder.root, "a.md")).toBe("theirs");
  await writeFileInside(target, { path: "a.md", content: "ours", expected: bytes("theirs") });
  await writeFileInside(target, { path: "new.md", content: "ours", expected: null });
  expect([await read(folder.root, "a.md"), await read(folder.root, "new.md")]).toEqual(["ours", "ours"]);
});

// safe-writes#1.3
test("an aborted write leaves nothing behind", async () => {
  await using folder = await createTemporaryRepository({ "a.md": "old" });
  const reason = new Error("enough");
  const options = { path: "a.md", content: "new", signal: AbortSignal.abort(reason) };
  await expect(writeFileInside({ root: folder.root, readOnly: false }, options)).rejects.toBe(reason);
  expect(await readdir(folder.root)).toEqual(["a.md"]);
});

// safe-writes#2.1
test("a folder that is swapped for a link out of the project lets nothing in or out", async () => {
  await using folder = await createTemporaryRepository({
    "root/race/f.txt": "inside",
    "outside/f.txt": "TOP-SECRET",
  });
  const root = join(folder.root, "root");
  await symlink("../outside", join(root, "evil"));
  let swapping = true;
  const move = async (from: string, to: string): Promise<void> => {
    await rename(join(root, from), join(root, to)).catch(async () => {
      // A write has just created the folder anew, and may be busy in it: the next attempt will do.
      await rm(join(root, to), { recursive: true }).catch(() => undefined);
      await move(from, to);
    });
  };
  // Each state lasts for now fewer, now more turns: attempts of one rhythm would meet the same state for ever.
  const stay = async (): Promise<void> => {
    for (let turns = Math.random() * 8; turns > 1; turns -= 1) await setImmediate();
  };
  const swap = (async () => {
    while (swapping) {
      await move("race", "aside");
      await move("evil", "race");
      await stay();
      await move("race", "evil");
      await move("aside", "race");
      await stay();
    }
  })();
  const outcomes = new Set<string | undefined>();
  const metBoth = (): boolean => outcomes.has("inside") && outcomes.has("forbidden");
  for (let round = 0; round < 1500 || !metBoth(); round += 1) {
    outcomes.add(await read(root, "race/f.txt").catch((error: KitError) => error.code));
    if (round % 5 === 0) await write(root, "race/g.txt").catch(() => undefined);
  }
  swapping = false;
  await swap;
  expect(outcomes).not.toContain("TOP-SECRET");
  expect(await readdir(join(folder.root, "outside"))).toEqual(["f.txt"]);
});

test("no write and no removal reaches a folder of Git or of kit, by its name or through a link", async () => {
  await using folder = await createTemporaryRepository({
    ".git/HEAD": "x",
    ".kit/a": "x",
    "sub/.git/a": "x",
  });
  await symlink(".git", join(folder.root, "git"));
  await symlink(".kit/a", join(folder.root, "record.md"));
  const target = { root: folder.root, readOnly: false };
  const paths = [
    ".git/hooks/pre-commit",
    "git/hooks/pre-commit",
    ".GIT/a",
    "record.md",
    ".kit/b",
    "sub/.git/a",
  ];
  for (const path of paths) {
    await expect(write(folder.root, path)).rejects.toMatchObject({
      code: "forbidden",
      message: expect.stringContaining("belongs to Git or to kit itself"),
    });
  }
  for (const path of ["git/HEAD", "record.md"])
    await expect(removeFileInside(target, { path, expected: bytes("x") })).rejects.toThrow("is a link to .");
  expect(await readdir(join(folder.root, ".git"))).toEqual(["HEAD"]);
  expect(await write(folder.root, ".github/a.md")).toBe(".github/a.md");
});
