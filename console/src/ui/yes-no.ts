/** A yes/no question that a schema asks: the name of its only field, and how the schema describes it. */
export interface YesNo {
  /** Undefined if the payload itself is the boolean. */
  readonly field: string | undefined;
  readonly question: string | undefined;
}

/** Returns the question of a schema with one boolean and nothing else; `undefined` for other schemas. */
export function findYesNo(schema: unknown): YesNo | undefined {
  if (!isRecord(schema)) return undefined;
  if (schema.type === "boolean") return { field: undefined, question: describe(schema) };
  if (schema.type !== "object" || !isRecord(schema.properties)) return undefined;
  const [only, ...others] = Object.entries(schema.properties);
  if (only === undefined || others.length > 0) return undefined;
  const [field, value] = only;
  if (!isRecord(value) || value.type !== "boolean") return undefined;
  return { field, question: describe(value) ?? describe(schema) };
}

function describe({ description, title }: Readonly<Record<string, unknown>>): string | undefined {
  const text = description ?? title;
  return typeof text === "string" ? text : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
