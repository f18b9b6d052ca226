import type { OutputUnit, Validator } from "@cfworker/json-schema";

const maxCached = 1_000;
const maxIssues = 20;

/**
 * Creates a validator of JSON Schema (2020-12, the draft that tools use). It interprets schemas and
 * never generates code, because schemas also come from strangers' MCP servers. Issues are short texts
 * without a full stop, fit for a model and for a person: `items.0.price: must be number, not string`.
 */
export function createJsonValidator(): (
  schema: Readonly<Record<string, unknown>>,
  value: unknown,
) => readonly string[] | Promise<readonly string[]> {
  const compiled = new Map<object, Validator>();
  const check = (validator: Validator, value: unknown): readonly string[] => {
    const { valid, errors } = validator.validate(value);
    return valid ? [] : issuesOf(errors);
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

/** Keywords that only say that something below them does not match; what it is stands beside them. */
const wrappers: ReadonlySet<string> = new Set([
  "properties",
  "items",
  "prefixItems",
  "$ref",
  "allOf",
  "false",
]);

/** Keywords that refuse a property for its name. */
const nameKeywords: ReadonlySet<string> = new Set(["additionalProperties", "unevaluatedProperties"]);

function issuesOf(errors: readonly OutputUnit[]): readonly string[] {
  const telling = errors.filter(({ keyword }) => !wrappers.has(keyword));
  const wrong = telling
    .filter(({ keyword }) => !nameKeywords.has(keyword))
    .map((unit) => unit.instanceLocation);
  // The library takes a property whose value is wrong for one that no schema knows, too.
  const isKnown = (unit: OutputUnit): boolean => {
    const place = `${unit.instanceLocation}/${quotedIn(unit.error)[0]}`;
    return wrong.some((location) => location === place || location.startsWith(`${place}/`));
  };
  const issues = telling.filter((unit) => !nameKeywords.has(unit.keyword) || !isKnown(unit));
  return [...new Set((issues.length > 0 ? issues : errors).map(issueText))].slice(0, maxIssues);
}

function quotedIn(text: string): readonly string[] {
  return [...text.matchAll(/"([^"]*)"/g)].map((match) => match[1] ?? "");
}

function issueText({ keyword, instanceLocation, error }: OutputUnit): string {
  const text = wording(keyword, error).replace(/\.$/, "");
  const path = instanceLocation.replace(/^#\/?/, "").replaceAll("/", ".");
  return path === "" ? text : `${path}: ${text}`;
}

/** The library speaks of instances and schemas; those who read this know arguments and fields. */
function wording(keyword: string, error: string): string {
  const [first = "", second = ""] = quotedIn(error);
  switch (keyword) {
    case "required":
      return `"${first}" is missing`;
    case "type":
      return `must be ${second}, not ${first}`;
    case "additionalProperties":
    case "unevaluatedProperties":
      return `"${first}" is not known`;
    default:
      return error.replace(/^Instance\b/, "It");
  }
}
