import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Ajv } from "ajv";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { parse } from "smol-toml";
import { beforeAll, expect, test } from "vitest";
import { repositoryRoot } from "../scripts/files.ts";
import { parseConfig } from "../src/app/config/config-schema.ts";

const block = {
  id: "limit-1",
  path: "docs/limits.json",
  framework: "custom",
  spec_type: "constraint",
  title: "Search answers within 50 ms",
  content: "A search answers within 50 ms.",
};
let isSpecBlock: ValidateFunction;
let isGuideline: ValidateFunction;

beforeAll(async () => {
  const ajv = new Ajv2020({ strict: true, allErrors: true });
  formats.default(ajv);
  isSpecBlock = ajv.compile(
    JSON.parse(await readFile(join(repositoryRoot, "schema/spec-block.json"), "utf8")),
  );
  isGuideline = ajv.compile(
    JSON.parse(await readFile(join(repositoryRoot, "schema/guideline.json"), "utf8")),
  );
});

test("every spec block and guideline of the example meets its published schema", async () => {
  const specs = await readExample("specs");
  const guidelines = await readExample("guidelines");
  expect(specs.length).toBeGreaterThan(40);
  expect(guidelines.length).toBeGreaterThan(10);
  expect(specs.flatMap((spec) => (isSpecBlock(spec) ? [] : [isSpecBlock.errors]))).toEqual([]);
  expect(guidelines.flatMap((guideline) => (isGuideline(guideline) ? [] : [isGuideline.errors]))).toEqual([]);
});

test("a block needs its six required fields and no other", () => {
  expect(isSpecBlock(block)).toBe(true);
  for (const field of Object.keys(block)) {
    expect(isSpecBlock({ ...block, [field]: undefined }), field).toBe(false);
  }
});

test("enums, dates and the length of a summary are checked", () => {
  const wrong = [
    { framework: "fw_z" },
    { spec_type: "wish" },
    { lifecycle: "gone" },
    { priority: "urgent" },
    { summary: "x".repeat(501) },
    { created_at: "yesterday" },
    { updated_at: "2024-13-45" },
  ];
  for (const fields of wrong)
    expect(isSpecBlock({ ...block, ...fields }), JSON.stringify(fields)).toBe(false);
  expect(isSpecBlock({ ...block, created_at: "2026-01-31", updated_at: "2026-01-31T12:00:00Z" })).toBe(true);
});

async function readExample(what: "specs" | "guidelines"): Promise<readonly unknown[]> {
  const all = what === "specs" ? ["--all"] : [];
  const args = [join(repositoryRoot, "bin/kit.mjs"), what, "list", "--json", ...all];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: join(repositoryRoot, "examples/shop"),
    maxBuffer: 64 * 1024 * 1024,
  });
  const page: Record<string, readonly unknown[]> = JSON.parse(stdout);
  return page[what] ?? [];
}

test.each([
  'store = "postgres://host/db"\n[agent]\nmodel = ["a/b", "c/d"]\nallowed_commands = ["git", { command = "make", unsafe = true }]',
  '[mcp.servers.files]\ncommand = "npx"\nenv = { LEVEL = "debug" }\n[sandbox.options]\nnetwork = "any"\n[agent]\nsandbox = "e2b"',
  '[providers.local]\nbase_url = "http://127.0.0.1:1"\n[providers.local.prices]\nm = { input = 1, output = 2 }',
  "[server]\nprot = 1",
  '[server]\nport = "3000"',
  'store = "redis://host"',
  '[agent]\nsandbox = "docker"',
  "[agent]\nallowed_commands = [{ unsafe = true }]",
])("an editor that has the schema of the configuration says of %j what kit says", async (toml) => {
  const schema = JSON.parse(await readFile(join(repositoryRoot, "schema/config.json"), "utf8"));
  const isConfig = new Ajv({ strictTypes: false }).compile(schema);
  expect(isConfig(parse(toml))).toBe(parseConfig(parse(toml)).issues.length === 0);
});

test("the schema of the configuration describes its keys", async () => {
  const text = await readFile(join(repositoryRoot, "schema/config.json"), "utf8");
  expect(JSON.parse(text).properties.server.properties.port.description).toBe(
    "0 to 65535; default 2024. 0 chooses any free port.",
  );
});
