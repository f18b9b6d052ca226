import assert from "node:assert/strict";
import type { GrepRequest, Sandbox } from "../contract.ts";
import { refused, type SandboxCheck } from "./sandbox-check.ts";

async function fill(sandbox: Sandbox): Promise<void> {
  const files: Readonly<Record<string, string>> = {
    "src/app.ts": "export function app() {\r\n  return 1; // TODO: more\r\n}\r\n",
    "src/deep/util.ts": "export const util = 1;\n",
    "src/deep/style.css": "a { color: red }\n",
    "README.md": "# TODO list\n\nTODO\n",
    ".gitignore": "dist/\n*.log\n",
    "dist/app.js": "// TODO built\n",
    "debug.log": "TODO log\n",
    "node_modules/x/index.js": "// TODO dependency\n",
    "src/deep/.gitignore": "/secret.ts\n",
    "src/deep/secret.ts": "// TODO secret\n",
  };
  for (const [path, text] of Object.entries(files)) await sandbox.writeFile(path, text);
}

async function pathsOf(sandbox: Sandbox, request: GrepRequest): Promise<readonly string[]> {
  return [...new Set((await sandbox.grep(request)).matches.map(({ path }) => path))];
}

/** The promises of every sandbox about searches. */
export const searchCases: Readonly<Record<string, SandboxCheck>> = {
  "grep returns the matching lines without line ends": async (sandbox) => {
    await fill(sandbox);
    assert.deepEqual(await sandbox.grep({ pattern: "TODO:? [a-z]" }), {
      matches: [
        { path: "README.md", line: 1, text: "# TODO list" },
        { path: "src/app.ts", line: 2, text: "  return 1; // TODO: more" },
      ],
      truncated: false,
    });
    assert.deepEqual((await sandbox.grep({ pattern: "^TODO$" })).matches, [
      { path: "README.md", line: 3, text: "TODO" },
    ]);
    assert.equal((await sandbox.grep({ pattern: "todo", ignoreCase: true })).matches.length, 3);
    const anyCase = { pattern: "EXPORT.*1;", ignoreCase: true, path: "src/deep" };
    assert.deepEqual((await sandbox.grep(anyCase)).matches, [
      { path: "src/deep/util.ts", line: 1, text: "export const util = 1;" },
    ]);
  },

  "a glob limits a search by name or by path": async (sandbox) => {
    await fill(sandbox);
    const narrowed = (glob: string, path = ""): Promise<readonly string[]> =>
      pathsOf(sandbox, { pattern: ".", glob, path });
    assert.deepEqual(await narrowed("*.ts"), ["src/app.ts", "src/deep/util.ts"]);
    assert.deepEqual(await narrowed("src/deep/*.{ts,css}"), ["src/deep/style.css", "src/deep/util.ts"]);
    assert.deepEqual(await narrowed("deep/*.css", "src"), ["src/deep/style.css"]);
  },

  "searches skip files that Git ignores, unless the path names them": async (sandbox) => {
    await fill(sandbox);
    assert.deepEqual((await sandbox.glob("**/*")).paths, [
      ".gitignore",
      "README.md",
      "src/app.ts",
      "src/deep/.gitignore",
      "src/deep/style.css",
      "src/deep/util.ts",
    ]);
    assert.deepEqual(await pathsOf(sandbox, { pattern: "built", path: "dist" }), ["dist/app.js"]);
    assert.deepEqual(await pathsOf(sandbox, { pattern: "TODO", path: "debug.log" }), ["debug.log"]);
    assert.deepEqual((await sandbox.glob("dist/*")).paths, ["dist/app.js"]);
    assert.deepEqual((await sandbox.glob("*.js", { path: "node_modules/x" })).paths, [
      "node_modules/x/index.js",
    ]);
    // The rules of parent folders apply below.
    await sandbox.writeFile("src/deep/x.log", "TODO");
    assert.deepEqual(await pathsOf(sandbox, { pattern: "TODO", path: "src/deep" }), []);
  },

  "results are relative to the working folder": async (sandbox) => {
    await fill(sandbox);
    const deep = sandbox.at("src/deep");
    assert.deepEqual((await deep.glob("*.ts")).paths, ["util.ts"]);
    assert.deepEqual((await deep.glob("../*.ts")).paths, ["../app.ts"]);
    assert.deepEqual(await pathsOf(deep, { pattern: "app", path: ".." }), ["../app.ts"]);
    assert.deepEqual(await pathsOf(deep, { pattern: "util" }), ["util.ts"]);
  },

  "globs have the usual wildcards": async (sandbox) => {
    await fill(sandbox);
    const paths = async (pattern: string): Promise<readonly string[]> => (await sandbox.glob(pattern)).paths;
    assert.deepEqual(await paths("*.md"), ["README.md"]);
    assert.deepEqual(await paths("src/*"), ["src/app.ts"]);
    assert.deepEqual(await paths("src/**/*.{ts,css}"), [
      "src/app.ts",
      "src/deep/style.css",
      "src/deep/util.ts",
    ]);
    assert.deepEqual(await paths("src/d??p/[su]*.ts"), ["src/deep/util.ts"]);
    assert.deepEqual(await paths("README.md"), ["README.md"]);
    assert.deepEqual(await paths("none/**"), []);
    for (const pattern of ["", "[a", "{a,b}".repeat(20), "x".repeat(2000)]) {
      await refused("invalid_request", [() => sandbox.glob(pattern)]);
    }
    for (const pattern of ["../*", "/etc/*", "src/../../*"]) {
      await refused("forbidden", [() => sandbox.glob(pattern)]);
    }
  },

  "results are bounded, and `truncated` reports that there are more": async (sandbox) => {
    for (let index = 0; index < 5; index += 1) await sandbox.writeFile(`f${index}.txt`, "x\nx\n");
    assert.deepEqual(await sandbox.grep({ pattern: "x", maxMatches: 3 }), {
      matches: [
        { path: "f0.txt", line: 1, text: "x" },
        { path: "f0.txt", line: 2, text: "x" },
        { path: "f1.txt", line: 1, text: "x" },
      ],
      truncated: true,
    });
    assert.equal((await sandbox.grep({ pattern: "x", maxMatches: 10 })).truncated, false);
    assert.deepEqual(await sandbox.glob("*", { maxResults: 2 }), {
      paths: ["f0.txt", "f1.txt"],
      truncated: true,
    });
    assert.equal((await sandbox.glob("*", { maxResults: 5 })).truncated, false);
  },

  "for a very long line, grep returns the part around the match": async (sandbox) => {
    await sandbox.writeFile("long.txt", `${"y".repeat(50_000)}needle${"y".repeat(50_000)}`);
    const [found] = (await sandbox.grep({ pattern: "needle" })).matches;
    assert.match(found?.text ?? "", /needle/);
    assert.ok((found?.text.length ?? 0) < 1_000);
  },

  "binary files are skipped": async (sandbox) => {
    await sandbox.writeBytes("a.bin", new Uint8Array([0, 78, 69, 69, 68, 76, 69]));
    assert.deepEqual(await pathsOf(sandbox, { pattern: "NEEDLE" }), []);
  },

  "a pattern that is not valid is refused with a reason": async (sandbox) => {
    for (const pattern of ["(", "a{2,1}", "(?=x)", "\\1", "x{1000}{1000}", "", "(".repeat(900)]) {
      const error = { code: "invalid_request", message: /pattern is not valid/ };
      await assert.rejects(sandbox.grep({ pattern }), error, pattern);
    }
  },

  "no pattern and no text make a search hang": async (sandbox) => {
    await sandbox.writeFile("a.txt", `${"a".repeat(200_000)}!\n`.repeat(5));
    for (const pattern of ["(a+)+$", "(a|a)*b", "(.*)*x", "(a|b)*a(a|b){30}[c-d]"]) {
      const started = performance.now();
      await sandbox.grep({ pattern });
      assert.ok(performance.now() - started < 60_000, pattern);
    }
  },

  "an abort ends a search with its reason": async (sandbox) => {
    await fill(sandbox);
    const reason = new Error("enough");
    const signal = AbortSignal.abort(reason);
    await assert.rejects(sandbox.grep({ pattern: "x", signal }), reason);
    await assert.rejects(sandbox.glob("**", { signal }), reason);
  },
};
