import { isRecord } from "../../base/record.ts";
import { limits } from "../limits.ts";
import {
  type NormalizedSchema,
  normalizeSchema,
  pointerOf,
  SchemaFault,
  type SchemaObject,
} from "./normalize-schema.ts";

/** The schema of a tool's arguments, fit for providers and for kit's own validator. */
export interface VettedSchema {
  /** For the model. Always an object schema. */
  readonly bounded: SchemaObject;
  /** For the validator, which takes bounded time: with patterns that no provider takes. */
  readonly checked: SchemaObject;
  /** Patterns of it that nothing but the server checks: they cannot be matched in linear time. */
  readonly leftToServer: readonly string[];
  /** Keywords that providers refuse at the root, to be said in the description; absent where there are none. */
  readonly alternatives?: SchemaObject;
}

/** Providers take a schema only if none of these stands at its root. */
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

/** Vets the input schema of a tool. Throws `SchemaFault`, whose message ends "its schema …". */
export function vetSchema(raw: unknown): VettedSchema {
  checkSize(raw);
  const whole = normalizeSchema(withoutRootReference(raw), () => true);
  const checked: SchemaObject = { ...whole.schema, type: "object" };
  const { schema } = normalizeSchema(withoutRootReference(raw), isJavaScriptPattern);
  if (schema.type !== undefined && schema.type !== "object")
    throw new SchemaFault("is not that of an object");
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
    leftToServer: patternsOf(whole).filter((pattern) => notLinear.test(pattern)),
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

// Providers read patterns as JavaScript does, or not at all; `(?i)` of another language is not a reason to do without.
function isJavaScriptPattern(pattern: string): boolean {
  return ["u", ""].some((flags) => {
    try {
      return new RegExp(pattern, flags) !== null;
    } catch {
      return false;
    }
  });
}

// Generators like to write a schema as one definition and a reference to it; providers want properties.
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

function checkSize(raw: unknown): void {
  let text: string | undefined;
  try {
    text = JSON.stringify(raw);
  } catch (error) {
    // Nested so deeply that there is no stack for it.
    throw new SchemaFault(`is deeper than ${limits.schemaDepth} levels`, { cause: error });
  }
  if (text === undefined) throw new SchemaFault("is missing");
  if (text.length > limits.schemaChars)
    throw new SchemaFault(`is longer than ${limits.schemaChars} characters`);
  // JSON.stringify writes half a surrogate pair as an escape; providers refuse it as no Unicode.
  if (/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(text)) throw new SchemaFault("is not Unicode");
}
