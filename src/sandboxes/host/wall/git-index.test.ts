import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { isSafeName } from "../../../base/git-names.ts";
import { testFolder } from "../../../testing/test-folder.ts";
import { mergeIndexes, readGitIndex, withoutGitlinks, writeGitIndex } from "./git-index.ts";
import { isSound } from "./git-index-names.ts";

const folder = testFolder(afterAll);

const blob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
const long = `long/${"x".repeat(5_000)}`;
const rows = [
  [`100644 ${blob} 0`, "a"],
  [`100755 ${blob} 0`, "b/b c"],
  [`100644 ${blob} 1`, "conflict"],
  [`100644 ${blob} 2`, "conflict"],
  [`120000 ${blob} 0`, "ünï\tcode"],
  [`160000 ${blob} 0`, "zsub"],
  [`100644 ${blob} 0`, "zsub-next"],
  [`100644 ${blob} 0`, long],
] as const;

let count = 0;
function createIndex(version: number, format: "sha1" | "sha256" = "sha1") {
  count += 1;
  const root = join(folder, String(count));
  const git = (args: readonly string[], input = ""): string =>
    execFileSync("git", ["-c", "core.protectNTFS=false", ...args], {
      cwd: root,
      input,
      encoding: "utf8",
      stdio: ["pipe", "pipe", "pipe"],
    });
  execFileSync("git", ["init", "--quiet", `--object-format=${format}`, root]);
  const lines = rows.map(
    ([row, path]) => `${format === "sha1" ? row : row.replace(blob, blob.padEnd(64, "0"))}\t${path}\0`,
  );
  git(["update-index", "-z", "--index-info"], lines.join(""));
  git(["update-index", "--index-version", String(version)]);
  if (version > 2) git(["update-index", "--skip-worktree", "a"]);
  const file = join(root, ".git/index");
  return {
    read: () => readGitIndex(readFileSync(file), format === "sha1" ? 20 : 32),
    write: (bytes: Buffer) => writeFileSync(file, bytes),
    entries: () => git(["ls-files", "--stage", "-z"]),
    git,
  };
}

for (const [version, format] of [
  [2, "sha1"],
  [3, "sha1"],
  [4, "sha1"],
  [4, "sha256"],
  [2, "sha256"],
] as const) {
  test(`an index of version ${version} with ${format} is read and written as Git has it, without the gitlinks`, () => {
    const { read, write, entries } = createIndex(version, format);
    const before = entries();
    const index = read();
    if (index === undefined) throw new Error("The index was not read.");
    expect(index.gitlinks).toEqual(new Set(["zsub"]));
    expect(isSound(index)).toBe(true);
    write(writeGitIndex(index, format === "sha1" ? 20 : 32));
    expect(entries()).toBe(before);
    write(
      writeGitIndex(
        withoutGitlinks(index, () => false),
        format === "sha1" ? 20 : 32,
      ),
    );
    expect(entries()).toBe(
      before
        .split("\0")
        .filter((line) => !line.startsWith("160000"))
        .join("\0"),
    );
  });
}

test("a merged index holds the changes of both, and of one name that of the other Git", () => {
  const { read, write, entries, git } = createIndex(4);
  const base = read();
  const other = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
  git(
    ["update-index", "-z", "--index-info"],
    `100644 ${other} 0\ta\x00100644 ${other} 0\tours\x00${"0".repeat(6)} ${blob} 0\tzsub\0`,
  );
  const ours = read();
  if (base === undefined || ours === undefined) throw new Error("The index was not read.");
  write(writeGitIndex(base, 20));
  git(["update-index", "-z", "--index-info"], `100755 ${other} 0\ta\x00100644 ${other} 0\ttheirs\0`);
  const theirs = read();
  if (theirs === undefined) throw new Error("The index was not read.");
  write(writeGitIndex(mergeIndexes(base, ours, theirs), 20));
  const merged = entries();
  expect(merged).toContain(`100755 ${other} 0\ta\0`);
  expect(merged).toMatch(/\tours\0.*\ttheirs\0/);
  expect(merged).not.toContain("zsub\0");
});

test("a damaged index, a split one and one whose names have other lengths are refused", () => {
  const { read, write, git } = createIndex(2);
  const index = read();
  if (index === undefined) throw new Error("The index was not read.");
  const bytes = writeGitIndex(index, 20);
  for (let cut = 0; cut < bytes.length - 20; cut += 7)
    expect(readGitIndex(bytes.subarray(0, cut), 20)).toBe(undefined);
  const shortened = Buffer.from(bytes);
  shortened.writeUInt16BE(5, 12 + 60);
  expect(readGitIndex(shortened, 20)).toBe(undefined);
  write(bytes);
  git(["update-index", "--split-index"]);
  expect(read()).toBe(undefined);
});

test("names that lead to a repository or out of the work tree on any system are not safe", () => {
  const unsafe = [
    ...["", "/a", "a/", "a//b", ".", "..", "a/../b", "../a", "./a", "a\0"],
    ...[
      ".git",
      "a/.GIT/hooks/x",
      "GIT~1/x",
      ".git./x",
      ".git .. /x",
      ".git:x/y",
      ".g\u200cit/x",
      "a\\.git\\x",
    ],
  ];
  expect(unsafe.filter((name) => isSafeName(name))).toEqual([]);
  const safe = [
    "a",
    ".gitignore",
    ".github/x",
    "a..b",
    "...",
    "git",
    ".gitx/a",
    "a:b",
    "c\\d",
    ".gitmodules",
    "ünï",
  ];
  expect(safe.filter((name) => !isSafeName(name))).toEqual([]);
  expect([".gitmodules", "a/GITMOD~1", "gi7eba~1"].filter((name) => isSafeName(name, true))).toEqual([]);
});

test("an index with unsafe, unsorted, repeated or clashing names, or unknown modes, is not sound", () => {
  const index = (...rows: readonly (readonly [name: string, mode?: number, stage?: number])[]) => ({
    entries: rows.map(([name, mode = 0o100644, stage = 0]) => ({
      head: Buffer.alloc(62),
      name: Buffer.from(name),
      mode,
      stage,
    })),
    gitlinks: new Set<string>(),
    isSparse: false,
  });
  const unsound = [
    index(["a"], ["b/../../c"]),
    index(["b"], ["a"]),
    index(["a"], ["a"]),
    index(["a"], ["a", 0o100644, 2]),
    index(["a", 0o100644, 2], ["a", 0o100644, 1]),
    index(["a", 0o120000], ["a-b"], ["a/b"]),
    index(["a", 0o160000], ["a-b"], ["a/b/c/d"]),
    index(["a", 0o100666]),
    index(["a", 0o040000]),
    index([".gitmodules", 0o120000]),
  ];
  expect(unsound.filter(isSound)).toEqual([]);
  const sound = [
    index(["a", 0o100644, 1], ["a", 0o100755, 2], ["a/b", 0o100644, 3], ["ab/c/d"], ["ab/c/e"], ["ab/d"]),
    index(["a/", 0o040000], ["b", 0o120000]),
  ];
  expect(sound.map(isSound)).toEqual([true, true]);
});
