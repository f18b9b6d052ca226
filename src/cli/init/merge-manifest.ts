import { readFileSync, writeFileSync } from "node:fs";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";

/** One field that a package.json lacks: `type`, or a key of one of its tables. */
export interface MissingField {
  readonly table: "scripts" | "dependencies" | "devDependencies" | undefined;
  readonly key: string;
  readonly value: string;
}

/** The script that npm writes into a new package in place of tests. */
const noTests = /no test specified/;

/** Finds the fields of a new project's package.json that an existing one lacks. It replaces no script of a person. */
export function missingFields(
  manifest: Readonly<Record<string, unknown>>,
  template: Readonly<Record<string, unknown>>,
): readonly MissingField[] {
  const missing: MissingField[] = [];
  if (manifest.type !== template.type)
    missing.push({ table: undefined, key: "type", value: String(template.type) });
  for (const table of ["scripts", "dependencies", "devDependencies"] as const) {
    const present = table === "scripts" ? tableAt(manifest, table) : dependenciesOf(manifest);
    for (const [key, value] of Object.entries(tableAt(template, table))) {
      const before = present[key];
      const isPlaceholder = table === "scripts" && typeof before === "string" && noTests.test(before);
      if (before === undefined || isPlaceholder) missing.push({ table, key, value: String(value) });
    }
  }
  return missing;
}

function dependenciesOf(manifest: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const tables = ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"];
  return Object.assign({}, ...tables.map((table) => tableAt(manifest, table)));
}

function tableAt(
  manifest: Readonly<Record<string, unknown>>,
  table: string,
): Readonly<Record<string, unknown>> {
  const value = manifest[table];
  return isRecord(value) ? value : {};
}

function parseManifest(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text);
  } catch (cause) {
    // biome-ignore lint/style/useErrorCause: the cause is among its fields.
    throw new KitError({
      code: "invalid_request",
      message: "package.json is not JSON.",
      hint: "Mend it, and run 'kit init --merge' again.",
      cause,
    });
  }
}

/** Adds the fields to a package.json, and keeps its order, its indentation and its other fields. */
export function mergeManifest(file: string, fields: readonly MissingField[]): void {
  const text = readFileSync(file, "utf8");
  const manifest = parseManifest(text);
  for (const { table, key, value } of fields) {
    if (table === undefined) manifest[key] = value;
    else manifest[table] = { ...tableAt(manifest, table), [key]: value };
  }
  const [, indent = "  "] = /^\{\r?\n([ \t]+)"/.exec(text) ?? [];
  writeFileSync(file, `${JSON.stringify(manifest, undefined, indent)}\n`);
}
