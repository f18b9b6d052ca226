import { execFileSync } from "node:child_process";
import { chmodSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { createSourceReader, maxSourceBytes, type SourceReader } from "./source-reader.ts";

const textOf = (read: SourceReader, path: string): string | undefined => {
  const result = read(path);
  return result.kind === "bytes" ? Buffer.from(result.bytes).toString("utf8") : undefined;
};
const problemOf = (read: SourceReader, path: string): string | undefined => {
  const result = read(path);
  return result.kind === "problem" ? result.diagnostic.code : undefined;
};

test("files of any size up to the limit are read whole, one after another", async () => {
  await using repository = await createTemporaryRepository({ "a.md": "first", "empty.md": "" });
  const read = createSourceReader(repository.root);
  await repository.write("large.md", "x".repeat(1_000_000));
  expect(textOf(read, "a.md")).toBe("first");
  expect(textOf(read, "large.md")?.length).toBe(1_000_000);
  expect(textOf(read, "empty.md")).toBe("");
  expect(textOf(read, "a.md")).toBe("first");
});

test("the hash is that of the bytes", async () => {
  await using repository = await createTemporaryRepository({ "a.md": "abc" });
  const result = createSourceReader(repository.root)("a.md");
  expect(result.kind === "bytes" && result.hash).toBe("ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
});

test("a file that is not there is gone, not a problem", async () => {
  await using repository = await createTemporaryRepository();
  expect(createSourceReader(repository.root)("a.md").kind).toBe("gone");
});

test("a link inside of the project is read, one that leads out of it never", async () => {
  await using outside = await createTemporaryRepository({ "secret.md": "TOP-SECRET" });
  await using repository = await createTemporaryRepository({ "docs/a.md": "inside" });
  const { root } = repository;
  symlinkSync("docs/a.md", join(root, "in.md"));
  symlinkSync(join(outside.root, "secret.md"), join(root, "out.md"));
  symlinkSync("out.md", join(root, "chain.md"));
  symlinkSync(`${root}-sibling`, join(root, "sibling.md"));
  symlinkSync("self.md", join(root, "self.md"));
  symlinkSync("missing.md", join(root, "dangling.md"));
  symlinkSync("docs", join(root, "folder.md"));
  writeFileSync(`${root}-sibling`, "TOP-SECRET");
  const read = createSourceReader(root);
  expect(textOf(read, "in.md")).toBe("inside");
  expect(problemOf(read, "out.md")).toBe("outside_link");
  expect(problemOf(read, "chain.md")).toBe("outside_link");
  expect(problemOf(read, "sibling.md")).toBe("outside_link");
  expect(problemOf(read, "self.md")).toBe("link_loop");
  expect(problemOf(read, "dangling.md")).toBe("dangling_link");
  expect(problemOf(read, "folder.md")).toBe("not_a_file");
  execFileSync("rm", [`${root}-sibling`]);
});

test("a pipe, a folder and a file beyond the limit are problems, and nothing waits", async () => {
  await using repository = await createTemporaryRepository({ "folder/a.md": "" });
  const { root } = repository;
  execFileSync("mkfifo", [join(root, "pipe.md")]);
  writeFileSync(join(root, "huge.md"), "");
  truncateSync(join(root, "huge.md"), maxSourceBytes + 1);
  const read = createSourceReader(root);
  expect(problemOf(read, "pipe.md")).toBe("not_a_file");
  expect(problemOf(read, "folder")).toBe("not_a_file");
  expect(problemOf(read, "huge.md")).toBe("file_too_large");
});

test.skipIf(process.getuid?.() === 0)("a file without permission is a problem", async () => {
  await using repository = await createTemporaryRepository({ "a.md": "" });
  chmodSync(join(repository.root, "a.md"), 0);
  expect(problemOf(createSourceReader(repository.root), "a.md")).toBe("no_permission");
});
