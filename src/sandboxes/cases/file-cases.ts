import assert from "node:assert/strict";
import { refused, type SandboxCheck } from "./sandbox-check.ts";

/** The promises of every sandbox about files and folders. */
export const fileCases: Readonly<Record<string, SandboxCheck>> = {
  "reading returns the text and bytes that were written, in folders that the write created": async (
    sandbox,
  ) => {
    const text = "\uFEFFnaïve 🚀\r\nline two\u2028\n";
    await sandbox.writeFile("日本語/deep/🚀 naïve.md", text);
    assert.equal(await sandbox.readFile("日本語/deep/🚀 naïve.md"), text);
    const bytes = new Uint8Array([0, 255, 128, 10, 13]);
    await sandbox.writeBytes("data.bin", bytes);
    assert.deepEqual([...(await sandbox.readBytes("data.bin"))], [...bytes]);
    await sandbox.upload("up/data.bin", bytes);
    assert.deepEqual([...(await sandbox.download("up/data.bin"))], [...bytes]);
    await sandbox.writeFile("data.bin", "");
    assert.equal(await sandbox.readFile("data.bin"), "");
  },

  "all spellings of a path name the same file": async (sandbox) => {
    await sandbox.writeFile("sub/a.txt", "alpha");
    await sandbox.writeFile("..foo", "dots");
    await sandbox.writeFile("100%25 -rf", "percent");
    for (const path of ["./sub/a.txt", ".//sub//a.txt", "sub/../sub/a.txt", "none/../sub/a.txt"]) {
      assert.equal(await sandbox.readFile(path), "alpha", path);
    }
    assert.equal(await sandbox.readFile("..foo"), "dots");
    assert.equal(await sandbox.readFile("100%25 -rf"), "percent");
  },

  "a path that leaves the workspace is forbidden to every operation": async (sandbox) => {
    for (const path of ["../x", "sub/../../x", "none/../../x", "/etc/passwd", "//etc/passwd", ".."]) {
      await refused("forbidden", [
        () => sandbox.stat(path),
        () => sandbox.exists(path),
        () => sandbox.list(path),
        () => sandbox.resolve(path),
        () => sandbox.readFile(path),
        () => sandbox.readBytes(path),
        () => sandbox.download(path),
        () => sandbox.writeFile(path, "x"),
        () => sandbox.writeBytes(path, new Uint8Array()),
        () => sandbox.upload(path, new Uint8Array()),
        () => sandbox.mkdir(path),
        () => sandbox.rm(path, { recursive: true }),
        () => sandbox.edit(path, { old: "a", new: "b" }),
        () => sandbox.grep({ pattern: "x", path }),
        () => sandbox.glob("*", { path }),
        () => sandbox.at(path),
      ]);
      if (sandbox.capabilities.exec) {
        await refused("forbidden", [() => sandbox.exec({ command: "true", cwd: path })]);
      }
    }
  },

  "a path that no file can have is `invalid_request`": async (sandbox) => {
    for (const path of ["a\0b", "x".repeat(5000), `${"y".repeat(300)}.txt`]) {
      await refused("invalid_request", [() => sandbox.writeFile(path, "x"), () => sandbox.readFile(path)]);
    }
  },

  "a missing file is `not_found`": async (sandbox) => {
    await sandbox.writeFile("sub/a.txt", "alpha");
    await refused("not_found", [
      () => sandbox.readFile("none"),
      () => sandbox.readFile("sub/a.txt/below"),
      () => sandbox.stat("none/below"),
      () => sandbox.list("none"),
      () => sandbox.rm("none"),
      () => sandbox.edit("none", { old: "a", new: "b" }),
      () => sandbox.grep({ pattern: "x", path: "none" }),
      () => sandbox.glob("*", { path: "none" }),
    ]);
    assert.deepEqual([await sandbox.exists("sub"), await sandbox.exists("none")], [true, false]);
  },

  "a file of the wrong kind is `invalid_request`": async (sandbox) => {
    await sandbox.writeFile("sub/a.txt", "alpha");
    await refused("invalid_request", [
      () => sandbox.readFile("sub"),
      () => sandbox.readFile(""),
      () => sandbox.list("sub/a.txt"),
      () => sandbox.mkdir("sub/a.txt"),
      () => sandbox.writeFile("sub", "x"),
      () => sandbox.writeFile("sub/", "x"),
      () => sandbox.writeFile("", "x"),
      () => sandbox.writeFile(".", "x"),
      () => sandbox.writeFile("sub/a.txt/below", "x"),
    ]);
  },

  "`list` returns the entries of a folder with their kinds": async (sandbox) => {
    await sandbox.mkdir("folder/below");
    await sandbox.mkdir("folder");
    await sandbox.writeFile("b.txt", "12345");
    assert.deepEqual(await sandbox.list(), [
      { name: "b.txt", kind: "file" },
      { name: "folder", kind: "directory" },
    ]);
    assert.deepEqual(await sandbox.list("folder"), [{ name: "below", kind: "directory" }]);
    const { kind, size, modified_at } = await sandbox.stat("b.txt");
    assert.deepEqual([kind, size], ["file", 5]);
    assert.equal(new Date(modified_at).toISOString(), modified_at);
    assert.equal((await sandbox.stat(".")).kind, "directory");
  },

  "a folder is removed only with `recursive`": async (sandbox) => {
    await sandbox.writeFile("box/in/x.txt", "x");
    await sandbox.writeFile("y.txt", "y");
    await refused("invalid_request", [() => sandbox.rm("box")]);
    await sandbox.rm("box", { recursive: true });
    await sandbox.rm("y.txt");
    assert.deepEqual(await sandbox.list(), []);
  },

  "the root is never removed, however its path is spelled": async (sandbox) => {
    await sandbox.mkdir("sub");
    for (const path of ["", ".", "./.", "sub/..", "sub/../.", "./"]) {
      await refused("forbidden", [() => sandbox.rm(path, { recursive: true })]);
    }
    await refused("forbidden", [() => sandbox.at("sub").rm("..", { recursive: true })]);
    assert.equal(await sandbox.exists("sub"), true);
  },

  "an edit replaces a text that occurs once, or with `all` every occurrence": async (sandbox) => {
    await sandbox.writeFile("a.txt", "one two one two three");
    const all = await sandbox.edit("a.txt", { old: "one", new: "$&$1", all: true });
    assert.deepEqual(all, { replacements: 2 });
    await sandbox.edit("a.txt", { old: "three", new: "3" });
    assert.equal(await sandbox.readFile("a.txt"), "$&$1 two $&$1 two 3");
    await refused("conflict", [
      () => sandbox.edit("a.txt", { old: "two", new: "x" }),
      () => sandbox.edit("a.txt", { old: "missing", new: "x" }),
    ]);
    await refused("invalid_request", [() => sandbox.edit("a.txt", { old: "", new: "x" })]);
    assert.equal(await sandbox.readFile("a.txt"), "$&$1 two $&$1 two 3");
  },

  "an edit keeps the file's line ends, and refuses a file that is not text": async (sandbox) => {
    await sandbox.writeFile("a.txt", "one\r\ntwo\r\nthree\r\n");
    await sandbox.edit("a.txt", { old: "one\ntwo\n", new: "1\n2\n" });
    assert.equal(await sandbox.readFile("a.txt"), "1\r\n2\r\nthree\r\n");
    await sandbox.writeBytes("latin.txt", new Uint8Array([0x61, 0xe9, 0x62]));
    await refused("invalid_request", [() => sandbox.edit("latin.txt", { old: "a", new: "b" })]);
    assert.deepEqual([...(await sandbox.readBytes("latin.txt"))], [0x61, 0xe9, 0x62]);
  },

  "reading more than 16 MiB is refused, but downloading it works": async (sandbox) => {
    const size = 16 * 1024 * 1024 + 1;
    await sandbox.upload("large.bin", new Uint8Array(size));
    await refused("payload_too_large", [
      () => sandbox.readBytes("large.bin"),
      () => sandbox.readFile("large.bin"),
    ]);
    assert.equal((await sandbox.download("large.bin")).length, size);
  },

  "`at` returns the same workspace with another working folder": async (sandbox) => {
    await sandbox.writeFile("packages/api/a.txt", "api");
    await sandbox.writeFile("packages/web/b.txt", "web");
    const api = sandbox.at("packages").at("api");
    const folders = [sandbox, api, api.at("../web"), api.at("../..")].map(({ cwd }) => cwd);
    assert.deepEqual(folders, ["", "packages/api", "packages/web", ""]);
    assert.equal(await api.readFile("a.txt"), "api");
    assert.equal(await api.readFile("../web/b.txt"), "web");
    assert.deepEqual(await api.list(), [{ name: "a.txt", kind: "file" }]);
    assert.equal(await api.resolve("../web/b.txt"), "packages/web/b.txt");
    await refused("forbidden", [() => api.readFile("../../../x")]);
  },

  "concurrent writes leave one complete text": async (sandbox) => {
    const texts = Array.from({ length: 20 }, (_, index) => `${index}`.repeat(20_000));
    await Promise.all(texts.map((text) => sandbox.writeFile("same.txt", text)));
    assert.ok(texts.includes(await sandbox.readFile("same.txt")));
    assert.deepEqual(await sandbox.list(), [{ name: "same.txt", kind: "file" }]);
  },
};
