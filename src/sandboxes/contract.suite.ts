import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Sandbox } from "./contract.ts";
import { sandboxExecContract } from "./exec-contract.suite.ts";
import { sandboxSearchContract } from "./search-contract.suite.ts";

/** How the suites come to a sandbox. */
export interface SandboxSubject {
  readonly name: string;
  /** Opens a sandbox with an empty workspace. */
  readonly create: () => Promise<Sandbox>;
  /** Opens the workspace of the last `create` again; only for persistent ones. */
  readonly reopen?: () => Promise<Sandbox>;
}

/** The promises of `Sandbox`, as tests that every implementation runs. */
export function sandboxContract(subject: SandboxSubject): void {
  describe(`${subject.name} as a sandbox`, () => {
    let sandbox: Sandbox;
    beforeEach(async () => {
      sandbox = await subject.create();
    });
    afterEach(async () => {
      await sandbox.close();
    });

    describe("files", () => {
      fileTests(() => sandbox);
    });
    describe("links", () => {
      linkTests(() => sandbox);
    });
    describe("searches", () => {
      sandboxSearchContract(() => sandbox);
    });
    describe("commands", () => {
      sandboxExecContract(() => sandbox);
    });

    test.skipIf(subject.reopen === undefined)(
      "files live on when it is closed and opened again",
      async () => {
        await sandbox.writeFile("kept/a.txt", "kept");
        await sandbox.close();
        const again = await subject.reopen?.();
        expect(await again?.readFile("kept/a.txt")).toBe("kept");
        await again?.close();
      },
    );
  });
}

function fileTests(given: () => Sandbox): void {
  test("a text and bytes come back as they went in, in folders that a write makes", async () => {
    const sandbox = given();
    const text = "\uFEFFnaïve 🚀\r\nline two\u2028\n";
    await sandbox.writeFile("日本語/deep/🚀 naïve.md", text);
    expect(await sandbox.readFile("日本語/deep/🚀 naïve.md")).toBe(text);
    const bytes = new Uint8Array([0, 255, 128, 10, 13]);
    await sandbox.writeBytes("data.bin", bytes);
    expect([...(await sandbox.readBytes("data.bin"))]).toEqual([...bytes]);
    await sandbox.upload("up/data.bin", bytes);
    expect([...(await sandbox.download("up/data.bin"))]).toEqual([...bytes]);
    await sandbox.writeFile("data.bin", "");
    expect(await sandbox.readFile("data.bin")).toBe("");
  });

  test("any spelling of a path is the same file", async () => {
    const sandbox = given();
    await sandbox.writeFile("sub/a.txt", "alpha");
    await sandbox.writeFile("..foo", "dots");
    await sandbox.writeFile("100%25 -rf", "percent");
    for (const path of [
      "sub/a.txt",
      "./sub/a.txt",
      ".//sub//a.txt",
      "sub/../sub/a.txt",
      "none/../sub/a.txt",
    ]) {
      expect(await sandbox.readFile(path)).toBe("alpha");
    }
    expect(await sandbox.readFile("..foo")).toBe("dots");
    expect(await sandbox.readFile("100%25 -rf")).toBe("percent");
  });

  test.each(["../x", "sub/../../x", "none/../../x", "/etc/passwd", "//etc/passwd", ".."])(
    "%s is forbidden to every operation",
    async (path) => {
      const sandbox = given();
      const forbidden = { code: "forbidden" };
      await expect(sandbox.stat(path)).rejects.toMatchObject(forbidden);
      await expect(sandbox.exists(path)).rejects.toMatchObject(forbidden);
      await expect(sandbox.list(path)).rejects.toMatchObject(forbidden);
      await expect(sandbox.resolve(path)).rejects.toMatchObject(forbidden);
      await expect(sandbox.readFile(path)).rejects.toMatchObject(forbidden);
      await expect(sandbox.readBytes(path)).rejects.toMatchObject(forbidden);
      await expect(sandbox.download(path)).rejects.toMatchObject(forbidden);
      await expect(sandbox.writeFile(path, "x")).rejects.toMatchObject(forbidden);
      await expect(sandbox.writeBytes(path, new Uint8Array())).rejects.toMatchObject(forbidden);
      await expect(sandbox.upload(path, new Uint8Array())).rejects.toMatchObject(forbidden);
      await expect(sandbox.mkdir(path)).rejects.toMatchObject(forbidden);
      await expect(sandbox.rm(path, { recursive: true })).rejects.toMatchObject(forbidden);
      await expect(sandbox.edit(path, { old: "a", new: "b" })).rejects.toMatchObject(forbidden);
      await expect(sandbox.grep({ pattern: "x", path })).rejects.toMatchObject(forbidden);
      await expect(sandbox.glob("*", { path })).rejects.toMatchObject(forbidden);
      expect(() => sandbox.at(path)).toThrow(expect.objectContaining(forbidden));
      if (sandbox.capabilities.exec)
        await expect(sandbox.exec({ command: "true", cwd: path })).rejects.toMatchObject(forbidden);
    },
  );

  test.each(["a\0b", "x".repeat(5000), `${"y".repeat(300)}.txt`])(
    "a path that no file can have is an invalid request",
    async (path) => {
      await expect(given().writeFile(path, "x")).rejects.toMatchObject({ code: "invalid_request" });
      await expect(given().readFile(path)).rejects.toMatchObject({ code: "invalid_request" });
    },
  );

  test("what is missing is not found, and what is of another kind is an invalid request", async () => {
    const sandbox = given();
    await sandbox.writeFile("sub/a.txt", "alpha");
    const notFound = { code: "not_found" };
    await expect(sandbox.readFile("none")).rejects.toMatchObject(notFound);
    await expect(sandbox.readFile("sub/a.txt/below")).rejects.toMatchObject(notFound);
    await expect(sandbox.stat("none/below")).rejects.toMatchObject(notFound);
    await expect(sandbox.list("none")).rejects.toMatchObject(notFound);
    await expect(sandbox.rm("none")).rejects.toMatchObject(notFound);
    await expect(sandbox.edit("none", { old: "a", new: "b" })).rejects.toMatchObject(notFound);
    const invalid = { code: "invalid_request" };
    await expect(sandbox.readFile("sub")).rejects.toMatchObject(invalid);
    await expect(sandbox.readFile("")).rejects.toMatchObject(invalid);
    await expect(sandbox.list("sub/a.txt")).rejects.toMatchObject(invalid);
    for (const path of ["sub", "sub/", "", ".", "sub/a.txt/below"]) {
      await expect(sandbox.writeFile(path, "x")).rejects.toMatchObject(invalid);
    }
    await expect(sandbox.mkdir("sub/a.txt")).rejects.toMatchObject(invalid);
    expect([await sandbox.exists("sub"), await sandbox.exists("none")]).toEqual([true, false]);
  });

  test("a folder lists its entries with their kinds", async () => {
    const sandbox = given();
    await sandbox.mkdir("folder/below");
    await sandbox.mkdir("folder");
    await sandbox.writeFile("b.txt", "12345");
    expect(await sandbox.list()).toEqual([
      { name: "b.txt", kind: "file" },
      { name: "folder", kind: "directory" },
    ]);
    expect(await sandbox.list("folder")).toEqual([{ name: "below", kind: "directory" }]);
    expect(await sandbox.stat("b.txt")).toMatchObject({ kind: "file", size: 5 });
    expect((await sandbox.stat(".")).kind).toBe("directory");
    const { modified_at } = await sandbox.stat("b.txt");
    expect(new Date(modified_at).toISOString()).toBe(modified_at);
  });

  test("a folder is removed only when that is meant, and the root never", async () => {
    const sandbox = given();
    await sandbox.writeFile("box/in/x.txt", "x");
    await sandbox.writeFile("y.txt", "y");
    await expect(sandbox.rm("box")).rejects.toMatchObject({ code: "invalid_request" });
    await sandbox.rm("box", { recursive: true });
    await sandbox.rm("y.txt");
    expect(await sandbox.list()).toEqual([]);
    await sandbox.mkdir("sub");
    for (const path of ["", ".", "./.", "sub/..", "sub/../.", "./"]) {
      await expect(sandbox.rm(path, { recursive: true })).rejects.toMatchObject({ code: "forbidden" });
    }
    await expect(sandbox.at("sub").rm("..", { recursive: true })).rejects.toMatchObject({
      code: "forbidden",
    });
    expect(await sandbox.exists("sub")).toBe(true);
  });

  test("an edit replaces what occurs once, or all of it", async () => {
    const sandbox = given();
    await sandbox.writeFile("a.txt", "one two one\r\ntwo\r\n");
    expect(await sandbox.edit("a.txt", { old: "one", new: "$&$1", all: true })).toEqual({ replacements: 2 });
    expect(await sandbox.readFile("a.txt")).toBe("$&$1 two $&$1\r\ntwo\r\n");
    for (const old of ["two", "missing"]) {
      await expect(sandbox.edit("a.txt", { old, new: "x" })).rejects.toMatchObject({ code: "conflict" });
    }
    await expect(sandbox.edit("a.txt", { old: "", new: "x" })).rejects.toMatchObject({
      code: "invalid_request",
    });
    // Models write line feeds; the file keeps its own line ends.
    await sandbox.edit("a.txt", { old: "$&$1\ntwo\n", new: "end\nof file\n" });
    expect(await sandbox.readFile("a.txt")).toBe("$&$1 two end\r\nof file\r\n");
    await sandbox.writeBytes("latin.txt", new Uint8Array([0x61, 0xe9, 0x62]));
    await expect(sandbox.edit("latin.txt", { old: "a", new: "b" })).rejects.toMatchObject({
      code: "invalid_request",
    });
    expect([...(await sandbox.readBytes("latin.txt"))]).toEqual([0x61, 0xe9, 0x62]);
  });

  test("reading more than 16 MiB is refused, downloading it is not", async () => {
    const sandbox = given();
    const size = 16 * 1024 * 1024 + 1;
    await sandbox.upload("large.bin", new Uint8Array(size));
    await expect(sandbox.readBytes("large.bin")).rejects.toMatchObject({ code: "payload_too_large" });
    await expect(sandbox.readFile("large.bin")).rejects.toMatchObject({ code: "payload_too_large" });
    expect((await sandbox.download("large.bin")).length).toBe(size);
  });

  test("another working folder is the same workspace", async () => {
    const sandbox = given();
    await sandbox.writeFile("packages/api/a.txt", "api");
    await sandbox.writeFile("packages/web/b.txt", "web");
    const api = sandbox.at("packages").at("api");
    expect([sandbox.cwd, api.cwd, api.at("../web").cwd, api.at("../..").cwd]).toEqual([
      "",
      "packages/api",
      "packages/web",
      "",
    ]);
    expect(await api.readFile("a.txt")).toBe("api");
    expect(await api.readFile("../web/b.txt")).toBe("web");
    expect(await api.list()).toEqual([{ name: "a.txt", kind: "file" }]);
    expect(await api.resolve("../web/b.txt")).toBe("packages/web/b.txt");
    await expect(api.readFile("../../../x")).rejects.toMatchObject({ code: "forbidden" });
  });

  test("writes at the same time leave one of the texts, whole", async () => {
    const sandbox = given();
    const texts = Array.from({ length: 20 }, (_, index) => `${index}`.repeat(20_000));
    await Promise.all(texts.map((text) => sandbox.writeFile("same.txt", text)));
    expect(texts).toContain(await sandbox.readFile("same.txt"));
    expect(await sandbox.list()).toEqual([{ name: "same.txt", kind: "file" }]);
  });
}

/** Links are made by commands, as real ones are. */
function linkTests(given: () => Sandbox): void {
  const link = async (target: string, path: string): Promise<void> => {
    const result = await given().exec({ command: ["ln", "-s", target, path] });
    expect(result).toMatchObject({ exit_code: 0 });
  };
  const linkTest = (name: string, work: (sandbox: Sandbox) => Promise<void>): void => {
    test(name, async (context) => {
      const sandbox = given();
      if (!sandbox.capabilities.exec) context.skip("Links are made by commands, and it runs none.");
      await work(sandbox);
    });
  };

  linkTest("those that stay inside are followed", async (sandbox) => {
    await sandbox.writeFile("sub/deep/a.txt", "alpha");
    await link("sub/deep", "short");
    await link("../a.txt", "sub/up");
    await link("sub/deep/new.txt", "dangling");
    await sandbox.writeFile("a.txt", "top");
    expect(await sandbox.readFile("short/a.txt")).toBe("alpha");
    expect(await sandbox.readFile("sub/up")).toBe("top");
    expect((await sandbox.stat("short")).kind).toBe("directory");
    expect(await sandbox.list()).toContainEqual({ name: "short", kind: "link" });
    expect(await sandbox.exists("dangling")).toBe(false);
    await sandbox.writeFile("dangling", "new");
    expect(await sandbox.readFile("sub/deep/new.txt")).toBe("new");
    await sandbox.writeFile("short/b/c.txt", "c");
    expect(await sandbox.readFile("sub/deep/b/c.txt")).toBe("c");
  });

  linkTest("a path is told as where it leads", async (sandbox) => {
    await sandbox.mkdir("sub/deep");
    await link("sub/deep", "short");
    await link(".", "sub/here");
    expect(await sandbox.resolve("short/new/x.txt")).toBe("sub/deep/new/x.txt");
    expect(await sandbox.resolve("sub/here/here/deep")).toBe("sub/deep");
    expect(await sandbox.resolve("short")).toBe("sub/deep");
    expect(await sandbox.resolve("short", { keepLink: true })).toBe("short");
    expect(await sandbox.resolve(".")).toBe("");
  });

  linkTest("those that lead outside lead nowhere", async (sandbox) => {
    await sandbox.writeFile("a.txt", "alpha");
    await link("/etc/passwd", "file");
    await link("/etc", "folder");
    await link("..", "up");
    await link("../../../../../../etc", "relative");
    await link("file", "chain");
    for (const path of ["file", "folder/passwd", "up/x", "relative/passwd", "chain"]) {
      await expect(sandbox.readFile(path)).rejects.toMatchObject({ code: "forbidden" });
      await expect(sandbox.stat(path)).rejects.toMatchObject({ code: "forbidden" });
      await expect(sandbox.writeFile(path, "x")).rejects.toMatchObject({ code: "forbidden" });
      await expect(sandbox.resolve(path)).rejects.toMatchObject({ code: "forbidden" });
    }
    for (const path of ["folder", "up", "relative"]) {
      await expect(sandbox.list(path)).rejects.toMatchObject({ code: "forbidden" });
      await expect(sandbox.mkdir(`${path}/kit-test`)).rejects.toMatchObject({ code: "forbidden" });
      await expect(sandbox.exec({ command: "true", cwd: path })).rejects.toMatchObject({ code: "forbidden" });
      await expect(sandbox.grep({ pattern: "root", path })).rejects.toMatchObject({ code: "forbidden" });
      await expect(sandbox.glob("*", { path })).rejects.toMatchObject({ code: "forbidden" });
    }
    expect((await sandbox.list()).filter(({ kind }) => kind === "link").length).toBe(5);
  });

  linkTest("a loop is refused at once", async (sandbox) => {
    await link("y", "x");
    await link("x", "y");
    await link(".", "self");
    await sandbox.writeFile("a.txt", "alpha");
    await expect(sandbox.readFile("x")).rejects.toMatchObject({ code: "forbidden" });
    expect(await sandbox.readFile("self/self/self/a.txt")).toBe("alpha");
    expect((await sandbox.glob("**/*.txt")).paths).toEqual(["a.txt"]);
  });

  linkTest("removing takes the link, and never what it leads to", async (sandbox) => {
    await sandbox.writeFile("kept/a.txt", "alpha");
    await sandbox.mkdir("box");
    await link("../kept", "box/folder");
    await link("../kept/a.txt", "box/file");
    await link("kept", "direct");
    await sandbox.rm("box", { recursive: true });
    await sandbox.rm("direct", { recursive: true });
    expect(await sandbox.list()).toEqual([{ name: "kept", kind: "directory" }]);
    expect(await sandbox.readFile("kept/a.txt")).toBe("alpha");
  });

  linkTest("a write keeps the mode, and the content of the file's other names", async (sandbox) => {
    await sandbox.writeFile("a.sh", "old");
    await sandbox.exec({ command: "chmod 751 a.sh && ln a.sh b.sh" });
    await sandbox.writeFile("a.sh", "new");
    expect(await sandbox.readFile("b.sh")).toBe("old");
    expect((await sandbox.exec({ command: "ls -l a.sh" })).stdout).toMatch(/^-rwxr-x--x/);
  });

  linkTest("special files are refused without waiting for them", async (sandbox) => {
    await sandbox.exec({ command: ["mkfifo", "pipe"] });
    const forbidden = { code: "forbidden" };
    await expect(sandbox.readFile("pipe")).rejects.toMatchObject(forbidden);
    await expect(sandbox.writeFile("pipe", "x")).rejects.toMatchObject(forbidden);
    await expect(sandbox.edit("pipe", { old: "a", new: "b" })).rejects.toMatchObject(forbidden);
    await expect(sandbox.grep({ pattern: "x", path: "pipe" })).rejects.toMatchObject(forbidden);
    expect((await sandbox.grep({ pattern: "x" })).matches).toEqual([]);
    expect(await sandbox.list()).toEqual([{ name: "pipe", kind: "other" }]);
    await sandbox.rm("pipe");
  });
}
