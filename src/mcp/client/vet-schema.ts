import { limits } from "./limits.ts";
import {
  isPlainObject,
  normalizeSchema,
  pointerOf,
  SchemaFault,
  type SchemaObject,
} from "./normalize-schema.ts";
import { relaxSchema } from "./relax-schema.ts";
import { visitsOf } from "./schema-visits.ts";

/** A stranger's schema of arguments, fit for providers and for kit's own validator. */
export interface VettedSchema {
  /** For the model. Always an object schema. */
  readonly shown: SchemaObject;
  /** For the validator; absent where checking could take for ever, so that only the server checks. */
  readonly checked?: SchemaObject;
  /** What providers refuse at the root of a schema, to be said in words; absent where there is none. */
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
  const normalized = normalizeSchema(withoutRootReference(raw));
  const { schema } = normalized;
  if (schema.type !== undefined && schema.type !== "object")
    throw new SchemaFault("is not that of an object");
  const whole: SchemaObject = { ...schema, type: "object" };
  for (const name of Object.keys(isPlainObject(whole.properties) ? whole.properties : {})) {
    if (!propertyName.test(name)) throw new SchemaFault("has a property whose name providers refuse");
  }
  const entries = Object.entries(whole);
  const alternatives = entries.filter(([keyword]) => notAtRoot.has(keyword));
  const shown = {
    properties: {},
    ...Object.fromEntries(entries.filter(([keyword]) => !notAtRoot.has(keyword))),
  };
  const { count, endless } = visitsOf(normalized);
  const checked = count > limits.schemaVisits ? undefined : relaxSchema(whole, endless);
  return {
    shown,
    ...(checked === undefined ? {} : { checked }),
    ...(alternatives.length === 0 ? {} : { alternatives: Object.fromEntries(alternatives) }),
  };
}

// Generators like to write a schema as one definition and a reference to it; providers want properties.
function withoutRootReference(raw: unknown): unknown {
  if (!isPlainObject(raw) || typeof raw.$ref !== "string" || raw.properties !== undefined) return raw;
  const { $ref: reference, ...rest } = raw;
  let target: unknown = raw;
  for (const token of pointerOf(raw.$ref).split("/").slice(1)) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    target = isPlainObject(target) && Object.hasOwn(target, name) ? target[name] : undefined;
  }
  return isPlainObject(target) && target !== raw ? { ...target, ...rest } : raw;
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
