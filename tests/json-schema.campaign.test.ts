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

test("every spec block and guideline of the example matches its published schema", async () => {
  const specs = await readExample("specs");
  const guidelines = await readExample("guidelines");
  expect(specs.length).toBeGreaterThan(40);
  expect(guidelines.length).toBeGreaterThan(10);
  expect(specs.flatMap((spec) => (isSpecBlock(spec) ? [] : [isSpecBlock.errors]))).toEqual([]);
  expect(guidelines.flatMap((guideline) => (isGuideline(guideline) ? [] : [isGuideline.errors]))).toEqual([]);
});

test("a block requires its six required fields and no other", () => {
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
])("an editor with the configuration's schema reports the same fault as kit: %j", async (toml) => {
  const schema = JSON.parse(await readFile(join(repositoryRoot, "schema/config.json"), "utf8"));
  const isConfig = new Ajv({ strictTypes: false }).compile(schema);
  expect(isConfig(parse(toml))).toBe(parseConfig(parse(toml)).issues.length === 0);
});

/** Values of every kind; some are valid for some keys. */
const someValues: readonly unknown[] = [
  ...[null, true, false, 0, 1, -1, 1.5, 1e300, [], {}, { x: 1 }, { "": "" }, [1], [""], [null], [[]]],
  ...["", "x", "a b", "\0", "Kiro", "agnets", "8080", "/x", "../x", "{}", "x".repeat(5_000)],
  ...[
    "http://",
    "http://h",
    "HTTPS://h:1/p",
    "http://u:p@h",
    "http://h?q",
    "http://h#f",
    "http://a b",
    "//h",
  ],
  ...["postgres://", "postgresql://u:p@h:1/d?x=y", "postgres://u:p/w@h/d", "postgres://h/d#p", "mysql://h"],
  ...["*.example.com", "[::1]:80", "h:99999", "*", "a..b", "https://h/p", "-a"],
].flatMap((value): unknown[] => (typeof value === "string" ? [value, [value]] : [value]));

type ConfigSchema = { readonly [keyword: string]: unknown };

/** Configurations with one value at each key of the schema, and the other keys that the key needs. */
function* configurations(
  schema: ConfigSchema,
  within: (value: unknown) => unknown,
): Generator<{ readonly path: string; readonly of: (value: unknown) => unknown }> {
  const {
    properties,
    additionalProperties,
    items,
    anyOf = [],
    required = [],
  } = schema as {
    properties?: Record<string, ConfigSchema>;
    additionalProperties?: ConfigSchema | boolean;
    items?: ConfigSchema;
    anyOf?: ConfigSchema[];
    required?: string[];
  };
  const needed = Object.fromEntries(
    required.map((key) => [key, properties?.[key]?.type === "number" ? 1 : "x"]),
  );
  const table = properties?.command === undefined || properties.url === undefined ? needed : { command: "x" };
  for (const [key, property] of Object.entries(properties ?? {})) {
    const of = (value: unknown): unknown => {
      const isOfAddress = key === "url" || key === "headers";
      return within({
        ...(table.command !== undefined && isOfAddress ? { url: "http://h" } : table),
        [key]: value,
      });
    };
    yield { path: key, of };
    for (const inner of configurations(property, of)) yield { path: `${key}.${inner.path}`, of: inner.of };
  }
  if (typeof additionalProperties === "object")
    for (const key of ["x", "a__b", "a b"]) {
      const of = (value: unknown): unknown => within({ [key]: value });
      yield { path: key, of };
      for (const inner of configurations(additionalProperties, of))
        yield { path: `${key}.${inner.path}`, of: inner.of };
    }
  if (items !== undefined) for (const inner of configurations(items, (value) => within([value]))) yield inner;
  for (const choice of anyOf) yield* configurations(choice, within);
}

test("the schema of the configuration refuses what kit refuses, and nothing else", async () => {
  const schema = JSON.parse(await readFile(join(repositoryRoot, "schema/config.json"), "utf8"));
  const isConfig = new Ajv({ strictTypes: false }).compile(schema);
  const differing = new Set<string>();
  let accepted = 0;
  for (const { path, of } of configurations(schema, (value) => value))
    for (const value of someValues) {
      const config = of(value) as object;
      const sandboxes = path.startsWith("sandbox.options") ? ["virtual", "local", "e2b"] : [];
      const all = [config, ...sandboxes.map((sandbox) => ({ ...config, agent: { sandbox } }))];
      for (const configuration of all) {
        const isKits = parseConfig(configuration).issues.length === 0;
        if (isKits) accepted += 1;
        if (isConfig(configuration) !== isKits)
          differing.add(`${isKits ? "kit" : "schema"} accepts ${path} ${JSON.stringify(value)}`);
      }
    }
  expect(accepted).toBeGreaterThan(1_000);
  // A JSON Schema pattern cannot express what a number in a text means.
  const numbers = ["agent.allow_network", "sandbox.options.network"].flatMap((key) => [
    `schema accepts ${key} ["8080"]`,
    `schema accepts ${key} ["h:99999"]`,
  ]);
  expect([...differing]).toEqual(numbers);
});

test("the configuration's schema describes its keys", async () => {
  const text = await readFile(join(repositoryRoot, "schema/config.json"), "utf8");
  expect(JSON.parse(text).properties.server.properties.port.description).toBe(
    "0 to 65535; default 2024. 0 chooses any free port.",
  );
});
