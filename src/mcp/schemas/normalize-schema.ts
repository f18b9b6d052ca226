import { percentDecoded } from "../../base/percent.ts";
import { isRecord } from "../../base/record.ts";
import { schemaKeywords, schemaTypes } from "../../json-schema/schema-document.ts";
import { cleanText } from "../clean-text.ts";
import { limits } from "../limits.ts";

/** A checked schema object: known keywords only, each with a value of the right shape. */
export type SchemaObject = { readonly [keyword: string]: unknown };

/** Why a schema cannot be used; the message continues the sentence "its schema …". */
export class SchemaFault extends Error {}

/** A schema reduced to the keywords that providers need, and its parts by JSON pointer. */
export interface NormalizedSchema {
  readonly schema: SchemaObject;
  readonly parts: ReadonlyMap<string, unknown>;
}

/**
 * Checks a JSON Schema from a server. Throws `SchemaFault` if it is invalid, or if a provider would refuse it, and
 * with it every other tool of the request.
 *
 * Tuples of older drafts (`items: [...]`) become `prefixItems`, and texts are cleaned. Unknown keywords are dropped,
 * and patterns for which `keepsPattern` returns false.
 */
export function normalizeSchema(raw: unknown, keepsPattern: (pattern: string) => boolean): NormalizedSchema {
  const parts = new Map<string, unknown>();
  const references: string[] = [];
  const schema = readSchema(raw, { pointer: "", depth: 0 }, { parts, references, keepsPattern });
  if (!isRecord(schema)) throw new SchemaFault("is not an object");
  for (const reference of references) {
    if (!parts.has(pointerOf(reference)))
      throw new SchemaFault(`refers to ${quoteText(reference)}, which does not exist in it`);
  }
  return { schema, parts };
}

/** The pointer of a local `$ref`: `#/$defs/a%20b` is `/$defs/a b`. */
export function pointerOf(reference: string): string {
  return percentDecoded(reference.slice(1));
}

interface SchemaPosition {
  readonly pointer: string;
  readonly depth: number;
}

interface Reading {
  readonly parts: Map<string, unknown>;
  readonly references: string[];
  readonly keepsPattern: (pattern: string) => boolean;
}

function readSchema(raw: unknown, position: SchemaPosition, reading: Reading): unknown {
  if (position.depth > limits.schemaDepth)
    throw new SchemaFault(`is deeper than ${limits.schemaDepth} levels`);
  if (typeof raw !== "boolean" && !isRecord(raw)) throw new SchemaFault(`has no schema at ${at(position)}`);
  const schema = typeof raw === "boolean" ? raw : readKeywords(withPrefixItems(raw), position, reading);
  reading.parts.set(position.pointer, schema);
  return schema;
}

function readKeywords(raw: SchemaObject, position: SchemaPosition, reading: Reading): SchemaObject {
  const entries: [string, unknown][] = [];
  for (const [keyword, value] of Object.entries(raw)) {
    if (!schemaKeywords.has(keyword)) continue;
    if (keyword === "pattern" && !(typeof value === "string" && reading.keepsPattern(value))) continue;
    const keywordPosition = { pointer: `${position.pointer}/${escapeToken(keyword)}`, depth: position.depth };
    entries.push([keyword, readKeyword(keyword, value, { position: keywordPosition, reading })]);
  }
  return Object.fromEntries(entries);
}

function readKeyword(
  keyword: string,
  value: unknown,
  { position, reading }: { readonly position: SchemaPosition; readonly reading: Reading },
): unknown {
  const positionOf = (name: string | number): SchemaPosition => ({
    pointer: `${position.pointer}/${escapeToken(String(name))}`,
    depth: position.depth + 1,
  });
  const wrong = (): SchemaFault => new SchemaFault(`is wrong at ${at(position)}`);
  switch (schemaKeywords.get(keyword)) {
    case "schema":
      return readSchema(value, { ...position, depth: position.depth + 1 }, reading);
    case "schemas":
      if (!Array.isArray(value) || value.length === 0) throw wrong();
      return value.map((item, index) => readSchema(item, positionOf(index), reading));
    case "schema_map":
      if (!isRecord(value)) throw wrong();
      return Object.fromEntries(
        Object.entries(value).map(([name, item]) => [
          checkName(name),
          readSchema(item, positionOf(name), reading),
        ]),
      );
    case "reference":
      if (typeof value !== "string") throw wrong();
      if (!value.startsWith("#"))
        throw new SchemaFault(`refers to ${quoteText(value)}, which is outside the schema`);
      reading.references.push(value);
      return value;
    case "types":
      if (!isTypes(value)) throw wrong();
      return value;
    case "number":
      if (typeof value !== "number" || !Number.isFinite(value)) throw wrong();
      return value;
    case "count":
      if (typeof value !== "number" || !Number.isInteger(value) || value < 0) throw wrong();
      return value;
    case "flag":
      if (typeof value !== "boolean") throw wrong();
      return value;
    case "text":
      if (typeof value !== "string") throw wrong();
      return keyword === "pattern" ? value : cleanText(value, limits.descriptionChars);
    case "texts":
      if (!isTexts(value)) throw wrong();
      return [...new Set(value)];
    case "text_lists":
      if (!isRecord(value) || !Object.values(value).every(isTexts)) throw wrong();
      return value;
    case "values":
      if (!Array.isArray(value) || value.length === 0 || !isShallow(value, limits.schemaDepth)) throw wrong();
      return value;
    default:
      if (!isShallow(value, limits.schemaDepth)) throw wrong();
      return value;
  }
}

// Before 2020-12, `items` could be a list for a tuple, and `additionalItems` the schema of further items.
function withPrefixItems(raw: SchemaObject): SchemaObject {
  const { items, additionalItems, ...rest } = raw;
  if (!Array.isArray(items)) return raw;
  return {
    ...rest,
    prefixItems: items,
    ...(additionalItems === undefined ? {} : { items: additionalItems }),
  };
}

function checkName(name: string): string {
  if (name === "__proto__") throw new SchemaFault("has a property named __proto__");
  return name;
}

function isTypes(value: unknown): boolean {
  if (!Array.isArray(value)) return types.has(value);
  return value.length > 0 && new Set(value).size === value.length && value.every((type) => types.has(type));
}

// A deeper value would overflow the stack of code that builds a request.
function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((item) => isShallow(item, levels - 1));
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function escapeToken(token: string): string {
  return token.replaceAll("~", "~0").replaceAll("/", "~1");
}

function at(position: SchemaPosition): string {
  return position.pointer === "" ? "its root" : quoteText(position.pointer);
}

function quoteText(text: string): string {
  return `"${cleanText(text, 100)}"`;
}

const types: ReadonlySet<unknown> = new Set(schemaTypes);
