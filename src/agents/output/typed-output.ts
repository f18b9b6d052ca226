import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { withArticle } from "../../base/error-text.ts";
import { isMarked, KitError, markInstances } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import { isStandardSchema, issueText } from "../../base/standard-schema.ts";
import type { ResolvedModel } from "../../models/contract.ts";
import type { JsonSchema, ValidateJson } from "../define/tool.ts";

/** The schema of a typed output: the caller's schema, or a skill's JSON Schema. */
export type OutputSchema<Value = unknown> = StandardSchemaV1<unknown, Value> | JsonSchema;

/** One answer that did not match, and its issues. */
export interface TypedOutputAttempt {
  readonly text: string;
  readonly issues: readonly string[];
}

const mark = Symbol.for("kit.error.typed_output");

/**
 * Thrown when no answer matched the schema; `attempts` has every answer and its issues.
 *
 * @example
 * ```ts
 * import { type Session, TypedOutputError } from "kit";
 * import { z } from "zod";
 *
 * export async function grade(session: Session): Promise<number | undefined> {
 *   try {
 *     const { result } = await session.prompt("Grade it.", { result: z.object({ grade: z.number() }) });
 *     return result.grade;
 *   } catch (error) {
 *     if (error instanceof TypedOutputError) return undefined;
 *     throw error;
 *   }
 * }
 * ```
 */
export class TypedOutputError extends KitError {
  override readonly name = "TypedOutputError";
  readonly attempts: readonly TypedOutputAttempt[];

  static {
    markInstances(TypedOutputError, mark);
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(value, mark);
  }

  /** `asked` names the agent and skill that answered. */
  constructor(attempts: readonly TypedOutputAttempt[], source: TypedOutputAsked = {}) {
    const issues = attempts.at(-1)?.issues ?? [];
    super({
      code: "typed_output",
      message: `${askedName(source)} returned no valid result in ${attempts.length} attempts${issueList(issues)}.`,
      hint: issues.join("; "),
      meta: { ...source, issues: issues.slice(0, maxIssues).map((message) => ({ path: "result", message })) },
    });
    this.attempts = attempts;
  }
}

/** The agent and skill that were asked for a result. */
export interface TypedOutputAsked {
  readonly agent?: string;
  readonly skill?: string;
}

function askedName({ agent, skill }: TypedOutputAsked): string {
  if (agent === undefined && skill === undefined) return "The model";
  if (skill === undefined) return `The agent "${agent}"`;
  return agent === undefined ? `The skill "${skill}"` : `The skill "${skill}" of the agent "${agent}"`;
}

/** Limits of the issues in an error message. */
const maxIssues = 20;
const maxIssueChars = 500;

function issueList(issues: readonly string[]): string {
  const text = issues.slice(0, maxIssues).join("; ");
  if (text === "") return "";
  return `: ${text.length > maxIssueChars ? `${text.slice(0, maxIssueChars)}…` : text}`;
}

export type OutputCheck<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly issues: readonly string[] };

/** Finds JSON in an answer and validates it. The first matching value counts. */
export async function checkOutput<Value>(
  text: string,
  schema: OutputSchema<Value>,
  validateJson: ValidateJson,
): Promise<OutputCheck<Value>> {
  let first: readonly string[] | undefined;
  for (const candidate of findJson(text)) {
    const check = await checkValue(candidate, schema, validateJson);
    if (check.ok) return check;
    first ??= check.issues;
  }
  return { ok: false, issues: first ?? ["the answer holds no JSON"] };
}

async function checkValue<Value>(
  value: unknown,
  schema: OutputSchema<Value>,
  validateJson: ValidateJson,
): Promise<OutputCheck<Value>> {
  if (isStandardSchema(schema)) {
    const result = await schema["~standard"].validate(value);
    return result.issues === undefined
      ? { ok: true, value: result.value as Value }
      : { ok: false, issues: result.issues.map(issueText) };
  }
  const issues = await validateJson(schema, value);
  return issues.length === 0 ? { ok: true, value: value as Value } : { ok: false, issues };
}

/** The request for a corrected answer. */
export function repairRequest(issues: readonly string[]): string {
  const list = issues
    .slice(0, 20)
    .map((issue) => `- ${issue}`)
    .join("\n");
  return `Your answer is not a valid result:\n${list}\n\nAnswer again with the corrected JSON only, in one \`\`\`json block.`;
}

/** The request for a result if the provider enforces the schema. */
export const nativeResultRequest = "When you are done, give your final result as JSON and nothing else.";

/** The request for a result of a schema. */
export function resultRequest(schema: JsonSchema | undefined): string {
  const shape =
    schema === undefined
      ? ""
      : ` It must be valid against this JSON Schema:\n\n\`\`\`json\n${JSON.stringify(schema)}\n\`\`\``;
  return `When you are done, give your final result as JSON in one \`\`\`json block and nothing after it.${shape}`;
}

/**
 * The JSON values in a model's answer, likeliest first: the whole text, then fenced blocks from the
 * last, then the outermost braces or brackets in the text. Linear in the text.
 */
export function findJson(text: string): readonly unknown[] {
  const values: unknown[] = [];
  for (const candidate of candidates(text)) {
    try {
      values.push(JSON.parse(candidate));
    } catch {
      // Not JSON: the next candidate may be.
    }
  }
  return values;
}

function* candidates(text: string): Generator<string> {
  const trimmed = text.trim();
  yield trimmed;
  const lines = trimmed.split("\n");
  const fences: string[] = [];
  let open = -1;
  lines.forEach((line, index) => {
    if (!line.trimStart().startsWith("```")) return;
    if (open === -1) open = index;
    else {
      fences.push(lines.slice(open + 1, index).join("\n"));
      open = -1;
    }
  });
  yield* fences.reverse();
  for (const [opener, closer] of [
    ["{", "}"],
    ["[", "]"],
  ] as const) {
    const from = trimmed.indexOf(opener);
    const to = trimmed.lastIndexOf(closer);
    if (from !== -1 && to > from) yield trimmed.slice(from, to + 1);
  }
  yield* balancedObjects(trimmed);
}

/** Finds every outermost `{…}` of the text and skips braces in strings; for answers with prose on both sides. */
function* balancedObjects(text: string): Generator<string> {
  let depth = 0;
  let from = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (inString) {
      if (character === "\\") index += 1;
      else if (character === '"') inString = false;
    } else if (character === '"' && depth > 0) inString = true;
    else if (character === "{") {
      if (depth === 0) from = index;
      depth += 1;
    } else if (character === "}" && depth > 0) {
      depth -= 1;
      if (depth === 0) yield text.slice(from, index + 1);
    }
  }
}

type JsonFormat = Extract<LanguageModelV4CallOptions["responseFormat"], { type: "json" }>;

/** Call options that make the provider itself produce JSON of a schema. */
export type NativeOutput = Pick<LanguageModelV4CallOptions, "responseFormat" | "providerOptions">;

/**
 * The options that make the provider enforce a schema; undefined if it cannot, not together with tools, or not for
 * this schema: then the answer is text that contains JSON.
 */
export function nativeOutput(
  resolved: ResolvedModel,
  schema: JsonSchema | undefined,
  mayCall: boolean,
): NativeOutput | undefined {
  const { structuredOutput, looseSchemaOptions } = resolved;
  if (structuredOutput === "never" || (structuredOutput !== "always" && mayCall)) return undefined;
  // Every provider refuses a list or a plain value at the root.
  if (schema?.type !== "object") return undefined;
  const strict = toStrictSchema(schema);
  const format = (source: JsonSchema): JsonFormat => ({
    type: "json",
    name: "result",
    schema: source as NonNullable<JsonFormat["schema"]>,
  });
  if (strict !== undefined) return { responseFormat: format(strict) };
  return {
    responseFormat: format(schema),
    ...(looseSchemaOptions === undefined ? {} : { providerOptions: looseSchemaOptions }),
  };
}

/**
 * Whether the provider refused the call itself: an old model without structured output, an unknown keyword. The same
 * call without a format may succeed.
 */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof KitError) || error.code !== "model_error") return false;
  const { cause } = error;
  const status =
    typeof cause === "object" && cause !== null && "statusCode" in cause ? cause.statusCode : undefined;
  return status === 400 || status === 422;
}

/** Keywords that providers support in strict mode; they refuse any other. */
const strictKeywords = new Set([
  "$defs",
  "$ref",
  "additionalProperties",
  "anyOf",
  "const",
  "definitions",
  "description",
  "enum",
  "items",
  "properties",
  "required",
  "title",
  "type",
]);

/** Deeper schemas are not converted. */
const maxDepth = 64;

/**
 * The schema in the form that providers enforce: every object names all its properties as required and
 * allows no others. `undefined` if that would change the meaning of the schema: optional properties, arbitrary
 * keys, uncommon keywords.
 *
 * @see https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
 */
export function toStrictSchema(schema: JsonSchema): JsonSchema | undefined {
  return strict(schema, 0);
}

function strict(schema: unknown, depth: number): JsonSchema | undefined {
  if (!isRecord(schema) || depth > maxDepth) return undefined;
  const result: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    // The draft does not affect the value.
    if (keyword === "$schema") continue;
    if (!strictKeywords.has(keyword)) return undefined;
    const read = readKeyword(keyword, value, depth);
    if (read === undefined) return undefined;
    result[keyword] = read;
  }
  if (schema.type !== "object") return result;
  const { properties, required } = schema;
  if (!isRecord(properties) || !Array.isArray(required)) return undefined;
  if (!Object.keys(properties).every((name) => required.includes(name))) return undefined;
  return { ...result, additionalProperties: false };
}

function readKeyword(keyword: string, value: unknown, depth: number): unknown {
  switch (keyword) {
    case "additionalProperties":
      return value === false ? false : undefined;
    case "items":
      return strict(value, depth + 1);
    case "anyOf": {
      const options = Array.isArray(value) ? value.map((option) => strict(option, depth + 1)) : [undefined];
      return options.includes(undefined) ? undefined : options;
    }
    case "properties":
    case "$defs":
    case "definitions": {
      if (!isRecord(value)) return undefined;
      const entries = Object.entries(value).map(([name, each]) => [name, strict(each, depth + 1)] as const);
      return entries.some(([, each]) => each === undefined) ? undefined : Object.fromEntries(entries);
    }
    default:
      return value;
  }
}

/**
 * The JSON Schema of a schema: itself, or the Standard JSON Schema of its library. Undefined if the library offers
 * none: the value is still validated, but the model does not see its shape.
 */
export function jsonSchemaOf(schema: StandardSchemaV1 | JsonSchema): JsonSchema | undefined {
  if (!isStandardSchema(schema)) return schema;
  try {
    const { jsonSchema }: Partial<StandardJSONSchemaV1.Props> = schema["~standard"];
    return jsonSchema?.input({ target: "draft-07" });
  } catch {
    // Some types (functions, transforms) have no JSON Schema.
    return undefined;
  }
}

/**
 * The JSON Schema of a tool's arguments: an object, as every provider requires. Throws `invalid_request` for a schema of
 * anything else, and for one without a JSON Schema: the model could not know the arguments.
 */
export function inputSchemaOf(name: string, schema: StandardSchemaV1 | JsonSchema): JsonSchema {
  const converted = jsonSchemaOf(schema);
  if (converted === undefined) {
    throw new KitError({
      code: "invalid_request",
      message: `The schema of the tool "${name}" cannot be converted to JSON Schema.`,
      hint: "Use a schema of zod (4.2 or later) or arktype, wrap one of valibot with toStandardJsonSchema of @valibot/to-json-schema, or pass a JSON Schema.",
    });
  }
  if (typeof converted.type === "string" && converted.type !== "object") {
    throw new KitError({
      code: "invalid_request",
      message: `The schema of the tool "${name}" must describe an object, not ${withArticle(converted.type)}.`,
      hint: "A model passes the arguments of a tool by name: z.object({ … }).",
    });
  }
  return converted.type === undefined ? { type: "object", ...converted } : converted;
}
