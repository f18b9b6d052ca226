import { execFile } from "node:child_process";
import { chmod, mkdir, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";
import { findFiles } from "./find-files.ts";

const markdown = { accepts: (name: string) => name.endsWith(".md") };

test("files are found through links that stay in the project, sorted by name", async () => {
  await using folder = await createTemporaryRepository({
    "s/b.md": "",
    "s/a/c.md": "",
    "s/a/no.txt": "",
    "elsewhere/d.md": "",
    "e.md": "",
  });
  await symlink("../elsewhere", join(folder.root, "s/link"));
  await symlink("../e.md", join(folder.root, "s/e.md"));
  expect(await findFiles(folder.root, "s", markdown)).toMatchObject({
    paths: ["s/a/c.md", "s/b.md", "s/e.md", "s/link/d.md"],
    unusable: [],
  });
  expect((await findFiles(folder.root, "s", { ...markdown, nested: false })).paths).toEqual([
    "s/b.md",
    "s/e.md",
  ]);
  expect((await findFiles(folder.root, "nothing", markdown)).unusable).toEqual([]);
});

test("unusable entries are reported with their reason, and circles of links end", async () => {
  await using folder = await createTemporaryRepository({ "s/a/b.md": "", "other/x.txt": "" });
  const at = (path: string): string => join(folder.root, path);
  await symlink(tmpdir(), at("s/out"));
  await symlink("/etc/hostname", at("s/out.md"));
  await symlink("nowhere", at("s/dangling"));
  await symlink("self", at("s/self"));
  await symlink("two", at("s/one"));
  await symlink("one", at("s/two"));
  await symlink(".", at("s/a/here"));
  await symlink("../..", at("s/a/root"));
  await symlink("a", at("s/z"));
  await promisify(execFile)("mkfifo", [at("s/pipe.md")]);
  await symlink("s", at("way"));
  const { paths, unusable } = await findFiles(folder.root, "s", markdown);
  expect(paths).toEqual(["s/a/b.md"]);
  expect(Object.fromEntries(unusable.map(({ path, reason }) => [path, reason]))).toEqual({
    "s/out": "leads out of the project",
    "s/out.md": "leads out of the project",
    "s/dangling": "is a link to a missing file",
    "s/self": "is a link to itself",
    "s/one": "is a link to itself",
    "s/two": "is a link to itself",
    "s/a/here": "is s/a under another name",
    "s/a/root": "is a link to a folder that contains it",
    "s/z": "is s/a under another name",
    "s/pipe.md": "is not a regular file",
  });
  expect((await findFiles(folder.root, "way", markdown)).paths).toEqual(["way/a/b.md"]);
});

test.each([
  ["a link out", tmpdir(), "leads out of the project"],
  ["a link to nothing", "nothing", "is a link to a missing file"],
  ["a link to itself", "s", "is a link to itself"],
  ["a link to the project", ".", "is a link to a folder that contains it"],
  ["a link to a file", "a.md", "is not a folder"],
])("a folder that is %s is told", async (_name, target, reason) => {
  await using folder = await createTemporaryRepository({ "a.md": "" });
  await symlink(target, join(folder.root, "s"));
  expect(await findFiles(folder.root, "s", markdown)).toMatchObject({
    paths: [],
    unusable: [{ path: "s", reason }],
  });
});

test("folders that link to each other many times over are each read once", async () => {
  await using folder = await createTemporaryRepository();
  for (let level = 0; level < 40; level += 1) {
    await mkdir(join(folder.root, `s/${level}`), { recursive: true });
    for (const name of ["a", "b"]) await symlink(`../${level + 1}`, join(folder.root, `s/${level}/${name}`));
  }
  const { unusable } = await findFiles(folder.root, "s", markdown);
  expect(unusable.length).toBeGreaterThan(39);
});

test.skipIf(process.getuid?.() === 0)("a folder without permission is reported", async () => {
  await using folder = await createTemporaryRepository({ "s/a/b.md": "" });
  await chmod(join(folder.root, "s/a"), 0);
  expect((await findFiles(folder.root, "s", markdown)).unusable).toEqual([
    { path: "s/a", reason: "cannot be read: permission denied" },
  ]);
  await chmod(join(folder.root, "s/a"), 0o755);
});
