/** The keywords whose values contain no schemas, even if they look like some. */
const values: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);

export type JsonObject = { readonly [name: string]: unknown };

/** A schema with all possible targets of its references. */
export interface SchemaDocument {
  readonly root: unknown;
  /** Whether a schema has `unevaluatedProperties` or `unevaluatedItems`. */
  readonly hasUnevaluated: boolean;
  /** Returns the target of a reference; undefined if the document does not hold it. */
  find(reference: string): unknown;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns an own property of an object, so never an inherited one such as `constructor`. */
export function own(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Collects the places of `$id` and `$anchor`. Without recursion, since schemas can be nested to any depth. */
export function createSchemaDocument(root: unknown): SchemaDocument {
  const anchors = new Map<string, unknown>();
  let hasUnevaluated = false;
  const seen = new Set<unknown>();
  const pending: unknown[] = [root];
  for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
    if (typeof at !== "object" || at === null || seen.has(at)) continue;
    seen.add(at);
    for (const [name, value] of Object.entries(at)) {
      if (name.startsWith("unevaluated")) hasUnevaluated = true;
      if (typeof value === "string") {
        if (name === "$anchor" || name === "$dynamicAnchor") anchors.set(`#${value}`, at);
        if (name === "$id") anchors.set(value.replace(/#$/, ""), at);
      } else if (!values.has(name) && value !== undefined) pending.push(value);
    }
  }
  const known = new Map<string, unknown>();
  const find = (reference: string): unknown => {
    const hash = reference.indexOf("#");
    const base = hash === -1 ? reference : reference.slice(0, hash);
    const fragment = hash === -1 ? "" : reference.slice(hash + 1);
    const start = base === "" ? root : anchors.get(base);
    if (fragment === "") return start;
    return fragment.startsWith("/") ? follow(start, fragment) : anchors.get(`#${fragment}`);
  };
  return {
    root,
    hasUnevaluated,
    find(reference) {
      if (!known.has(reference)) known.set(reference, find(reference));
      return known.get(reference);
    },
  };
}

function follow(start: unknown, pointer: string): unknown {
  let at = start;
  for (const token of pointer.slice(1).split("/")) {
    const name = decoded(token).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null) return undefined;
    at = own(at as JsonObject, name);
  }
  return at;
}

function decoded(token: string): string {
  try {
    return decodeURIComponent(token);
  } catch {
    return token;
  }
}
