import { isPlainObject, type NormalizedSchema, pointerOf } from "./normalize-schema.ts";
import { subschemasOf } from "./schema-keywords.ts";

/** How far a validator may go for one value. */
export interface SchemaVisits {
  /** Every way from the root to a schema, references followed, but for those below. */
  readonly count: number;
  /** References that lead back to themselves, sooner or later. */
  readonly endless: ReadonlySet<string>;
}

/**
 * Counts the subschemas that a validator may visit for one value, so that schemas that refer to each other
 * twice on each of many levels are found before they cost anything.
 */
export function visitsOf(normalized: NormalizedSchema): SchemaVisits {
  const known = countVisits(normalized, new Set());
  const endless = new Set<string>();
  for (const part of normalized.parts.values()) {
    const reference = isPlainObject(part) ? part.$ref : undefined;
    if (typeof reference !== "string") continue;
    const target = normalized.parts.get(pointerOf(reference));
    if (known.get(target) === Number.POSITIVE_INFINITY) endless.add(reference);
  }
  const counts = endless.size === 0 ? known : countVisits(normalized, endless);
  return { count: counts.get(normalized.schema) ?? 0, endless };
}

function countVisits(
  { schema, parts }: NormalizedSchema,
  left: ReadonlySet<string>,
): ReadonlyMap<unknown, number> {
  const known = new Map<unknown, number>();
  const visit = (part: unknown): number => {
    if (!isPlainObject(part)) return 1;
    const before = known.get(part);
    if (before !== undefined) return before;
    // Found again before its own count is known, it refers to itself.
    known.set(part, Number.POSITIVE_INFINITY);
    let count = 1;
    const reference = part.$ref;
    if (typeof reference === "string" && !left.has(reference))
      count += visit(parts.get(pointerOf(reference)));
    for (const below of subschemasOf(part)) {
      if (below.keyword !== "$defs" && below.keyword !== "definitions") count += visit(below.schema);
    }
    known.set(part, count);
    return count;
  };
  visit(schema);
  return known;
}
