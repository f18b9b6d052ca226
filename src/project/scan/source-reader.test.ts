import { execFileSync } from "node:child_process";
import { chmodSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { createSourceReader, decodeText, maxSourceBytes, type SourceReader } from "./source-reader.ts";

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

const decode = (...bytes: readonly number[]) => decodeText(Uint8Array.from(bytes), "a.md");
const codes = (bytes: Uint8Array): unknown[] =>
  decodeText(bytes, "a.md").diagnostics.map(({ code, line }) => [code, line]);
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

test("any text comes back as it was written", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      fc.pre(!text.startsWith("\ufeff") && !text.includes("\0"));
      expect(decodeText(utf8(text), "a.md")).toEqual({ text, diagnostics: [] });
    }),
  );
});

test("a byte order mark is dropped", () => {
  expect(decodeText(utf8("\ufeff# A\n"), "a.md")).toEqual({ text: "# A\n", diagnostics: [] });
});

test("UTF-16 of either byte order is read and reported", () => {
  expect(decode(0xff, 0xfe, 0x41, 0, 0x0a, 0)).toMatchObject({
    text: "A\n",
    diagnostics: [{ code: "utf16" }],
  });
  expect(decode(0xfe, 0xff, 0, 0x41)).toMatchObject({ text: "A", diagnostics: [{ code: "utf16" }] });
});

test("bytes that are no UTF-8 are replaced, with the line of the first", () => {
  const bytes = Uint8Array.from([...utf8("one\r\ntwo\rthree "), 0xe9, 0x0a, 0x80]);
  expect(decodeText(bytes, "a.md").text).toBe("one\r\ntwo\rthree \ufffd\n\ufffd");
  expect(codes(bytes)).toEqual([["not_utf8", 3]]);
});

test("NUL characters are replaced, and offsets stay what they were", () => {
  expect(decodeText(utf8("a\n\0b\0"), "a.md").text).toBe("a\n\ufffdb\ufffd");
  expect(codes(utf8("a\n\0b"))).toEqual([["nul", 2]]);
});

test("no bytes make it throw", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      expect(typeof decodeText(bytes, "a.md").text).toBe("string");
    }),
  );
});
