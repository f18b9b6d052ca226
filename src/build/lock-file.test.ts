import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, expect, test } from "vitest";
import { lockOutput } from "./lock-file.ts";
import { findPackage, readJson } from "./packages.ts";

const repository = fileURLToPath(new URL("../../", import.meta.url));
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function folderOf(files: Readonly<Record<string, unknown>>): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "kit-lock-")));
  folders.push(root);
  for (const [path, value] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), JSON.stringify(value));
  }
  return root;
}

const engines = { node: ">=24" };
const outputOf = (dependencies: Readonly<Record<string, string>>) => ({
  name: "shop",
  dependencies,
  engines,
});

function locked(root: string, dependencies: Readonly<Record<string, string>>): Record<string, unknown> {
  const lock = lockOutput(root, outputOf(dependencies));
  return "text" in lock ? JSON.parse(lock.text).packages : lock;
}

test("npm accepts the lock file of an output, which has all packages at the versions and digests of the project's", async () => {
  const names = ["pg", "@restatedev/restate-sdk", "@opentelemetry/api"];
  const dependencies = Object.fromEntries(
    names.map((name) => [name, findPackage(name, repository)?.version ?? ""]),
  );
  const packages = locked(repository, dependencies);
  const { packages: before } = readJson(join(repository, "package-lock.json")) as Record<
    string,
    Record<string, object>
  >;
  expect(packages["node_modules/pg-protocol"]).toEqual({
    ...before?.["node_modules/pg-protocol"],
    dev: undefined,
  });
  expect(packages).not.toHaveProperty("node_modules/typescript");
  const root = folderOf({
    "package.json": outputOf(dependencies),
    "package-lock.json": { name: "shop", lockfileVersion: 3, packages },
  });
  const args = ["ci", "--omit=dev", "--dry-run", "--offline", "--ignore-scripts", "--no-audit"];
  await promisify(execFile)("npm", args, { cwd: root });
});

const entries = {
  "node_modules/a": { version: "1.0.0", dependencies: { b: "^1.0.0" }, dev: true },
  "node_modules/a/node_modules/b": { version: "1.5.0", optionalDependencies: { c: "*", d: "*" } },
  "node_modules/b": { version: "2.0.0" },
  "node_modules/c": { version: "3.0.0", devOptional: true },
};

test("packages keep their places below those that need them, and those of a workspace move to the output", () => {
  const alone = folderOf({ "package-lock.json": { packages: entries } });
  expect(locked(alone, { a: "1.0.0" })).toEqual({
    "": outputOf({ a: "1.0.0" }),
    "node_modules/a": { version: "1.0.0", dependencies: { b: "^1.0.0" } },
    "node_modules/a/node_modules/b": { version: "1.5.0", optionalDependencies: { c: "*", d: "*" } },
    "node_modules/c": { version: "3.0.0", optional: true },
  });
  const workspaces = folderOf({
    "package-lock.json": { packages: { ...entries, "apps/shop/node_modules/e": { version: "4.0.0" } } },
    "apps/shop/package.json": {},
  });
  expect(Object.keys(locked(join(workspaces, "apps/shop"), { c: "3.0.0", e: "4.0.0" }))).toEqual([
    "",
    "node_modules/c",
    "node_modules/e",
  ]);
});

test.each([
  ["no lock file", {}, "the project has no package-lock.json"],
  ["another version", { packages: { "node_modules/a": { version: "9.0.0" } } }, "does not have a 1.0.0"],
  [
    "a gap",
    { packages: { "node_modules/a": entries["node_modules/a"] } },
    "does not have b, which node_modules/a needs",
  ],
  [
    "a folder as a package",
    { packages: { "node_modules/a": { version: "1.0.0", link: true } } },
    "a is a folder",
  ],
])("with %s there is no lock file, and the reason says so", (name, lock, reason) => {
  const root = folderOf(name === "no lock file" ? { ".git/HEAD": "" } : { "package-lock.json": lock });
  expect(lockOutput(root, outputOf({ a: "1.0.0" }))).toEqual({ missing: expect.stringContaining(reason) });
});
