/**
 * Writes the JSON Schemas of the two records and of the configuration into `schema/`; `--check` only compares.
 *
 * The schemas of records come from those of HTTP replies. A reply contains a complete record; a user's own file can leave
 * out fields with a default, so the published schemas make those optional.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { configSchema } from "../src/app/config/config-schema.ts";
import { guidelineSchema } from "../src/protocol/guideline.ts";
import { specBlockSchema } from "../src/protocol/spec-block.ts";
import { type FieldComments, readFieldComments } from "./field-comments.ts";
import { repositoryRoot } from "./files.ts";

/** The files of configuration tables that belong to a separate room. */
const homes: Readonly<Record<string, string>> = {
  specs: "project/project-config",
  guidelines: "project/project-config",
  mcp: "mcp/servers/mcp-config",
  providers: "models/provider-config",
  server: "app/config/server-schema",
  sandbox: "app/config/sandbox-schema",
};

type JsonSchema = Record<string, unknown>;

const check = process.argv.includes("--check");
const schemas = {
  "spec-block.json": toPublished(specBlockSchema, {
    title: "Spec block",
    description: "The record that kit makes of a specification, whatever its framework.",
    defaults: { tags: [], lifecycle: "active", priority: "medium", metadata: {} },
  }),
  "guideline.json": toPublished(guidelineSchema, {
    title: "Guideline",
    description: "One coding rule of a repository.",
    defaults: {},
  }),
  "config.json": toConfigSchema(await readFieldComments()),
};

await mkdir(join(repositoryRoot, "schema"), { recursive: true });
for (const [name, schema] of Object.entries(schemas)) {
  const file = join(repositoryRoot, "schema", name);
  const text = `${JSON.stringify(schema, null, 2)}\n`;
  if ((await readFile(file, "utf8").catch(() => "")) === text) continue;
  if (check) {
    console.error(`schema/${name} does not match the sources. Run "npm run schema".`);
    process.exitCode = 1;
  } else {
    await writeFile(file, text);
    console.log(`Wrote schema/${name}`);
  }
}

function toPublished(
  schema: z.ZodType,
  options: { title: string; description: string; defaults: Readonly<Record<string, unknown>> },
): JsonSchema {
  const { $schema, $ref, $defs = {} } = z.toJSONSchema(schema, { target: "draft-2020-12", io: "input" });
  const { [$ref?.split("/").at(-1) ?? ""]: record, ...others } = $defs;
  if (record === undefined) throw new Error(`The schema of "${options.title}" has no name.`);
  const properties = Object.entries(record.properties ?? {}).map(([name, property]) => [
    name,
    {
      ...(typeof property === "object" ? property : {}),
      ...(name in options.defaults ? { default: options.defaults[name] } : {}),
      ...(name.endsWith("_at")
        ? { anyOf: [{ format: "date-time", pattern: "^\\S+$" }, { format: "date" }] }
        : {}),
    },
  ]);
  return {
    $schema,
    title: options.title,
    description: options.description,
    ...record,
    properties: Object.fromEntries(properties),
    required: (record.required ?? []).filter((name) => !(name in options.defaults)),
    ...(Object.keys(others).length === 0 ? {} : { $defs: others }),
  };
}

/** Returns the schema of `kit.toml` for editors, without the settings that only a program can make. */
function toConfigSchema(comments: FieldComments): JsonSchema {
  const schema = z.toJSONSchema(configSchema, { target: "draft-7", io: "input", unrepresentable: "any" });
  const commentOf: CommentOf = (field, siblings, table) =>
    comments.of(field, siblings, homes[table] ?? "app/config/config-schema");
  const { $schema, ...tables } = describe(schema, commentOf) ?? {};
  return {
    $schema,
    title: "Configuration of kit",
    description: "The tables of kit.toml. Everything is optional.",
    ...tables,
  };
}

type CommentOf = (field: string, siblings: ReadonlySet<string>, table: string) => string | undefined;

/** Puts the comments of fields into a schema; `undefined` if a file can express none of its values. */
function describe(schema: unknown, commentOf: CommentOf, table = ""): JsonSchema | undefined {
  if (!isSchema(schema) || Object.keys(schema).length === 0) return undefined;
  const described: JsonSchema = { ...schema };
  const { properties, items, anyOf, additionalProperties } = schema;
  if (isSchema(properties)) {
    const fields = new Set(Object.keys(properties));
    described.properties = Object.fromEntries(
      Object.entries(properties).flatMap(([field, property]): [string, JsonSchema | false][] => {
        if (property === false) return [[field, property]];
        const inner = describe(property, commentOf, table || field);
        if (inner === undefined) return [];
        const description = commentOf(field, fields, table);
        return [[field, description === undefined ? inner : { description, ...inner }]];
      }),
    );
  }
  if (Array.isArray(anyOf)) {
    const choices = anyOf
      .map((choice) => describe(choice, commentOf, table))
      .filter((choice) => choice !== undefined);
    if (choices.length === 0) return undefined;
    if (choices.length === 1) return choices[0];
    described.anyOf = choices;
  }
  if (isSchema(additionalProperties))
    described.additionalProperties = describe(additionalProperties, commentOf, table);
  if (items !== undefined) {
    const item = describe(items, commentOf, table);
    if (item === undefined) return undefined;
    described.items = item;
  }
  return described;
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
