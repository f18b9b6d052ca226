import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { Application } from "./application.ts";
import { writeApplication, writeTargetFiles } from "./build.ts";
import { bundleCode, type CodeBundle } from "./bundle-code.ts";
import { loadBundler } from "./bundler.ts";
import { findReferences, withPlace } from "./code-references.ts";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function folderOf(files: Readonly<Record<string, string>>): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "kit-build-")));
  folders.push(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

async function bundle(
  files: Readonly<Record<string, string>>,
  entry = "src/agents/a.ts",
): Promise<CodeBundle> {
  const root = folderOf(files);
  return await bundleCode(await loadBundler(), { root, entries: [entry], optional: ["pg"] });
}

const text = ({ files }: CodeBundle, path: string): string =>
  Buffer.from(files.get(path) ?? new Uint8Array()).toString("utf8");

const pure = (name: string, code: string, more: object = {}): Readonly<Record<string, string>> => ({
  [`node_modules/${name}/package.json`]: JSON.stringify({
    name,
    version: "1.2.3",
    type: "module",
    main: "i.js",
    ...more,
  }),
  [`node_modules/${name}/i.js`]: code,
});

test("a package is bundled, unless it has native code, an install script or files of its own: then the output lists it with its version", async () => {
  const built = await bundle({
    "src/agents/a.ts": `import { one } from "pure";
import { two } from "native";
import { three } from "installs";
import { four } from "reads-its-files";
import { five } from "@scope/common";
import pg from "pg";
export default [one, two, three, four, five, pg] as const;
`,
    ...pure("pure", "export const one = 'the-pure-one';\n"),
    ...pure("native", "export const two = 2;\n", { gypfile: true }),
    ...pure("installs", "export const three = 3;\n", { scripts: { postinstall: "node i.js" } }),
    ...pure("reads-its-files", "export const four = new URL('./x.wasm', import.meta.url).href;\n"),
    "node_modules/@scope/common/package.json":
      '{"name": "@scope/common", "version": "4.5.6", "main": "i.js"}',
    "node_modules/@scope/common/i.js":
      "exports.five = require('fs').readFileSync(__dirname + '/five.txt');\n",
    ...pure("pg", "export default {};\n"),
  });
  const outside = Object.fromEntries(
    [...built.outside].map(([name, { version, reason }]) => [name, `${version}: ${reason}`]),
  );
  expect(outside).toEqual({
    native: "1.2.3: it has native code",
    installs: "1.2.3: it has a script of its installation",
    "reads-its-files": "1.2.3: its code asks where it lies",
    "@scope/common": "4.5.6: its code asks where it lies",
    pg: "1.2.3: it is optional for kit",
  });
  expect(text(built, "src/agents/a.js")).toContain("the-pure-one");
  expect(text(built, "src/agents/a.js")).toMatch(/from "reads-its-files"/);
});

test("two versions of a package that is not bundled are refused, and the error names both", async () => {
  const native = { gypfile: true };
  const building = bundle({
    "src/agents/a.ts": 'import { a } from "middle";\nimport { b } from "native";\nexport default [a, b];\n',
    ...pure("native", "export const b = 1;\n", native),
    ...pure("middle", 'export { b as a } from "native";\n'),
    "node_modules/middle/node_modules/native/package.json":
      '{"name": "native", "version": "9.0.0", "type": "module", "main": "i.js", "gypfile": true}',
    "node_modules/middle/node_modules/native/i.js": "export const b = 9;\n",
  });
  await expect(building).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("9.0.0"),
  });
});

test("modules of the project keep their paths, also shared and lazily imported ones", async () => {
  const built = await bundle({
    "src/agents/a.ts":
      'import { b } from "../lib/b.mts";\nexport default async () => [b, await import("./c.js")];\n',
    "src/lib/b.mts": "enum Colour { red = 'the-red' }\nexport const b: string = Colour.red;\n",
    "src/agents/c.js": "export const c = new URL('./c.txt', import.meta.url);\n",
  });
  expect([...built.files.keys()].filter((path) => !path.startsWith("chunks/")).sort()).toEqual([
    "src/agents/a.js",
    "src/agents/c.js",
    "src/lib/b.mjs",
  ]);
  expect(built.reads).toEqual(["src/agents/c.txt"]);
});

test("modules find the files next to them, wherever the bundler writes their code", async () => {
  const files = {
    "src/agents/a.ts": 'import { texts } from "../lib/texts.ts";\nexport default texts;\n',
    "src/agents/b.ts":
      'import a from "./a.ts";\nimport { texts } from "../lib/texts.ts";\nexport default [a, texts];\n',
    "src/lib/texts.ts": `import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { folder, file, read } from "./old.cjs";
import { own } from "./own.ts";
const here = dirname(fileURLToPath(import.meta.url));
const { dirname: named } = import.meta;
export const texts: string[] = [
  readFileSync(new URL("../data/a%20%23.md", import.meta.url), "utf8"),
  readFileSync(join(here, "b.md"), "utf8"),
  readFileSync(import.meta.dirname + "/b.md", "utf8"),
  readFileSync(\`\${folder}/b.md\`, "utf8"),
  read(),
  own,
  file,
  String(named.endsWith("/src/lib")),
];
`,
    "src/lib/own.ts":
      'import { basename } from "node:path";\nconst __dirname: string = "mine";\nexport const own = __dirname + basename(import.meta.filename);\n',
    "src/lib/old.cjs": `const { join, basename } = require("node:path");
const places = { __dirname, __filename };
exports.folder = places.__dirname;
exports.file = basename(__filename);
exports.read = () => require("node:fs").readFileSync(join(__dirname, "b.md"), "utf8");
`,
    "src/data/a #.md": "A",
    "src/lib/b.md": "B",
  };
  const root = folderOf(files);
  const entries = ["src/agents/a.ts", "src/agents/b.ts"];
  const built = await bundleCode(await loadBundler(), { root, entries, optional: [] });
  expect(built.warnings.map((text) => text.replace(/ .*/, "")).sort()).toEqual([
    "src/lib/old.cjs:2",
    "src/lib/old.cjs:4",
    "src/lib/own.ts:3",
  ]);
  expect(built.reads).toEqual(["src/data/a #.md", "src/lib/b.md"]);
  const data = Object.fromEntries(Object.entries(files).filter(([path]) => path.endsWith(".md")));
  const code = [...built.files].map(([path, bytes]) => [path, Buffer.from(bytes).toString("utf8")]);
  const output = folderOf({ ...data, ...Object.fromEntries(code), "package.json": '{"type": "module"}' });
  const { default: texts } = await import(join(output, "src/agents/a.js"));
  expect(texts).toEqual(["A", "B", "B", "B", "B", "mineown.js", "old.js", "true"]);
});

test("a package of the same repository outside of the project is bundled with the files that it reads", async () => {
  const repository = folderOf({
    "libs/money/package.json":
      '{"name": "@acme/money", "version": "0.1.0", "type": "module", "main": "src/i.ts"}',
    "libs/money/src/i.ts":
      'import { readFileSync } from "node:fs";\nexport const unit: string = readFileSync(new URL("../data/unit.txt", import.meta.url), "utf8");\n',
    "libs/money/data/unit.txt": "cents",
    "apps/shop/src/agents/a.ts":
      'import { unit } from "@acme/money";\nimport { far } from "../../../../libs/far.ts";\nexport default [unit, far];\n',
    "libs/far.ts":
      'import { readFileSync } from "node:fs";\nexport const far: string = readFileSync(import.meta.dirname + "/../top.txt", "utf8") + readFileSync(import.meta.dirname + "/../../other.txt");\n',
    "top.txt": "top",
  });
  mkdirSync(join(repository, "apps/shop/node_modules/@acme"), { recursive: true });
  symlinkSync(join(repository, "libs/money"), join(repository, "apps/shop/node_modules/@acme/money"));
  const built = await bundleCode(await loadBundler(), {
    root: join(repository, "apps/shop"),
    entries: ["src/agents/a.ts"],
    optional: [],
  });
  expect(built.reads).toEqual(["../../libs/money/data/unit.txt", "../../top.txt"]);
  expect(built.warnings).toEqual([
    "../../libs/far.ts reads ../../other.txt, which lies outside of the project: the output lacks it.",
  ]);
  expect([...built.files.keys()].filter((path) => !path.startsWith("chunks/")).sort()).toEqual([
    "above/2/libs/far.js",
    "above/2/libs/money/src/i.js",
    "src/agents/a.js",
  ]);
});

test("a bundle contains the modules that a module requires through createRequire", async () => {
  const root = folderOf({
    "src/agents/a.ts": `import { createRequire } from "node:module";
import * as module from "node:module";
const require = createRequire(import.meta.url);
const ask = createRequire(import.meta.filename);
const { version } = require("../../package.json") as { version: string };
function shadow(ask: (name: string) => string): string { return ask("./not-there.cjs"); }
export default {
  version,
  old: require("../lib/old.cjs").old,
  table: module.createRequire(import.meta.url)("../lib/table.json").one,
  name: require("node:path").basename("/a/b"),
  shadow: shadow((name) => name),
  kind: typeof require.resolve,
};
`,
    "src/agents/b.ts": `import { createRequire } from "node:module";
const load = createRequire(import.meta.url);
export default (name: string): unknown => [load("../lib/old.cjs"), load(name)];
`,
    "src/lib/old.cjs": 'exports.old = "old " + require("./side.cjs").side;\n',
    "src/lib/side.cjs": 'exports.side = "side";\n',
    "src/lib/table.json": '{"one": 1}',
    "package.json": '{"type": "module", "version": "7.0.0"}',
  });
  const entries = ["src/agents/a.ts", "src/agents/b.ts"];
  const built = await bundleCode(await loadBundler(), { root, entries, optional: [] });
  // The name "ask" stands for two things, "require" is asked for more than a file, and "load" for any name.
  expect(built.warnings.map((text) => text.replace(/ .*/, ""))).toEqual([
    "src/agents/a.ts:3",
    "src/agents/a.ts:4",
    "src/agents/b.ts:2",
  ]);
  const code = [...built.files].map(([path, bytes]) => [path, Buffer.from(bytes).toString("utf8")]);
  const output = folderOf({ ...Object.fromEntries(code), "package.json": '{"type": "module"}' });
  const { default: found } = await import(join(output, "src/agents/a.js"));
  expect(found).toEqual({
    version: "7.0.0",
    old: "old side",
    table: 1,
    name: "b",
    shadow: "./not-there.cjs",
    kind: "function",
  });
});

test.each([
  [
    "a class",
    "class A { constructor(a) { this.a = a; } toString() { return 'a'; } static hasOwnProperty = 1 }",
  ],
  [
    "a method of that name",
    "class A { __dirname() { return 1; } static __filename = 2; get x() { return 3; } }",
  ],
  ["an object's key", "export const o = { __dirname: 1, __filename() { return 2; }, valueOf: 3 };"],
  [
    "a parameter",
    "export function f(__dirname, { a: __filename = 1 } = {}) { return __dirname + __filename; }",
  ],
  ["an import", 'import { here as __dirname } from "./here.js";\nexport { __dirname as __filename };'],
  ["a label", "__dirname: for (;;) { break __dirname; }"],
  ["names of every object", "export const x = [constructor, toString, valueOf];"],
])("code that does not ask for its own path is not changed: %s", async (_, code) => {
  const { parseAst } = await loadBundler();
  const place = { url: '"url"', filename: '"file"', dirname: '"folder"' };
  const given = `${code}\nexport const u = import.meta.url;`;
  expect(withPlace(parseAst, given, { lang: "js", place })).toBe(`${code}\nexport const u = "url";`);
});

test("the path of a module is inserted in default values, computed names and nested code", async () => {
  const { parseAst } = await loadBundler();
  const place = { url: '"url"', filename: '"file"', dirname: '"folder"' };
  const put = (code: string): string | undefined => withPlace(parseAst, code, { lang: "js", place });
  expect(put("export const f = (a = __dirname) => ({ [__filename]: a, __dirname });")).toBe(
    'export const f = (a = "folder") => ({ ["file"]: a, __dirname: "folder" });',
  );
  const deep = Array.from({ length: 3_000 }, () => "a").join(" + ");
  expect(put(`const a = 1; export const x = ${deep} + __dirname;`)).toMatch(/a \+ "folder";$/);
});

test("all modules and packages import the same copy of kit", async () => {
  const built = await bundle({
    "src/agents/a.ts":
      'import { createAgent } from "kit";\nimport { b } from "adapter";\nexport default createAgent(b);\n',
    ...pure(
      "adapter",
      'import { virtual } from "kit/sandboxes/virtual";\nexport const b = { sandbox: virtual() };\n',
    ),
  });
  expect(text(built, "src/agents/a.js")).toMatch(/from "#kit"/);
  expect(text(built, "src/agents/a.js")).toMatch(/from "#kit\/sandboxes\/virtual"/);
  expect(built.usesTesting).toBe(false);
});

test.each([
  [
    "a package that is not installed",
    'import x from "left-pad";\nexport default x;\n',
    /src\/agents\/a\.ts imports left-pad, which is not installed/,
  ],
  ["a file that is not there", 'import x from "./gone.ts";\nexport default x;\n', /gone\.ts/],
  ["code that does not parse", "export default {\n", /src\/agents\/a\.ts/],
])("%s is an error that names the file but no path of this machine", async (_, code, message) => {
  const error: unknown = await bundle({ "src/agents/a.ts": code }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "invalid_request", message: expect.stringMatching(message) });
  expect(String(error)).not.toContain(tmpdir());
  expect(String(error)).not.toContain(process.cwd());
});

test("files that code reads next to itself are included, or reported if kit cannot determine them", async () => {
  const { parseAst } = await loadBundler();
  const code = `
import { readFile } from "node:fs/promises";
const a = new URL("./a%20b.md", import.meta.url);
const b = join(import.meta.dirname, "prompts", "b.md");
const c = \`\${import.meta.dirname}/c.md\`;
const d = path.resolve(__dirname, "d");
await readFile("e.md");
await loadSkill("skills/f");
const far = new URL("https://example.com");
const unclear = import.meta.url + name + process.env.CHAT_TOKEN + ctx.env["PAY_KEY"] + process.env.HOME;
await import(name);
// new URL("./comment.md", import.meta.url)
const text = 'new URL("./text.md", import.meta.url)';
`;
  expect(findReferences(parseAst, code, "ts")).toEqual({
    files: [
      { path: "./a b.md", from: "module" },
      { path: "prompts/b.md", from: "module" },
      { path: "c.md", from: "module" },
      { path: "d", from: "module" },
      { path: "e.md", from: "root" },
      { path: "skills/f", from: "root" },
    ],
    variables: ["CHAT_TOKEN", "PAY_KEY"],
    unclear: [10],
    dynamicImports: [11],
  });
});

const app = (files: Readonly<Record<string, string>>): Application =>
  ({
    files: new Map(Object.entries(files).map(([path, content]) => [path, Buffer.from(content)])),
    kitVersion: "1.0.0",
  }) as unknown as Application;

test("a new build removes files that an earlier build wrote, and keeps the state of a server that runs there", async () => {
  const folder = join(folderOf({}), "out");
  const options = { folder, target: "node", force: false };
  await writeApplication(app({ "a.js": "1", "src/b.js": "2" }), options);
  mkdirSync(join(folder, ".kit"));
  writeFileSync(join(folder, ".kit/sessions.db"), "kept");
  expect(await writeApplication(app({ "a.js": "1", "c.js": "3" }), options)).toEqual({
    written: 2,
    removed: 1,
  });
  expect(readFileSync(join(folder, ".kit/sessions.db"), "utf8")).toBe("kept");
  expect(() => readFileSync(join(folder, "src/b.js"))).toThrow();
});

test("a folder with other files is left unchanged", async () => {
  const folder = folderOf({ "index.html": "mine" });
  const options = { folder, target: "node", force: false };
  await expect(writeApplication(app({ "a.js": "1" }), options)).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("index.html"),
  });
  expect(() => readFileSync(join(folder, "a.js"))).toThrow();
});

test("neither a manifest nor a link can make the build write outside of the output", async () => {
  const outside = folderOf({ "precious.txt": "mine" });
  const folder = folderOf({
    "kit-build.json": JSON.stringify({
      files: { "../precious.txt": "", [`/${outside}/precious.txt`]: "", "link/precious.txt": "" },
    }),
  });
  symlinkSync(outside, join(folder, "link"));
  await writeApplication(app({ "a.js": "1" }), { folder, target: "node", force: false });
  expect(readFileSync(join(outside, "precious.txt"), "utf8")).toBe("mine");
  await expect(
    writeApplication(app({ "link/b.js": "1" }), { folder, target: "node", force: false }),
  ).rejects.toMatchObject({ code: "forbidden" });
  expect(() => readFileSync(join(outside, "b.js"))).toThrow();
});

test("a file that a person has changed is kept and the difference reported, unless --force is given", async () => {
  const folder = folderOf({ Dockerfile: "mine\n" });
  const files = [
    { path: "Dockerfile", content: "kit's\n" },
    { path: "fly.toml", content: "new\n" },
  ];
  const differences = [{ path: "Dockerfile", before: "mine\n", after: "kit's\n" }];
  expect(await writeTargetFiles(files, { folder, force: false, check: true })).toEqual({
    written: [],
    differences,
  });
  expect(await writeTargetFiles(files, { folder, force: false, check: false })).toEqual({
    written: ["fly.toml"],
    differences,
  });
  expect(readFileSync(join(folder, "Dockerfile"), "utf8")).toBe("mine\n");
  expect(await writeTargetFiles(files, { folder, force: true, check: false })).toEqual({
    written: ["Dockerfile"],
    differences,
  });
  expect(readFileSync(join(folder, "Dockerfile"), "utf8")).toBe("kit's\n");
});
