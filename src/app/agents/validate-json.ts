import type { Validator } from "@cfworker/json-schema";

const maxCached = 1_000;

/**
 * Creates a validator of JSON Schema (2020-12, the draft that tools use). It interprets schemas and
 * never generates code, because schemas also come from strangers' MCP servers.
 */
export function createJsonValidator(): (
  schema: Readonly<Record<string, unknown>>,
  value: unknown,
) => readonly string[] | Promise<readonly string[]> {
  const compiled = new Map<object, Validator>();
  const check = (validator: Validator, value: unknown): readonly string[] => {
    const { valid, errors } = validator.validate(value);
    return valid
      ? []
      : errors.slice(0, 20).map((error) => `${pointerText(error.instanceLocation)}${error.error}`);
  };
  return (schema, value) => {
    const known = compiled.get(schema);
    if (known !== undefined) return check(known, value);
    return import("@cfworker/json-schema").then((library) => {
      const validator = new library.Validator(
        schema as ConstructorParameters<typeof Validator>[0],
        "2020-12",
        false,
      );
      if (compiled.size >= maxCached) compiled.clear();
      compiled.set(schema, validator);
      return check(validator, value);
    });
  };
}

function pointerText(pointer: string): string {
  const path = pointer.replace(/^#\/?/, "").replaceAll("/", ".");
  return path === "" ? "" : `${path}: `;
}
