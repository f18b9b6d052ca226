import { expect, test } from "vitest";
import type { Sandbox } from "./contract.ts";

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

/** Searching, as every sandbox promises it. */
export function sandboxSearchContract(given: () => Sandbox): void {
  test("grep gives the lines that match, without line ends", async () => {
    const sandbox = given();
    await fill(sandbox);
    expect(await sandbox.grep({ pattern: "TODO:? [a-z]" })).toEqual({
      matches: [
        { path: "README.md", line: 1, text: "# TODO list" },
        { path: "src/app.ts", line: 2, text: "  return 1; // TODO: more" },
      ],
      truncated: false,
    });
    expect((await sandbox.grep({ pattern: "^TODO$" })).matches).toEqual([
      { path: "README.md", line: 3, text: "TODO" },
    ]);
    expect((await sandbox.grep({ pattern: "todo", ignoreCase: true })).matches.length).toBe(3);
    expect(
      (await sandbox.grep({ pattern: "EXPORT.*1;", ignoreCase: true, path: "src/deep" })).matches,
    ).toEqual([{ path: "src/deep/util.ts", line: 1, text: "export const util = 1;" }]);
  });

  test("a glob narrows a search by name or by path", async () => {
    const sandbox = given();
    await fill(sandbox);
    const pathsFor = async (glob: string, path?: string): Promise<readonly string[]> =>
      (await sandbox.grep({ pattern: ".", glob, ...(path === undefined ? {} : { path }) })).matches.map(
        (match) => match.path,
      );
    expect(new Set(await pathsFor("*.ts"))).toEqual(new Set(["src/app.ts", "src/deep/util.ts"]));
    expect(await pathsFor("src/deep/*.{ts,css}")).toEqual(["src/deep/style.css", "src/deep/util.ts"]);
    expect(await pathsFor("deep/*.css", "src")).toEqual(["src/deep/style.css"]);
  });

  test("what Git ignores is left out, unless its folder is named", async () => {
    const sandbox = given();
    await fill(sandbox);
    expect((await sandbox.glob("**/*")).paths).toEqual([
      ".gitignore",
      "README.md",
      "src/app.ts",
      "src/deep/.gitignore",
      "src/deep/style.css",
      "src/deep/util.ts",
    ]);
    expect((await sandbox.grep({ pattern: "built", path: "dist" })).matches.length).toBe(1);
    expect((await sandbox.glob("dist/*")).paths).toEqual(["dist/app.js"]);
    expect((await sandbox.glob("*.js", { path: "node_modules/x" })).paths).toEqual([
      "node_modules/x/index.js",
    ]);
    expect((await sandbox.grep({ pattern: "TODO", path: "debug.log" })).matches.length).toBe(1);
    // The rules of folders above hold below.
    await sandbox.writeFile("src/deep/x.log", "TODO");
    expect((await sandbox.grep({ pattern: "TODO", path: "src/deep" })).matches).toEqual([]);
  });

  test("paths are relative to the working folder", async () => {
    const sandbox = given();
    await fill(sandbox);
    const deep = sandbox.at("src/deep");
    expect((await deep.glob("*.ts")).paths).toEqual(["util.ts"]);
    expect((await deep.glob("../*.ts")).paths).toEqual(["../app.ts"]);
    expect((await deep.grep({ pattern: "app", path: ".." })).matches.map(({ path }) => path)).toEqual([
      "../app.ts",
    ]);
    expect((await deep.grep({ pattern: "util" })).matches.map(({ path }) => path)).toEqual(["util.ts"]);
  });

  test("a glob means what it means everywhere", async () => {
    const sandbox = given();
    await fill(sandbox);
    expect((await sandbox.glob("*.md")).paths).toEqual(["README.md"]);
    expect((await sandbox.glob("src/*")).paths).toEqual(["src/app.ts"]);
    expect((await sandbox.glob("src/**/*.{ts,css}")).paths).toEqual([
      "src/app.ts",
      "src/deep/style.css",
      "src/deep/util.ts",
    ]);
    expect((await sandbox.glob("README.md")).paths).toEqual(["README.md"]);
    expect((await sandbox.glob("none/**")).paths).toEqual([]);
    await expect(sandbox.glob("*", { path: "none" })).rejects.toMatchObject({ code: "not_found" });
    for (const pattern of ["", "[a", "{a,b}".repeat(20), "x".repeat(2000)]) {
      await expect(sandbox.glob(pattern)).rejects.toMatchObject({ code: "invalid_request" });
    }
    for (const pattern of ["../*", "/etc/*", "src/../../*"]) {
      await expect(sandbox.glob(pattern)).rejects.toMatchObject({ code: "forbidden" });
    }
  });

  test("results are bounded, and say that there is more", async () => {
    const sandbox = given();
    for (let index = 0; index < 5; index += 1) await sandbox.writeFile(`f${index}.txt`, "x\nx\n");
    expect(await sandbox.grep({ pattern: "x", maxMatches: 3 })).toEqual({
      matches: [
        { path: "f0.txt", line: 1, text: "x" },
        { path: "f0.txt", line: 2, text: "x" },
        { path: "f1.txt", line: 1, text: "x" },
      ],
      truncated: true,
    });
    expect((await sandbox.grep({ pattern: "x", maxMatches: 10 })).truncated).toBe(false);
    expect(await sandbox.glob("*", { maxResults: 2 })).toEqual({
      paths: ["f0.txt", "f1.txt"],
      truncated: true,
    });
    expect((await sandbox.glob("*", { maxResults: 5 })).truncated).toBe(false);
    await sandbox.writeFile("long.txt", `${"y".repeat(50_000)}needle${"y".repeat(50_000)}`);
    const [found] = (await sandbox.grep({ pattern: "needle" })).matches;
    expect(found?.text).toContain("needle");
    expect(found?.text.length).toBeLessThan(1_000);
  });

  test("binary files are skipped", async () => {
    const sandbox = given();
    await sandbox.writeBytes("a.bin", new Uint8Array([0, 78, 69, 69, 68, 76, 69]));
    expect((await sandbox.grep({ pattern: "NEEDLE" })).matches).toEqual([]);
  });

  test.each(["(", "a{2,1}", "(?=x)", "\\1", "x{1000}{1000}", "", "(".repeat(900)])(
    "the pattern %j is refused with a reason",
    async (pattern) => {
      await expect(given().grep({ pattern })).rejects.toMatchObject({
        code: "invalid_request",
        message: expect.stringContaining("pattern is not valid"),
      });
    },
  );

  test("no pattern and no text make a search hang", async () => {
    const sandbox = given();
    await sandbox.writeFile("a.txt", `${"a".repeat(200_000)}!\n`.repeat(5));
    for (const pattern of ["(a+)+$", "(a|a)*b", "(.*)*x", "(a|b)*a(a|b){30}[c-d]"]) {
      const started = performance.now();
      await sandbox.grep({ pattern });
      expect(performance.now() - started).toBeLessThan(10_000);
    }
  });

  test("an abort ends a search with its reason", async () => {
    const sandbox = given();
    await fill(sandbox);
    const reason = new Error("enough");
    const signal = AbortSignal.abort(reason);
    await expect(sandbox.grep({ pattern: "x", signal })).rejects.toBe(reason);
    await expect(sandbox.glob("**", { signal })).rejects.toBe(reason);
  });
}
