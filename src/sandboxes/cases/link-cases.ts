import assert from "node:assert/strict";
import type { Sandbox } from "../contract.ts";
import { refused, type SandboxCheck } from "./sandbox-check.ts";

/** Creates links with commands, as a sandbox has no call for them. */
async function link(sandbox: Sandbox, links: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, target] of Object.entries(links)) {
    const { exit_code, stderr } = await sandbox.exec({ command: `ln -s '${target}' '${path}'` });
    assert.equal(exit_code, 0, stderr);
  }
}

/** The promises about links and special files of every sandbox that runs commands. */
export const linkCases: Readonly<Record<string, SandboxCheck>> = {
  "links that stay in the workspace are followed": async (sandbox) => {
    await sandbox.writeFile("sub/deep/a.txt", "alpha");
    await sandbox.writeFile("a.txt", "top");
    await link(sandbox, { short: "sub/deep", "sub/up": "../a.txt", dangling: "sub/deep/new.txt" });
    assert.equal(await sandbox.readFile("short/a.txt"), "alpha");
    assert.equal(await sandbox.readFile("sub/up"), "top");
    assert.equal((await sandbox.stat("short")).kind, "directory");
    const kinds = new Map((await sandbox.list()).map(({ name, kind }) => [name, kind]));
    assert.equal(kinds.get("short"), "link");
    assert.equal(await sandbox.exists("dangling"), false);
    await sandbox.writeFile("dangling", "new");
    assert.equal(await sandbox.readFile("sub/deep/new.txt"), "new");
    await sandbox.writeFile("short/b/c.txt", "c");
    assert.equal(await sandbox.readFile("sub/deep/b/c.txt"), "c");
  },

  "`resolve` returns the target of a path": async (sandbox) => {
    await sandbox.mkdir("sub/deep");
    await link(sandbox, { short: "sub/deep", "sub/here": "." });
    assert.equal(await sandbox.resolve("short/new/x.txt"), "sub/deep/new/x.txt");
    assert.equal(await sandbox.resolve("sub/here/here/deep"), "sub/deep");
    assert.equal(await sandbox.resolve("short"), "sub/deep");
    assert.equal(await sandbox.resolve("short", { keepLink: true }), "short");
    assert.equal(await sandbox.resolve("."), "");
  },

  "links that lead out of the workspace are refused": async (sandbox) => {
    await link(sandbox, {
      file: "/etc/passwd",
      folder: "/etc",
      up: "..",
      relative: "../../../../../../../../../../../../../../etc",
      chain: "file",
    });
    for (const path of ["file", "folder/passwd", "up/x", "relative/passwd", "chain"]) {
      await refused("forbidden", [
        () => sandbox.readFile(path),
        () => sandbox.stat(path),
        () => sandbox.exists(path),
        () => sandbox.resolve(path),
        () => sandbox.writeFile(path, "x"),
        () => sandbox.edit(path, { old: "root", new: "x" }),
      ]);
    }
    for (const path of ["folder", "up", "relative"]) {
      await refused("forbidden", [
        () => sandbox.list(path),
        () => sandbox.mkdir(`${path}/kit-test`),
        () => sandbox.exec({ command: "true", cwd: path }),
        () => sandbox.grep({ pattern: "root", path }),
        () => sandbox.glob("*", { path }),
        () => sandbox.at(path).readFile("passwd"),
      ]);
    }
    assert.deepEqual((await sandbox.grep({ pattern: "root" })).matches, []);
    assert.deepEqual((await sandbox.glob("**")).paths, []);
    assert.deepEqual(new Set((await sandbox.list()).map(({ kind }) => kind)), new Set(["link"]));
  },

  "circular links are refused at once": async (sandbox) => {
    await link(sandbox, { x: "y", y: "x", self: "." });
    await sandbox.writeFile("a.txt", "alpha");
    await refused("forbidden", [() => sandbox.readFile("x")]);
    assert.equal(await sandbox.readFile("self/self/self/a.txt"), "alpha");
    assert.deepEqual((await sandbox.glob("**/*.txt")).paths, ["a.txt"]);
  },

  "`rm` removes a link, and never its target": async (sandbox) => {
    await sandbox.writeFile("kept/a.txt", "alpha");
    await sandbox.mkdir("box");
    await link(sandbox, { "box/folder": "../kept", "box/file": "../kept/a.txt", direct: "kept" });
    await sandbox.rm("box", { recursive: true });
    await sandbox.rm("direct", { recursive: true });
    assert.deepEqual(await sandbox.list(), [{ name: "kept", kind: "directory" }]);
    assert.equal(await sandbox.readFile("kept/a.txt"), "alpha");
  },

  "a write keeps the file's mode, and the content of its hard links": async (sandbox) => {
    await sandbox.writeFile("a.sh", "old");
    await sandbox.exec({ command: "chmod 751 a.sh && ln a.sh b.sh" });
    await sandbox.writeFile("a.sh", "new");
    assert.equal(await sandbox.readFile("b.sh"), "old");
    assert.match((await sandbox.exec({ command: "ls -l a.sh" })).stdout, /^-rwxr-x--x/);
  },

  "special files are refused without blocking": async (sandbox) => {
    await sandbox.exec({ command: "mkfifo pipe" });
    await refused("forbidden", [
      () => sandbox.readFile("pipe"),
      () => sandbox.writeFile("pipe", "x"),
      () => sandbox.edit("pipe", { old: "a", new: "b" }),
      () => sandbox.grep({ pattern: "x", path: "pipe" }),
    ]);
    assert.deepEqual((await sandbox.grep({ pattern: "x" })).matches, []);
    assert.deepEqual(await sandbox.list(), [{ name: "pipe", kind: "other" }]);
    await sandbox.rm("pipe");
  },
};
