import { faultOfBackend } from "../../backends/contract.ts";
import { suggest } from "../../base/suggest.ts";

/** The expectation of a field as text and check, or the checks of its own fields. */
export type FieldCheck =
  | readonly [expected: string | ((value: unknown) => string), accepts: (value: unknown) => boolean]
  | KnownFields;

/** `of` says whose fields they are, as messages say it: "field of a profile". */
export interface KnownFields {
  readonly of: string;
  readonly fields: Readonly<Record<string, FieldCheck>>;
  /** Names that other tools use for a field, and its name here. */
  readonly otherNames?: Readonly<Record<string, string>>;
}

/** A check for every field, so that none of a type is forgotten. */
export type FieldChecks<Fields extends object> = { readonly [Field in keyof Fields]-?: FieldCheck };

export const text: FieldCheck = ["a text", (value) => typeof value === "string"];
export const flag: FieldCheck = ["true or false", (value) => typeof value === "boolean"];
export const texts: FieldCheck = ["a list of texts", isTexts];
export const named: FieldCheck = [
  "a list of objects with a name",
  (value) => Array.isArray(value) && value.every(hasName),
];

export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

export const tools: FieldCheck = [
  "a list of tools, as defineTool gives them",
  (value) => Array.isArray(value) && value.every(isTool),
];

export const backend: FieldCheck = [
  (value) => faultOfBackend(value) ?? "",
  (value) => faultOfBackend(value) === undefined,
];

/** A whole number from `min` up. */
export function count(min: number): FieldCheck {
  return [`a whole number from ${min} up`, (value) => Number.isInteger(value) && Number(value) >= min];
}

export function oneOf(names: readonly string[]): FieldCheck {
  return [`one of ${names.join(", ")}`, (value) => names.some((name) => name === value)];
}

export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

export function hasName(value: unknown): value is { readonly name: string } {
  return isObject(value) && "name" in value && typeof value.name === "string";
}

function isTool(value: unknown): boolean {
  return hasName(value) && "execute" in value && typeof value.execute === "function";
}

/**
 * Describes the first fault of an object that plain JavaScript may have written; undefined for a valid one.
 * An unknown field is a fault: a misspelled limit would limit nothing.
 */
export function faultOfFields(value: object, known: KnownFields, above = ""): string | undefined {
  const { of, fields, otherNames = {} } = known;
  for (const [field, given] of Object.entries(value)) {
    const check = Object.hasOwn(fields, field) ? fields[field] : undefined;
    if (check === undefined) {
      const other = Object.hasOwn(otherNames, field) ? otherNames[field] : undefined;
      const near = other ?? suggest(field, Object.keys(fields));
      return `\`${above}${field}\` is no ${of}${near === undefined ? "" : `; did you mean ${near}?`}`;
    }
    if (given === undefined) continue;
    if ("fields" in check) {
      if (!isObject(given)) return `\`${above}${field}\` must be an object`;
      const fault = faultOfFields(given, check, `${above}${field}.`);
      if (fault !== undefined) return fault;
    } else if (!check[1](given)) {
      const [expected] = check;
      return `\`${above}${field}\` must be ${typeof expected === "string" ? expected : expected(given)}`;
    }
  }
  return undefined;
}

/** The check of a model choice: a name or a list of names. */
export const modelChoice: readonly [string, (value: unknown) => boolean] = [
  "a text such as provider/model, or a list of such texts",
  (value) => typeof value === "string" || (isTexts(value) && value.length > 0),
];
