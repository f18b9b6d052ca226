import { isRecord } from "../../base/record.ts";
import { limits } from "../limits.ts";
import {
  type NormalizedSchema,
  normalizeSchema,
  pointerOf,
  SchemaFault,
  type SchemaObject,
} from "./normalize-schema.ts";

/** The schema of a tool's arguments in the forms for providers and for kit's own validator. */
export interface VettedSchema {
  /** For the model. Always an object schema. */
  readonly bounded: SchemaObject;
  /** For the validator, which runs in bounded time: also with patterns that providers refuse. */
  readonly checked: SchemaObject;
  /** Patterns that only the server checks, because they cannot be matched in linear time. */
  readonly leftToServer: readonly string[];
  /** Keywords that providers refuse at the root, to add to the description; absent if there are none. */
  readonly alternatives?: SchemaObject;
}

/** Providers refuse a schema with one of these at its root. */
const notAtRoot: ReadonlySet<string> = new Set([
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "enum",
  "const",
  "$ref",
]);

// Anthropic refuses a request in which one tool has a property with another name.
const propertyName = /^[a-zA-Z0-9_.-]{1,64}$/;

/** Checks the input schema of a tool. Throws `SchemaFault`. */
export function vetSchema(raw: unknown): VettedSchema {
  checkSize(raw);
  const complete = normalizeSchema(withoutRootReference(raw), () => true);
  const checked: SchemaObject = { ...complete.schema, type: "object" };
  const { schema } = normalizeSchema(withoutRootReference(raw), isJavaScriptPattern);
  if (schema.type !== undefined && schema.type !== "object")
    throw new SchemaFault("does not describe an object");
  for (const name of Object.keys(isRecord(schema.properties) ? schema.properties : {})) {
    if (!propertyName.test(name)) throw new SchemaFault("has a property whose name providers refuse");
  }
  const entries = Object.entries({ ...schema, type: "object" });
  const alternatives = entries.filter(([keyword]) => notAtRoot.has(keyword));
  const bounded = {
    properties: {},
    ...Object.fromEntries(entries.filter(([keyword]) => !notAtRoot.has(keyword))),
  };
  return {
    bounded,
    checked,
    leftToServer: patternsOf(complete).filter((pattern) => notLinear.test(pattern)),
    ...(alternatives.length === 0 ? {} : { alternatives: Object.fromEntries(alternatives) }),
  };
}

/** Look-around and back-references. */
const notLinear = /\(\?<?[=!]|\\[1-9]|\\k</;

function patternsOf({ parts }: NormalizedSchema): readonly string[] {
  return [...parts.values()].flatMap((part) => {
    if (!isRecord(part)) return [];
    const names = isRecord(part.patternProperties) ? Object.keys(part.patternProperties) : [];
    return typeof part.pattern === "string" ? [part.pattern, ...names] : names;
  });
}

// Providers parse patterns as JavaScript or ignore them. A pattern of another language, such as `(?i)`, is dropped
// without dropping the tool.
function isJavaScriptPattern(pattern: string): boolean {
  return ["u", ""].some((flags) => {
    try {
      return new RegExp(pattern, flags) !== null;
    } catch {
      return false;
    }
  });
}

// Generators often write a schema as one definition and a reference to it; providers need properties at the root.
function withoutRootReference(raw: unknown): unknown {
  if (!isRecord(raw) || typeof raw.$ref !== "string" || raw.properties !== undefined) return raw;
  const { $ref: reference, ...rest } = raw;
  let target: unknown = raw;
  for (const token of pointerOf(raw.$ref).split("/").slice(1)) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    target = isRecord(target) && Object.hasOwn(target, name) ? target[name] : undefined;
  }
  return isRecord(target) && target !== raw ? { ...target, ...rest } : raw;
}

/** Throws `SchemaFault` for a schema that is too long, too deep or not Unicode. */
export function checkSize(raw: unknown): void {
  let text: string | undefined;
  try {
    text = JSON.stringify(raw);
  } catch (error) {
    // Nested so deeply that the stack overflows.
    throw new SchemaFault(`is deeper than ${limits.schemaDepth} levels`, { cause: error });
  }
  if (text === undefined) throw new SchemaFault("is missing");
  if (text.length > limits.schemaChars)
    throw new SchemaFault(`is longer than ${limits.schemaChars} characters`);
  // JSON.stringify escapes half a surrogate pair, which providers refuse as invalid Unicode.
  if (/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(text)) throw new SchemaFault("is not Unicode");
}
