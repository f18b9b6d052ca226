import { isIPv4, isIPv6 } from "node:net";
import { isRecord } from "../base/record.ts";
import { codePointsIn } from "../base/text-size.ts";
import { type JsonObject, own } from "./schema-document.ts";

/** The input of a keyword without subschemas. */
export interface KeywordInput {
  readonly value: unknown;
  /** The value of the keyword. */
  readonly rule: unknown;
  readonly schema: JsonObject;
  /** Returns whether a text matches a pattern; undefined if only the owner of the schema can decide. */
  matches(pattern: string, text: string): boolean | undefined;
}

/** Describes a fault of the value, without a full stop; undefined if it has none. */
type KeywordCheck = (input: KeywordInput) => string | undefined;

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** The properties of an object without undefined ones, which JSON would leave out. */
export function propertiesOf(value: JsonObject): readonly string[] {
  const names = Object.keys(value);
  return names.some((name) => value[name] === undefined)
    ? names.filter((name) => value[name] !== undefined)
    : names;
}

export const hasProperty = (value: JsonObject, name: string): boolean => own(value, name) !== undefined;

const onNumber =
  (holds: (value: number, limit: number) => boolean, text: string): KeywordCheck =>
  ({ value, rule }) =>
    typeof value !== "number" || typeof rule !== "number" || holds(value, rule)
      ? undefined
      : `${text} ${rule}`;

const onSize =
  (
    sizeOf: (value: unknown) => number | undefined,
    { isMin, quantity: what }: { isMin: boolean; quantity: string },
  ): KeywordCheck =>
  ({ value, rule }) => {
    const size = sizeOf(value);
    if (size === undefined || typeof rule !== "number" || (isMin ? size >= rule : size <= rule))
      return undefined;
    return `must have at ${isMin ? "least" : "most"} ${rule} ${what}${rule === 1 ? "" : "s"}, and has ${size}`;
  };

const characters = (value: unknown): number | undefined =>
  typeof value === "string" ? codePointsIn(value) : undefined;
const items = (value: unknown): number | undefined => (Array.isArray(value) ? value.length : undefined);
const properties = (value: unknown): number | undefined =>
  isRecord(value) ? propertiesOf(value).length : undefined;

/** Keywords that need only the value. */
export const valueKeywords: ReadonlyMap<string, KeywordCheck> = new Map<string, KeywordCheck>([
  ["type", checkType],
  [
    "enum",
    ({ value, rule }) =>
      Array.isArray(rule) && !rule.some((one) => isSame(one, value)) ? oneOf(rule) : undefined,
  ],
  ["const", ({ value, rule }) => (isSame(rule, value) ? undefined : `must be ${describeValue(rule)}`)],
  ["minimum", onNumber((value, limit) => value >= limit, "must be at least")],
  ["maximum", onNumber((value, limit) => value <= limit, "must be at most")],
  ["exclusiveMinimum", onNumber((value, limit) => value > limit, "must be more than")],
  ["exclusiveMaximum", onNumber((value, limit) => value < limit, "must be less than")],
  ["multipleOf", onNumber(isMultiple, "must be a multiple of")],
  ["minLength", onSize(characters, { isMin: true, quantity: "character" })],
  ["maxLength", onSize(characters, { isMin: false, quantity: "character" })],
  ["minItems", onSize(items, { isMin: true, quantity: "item" })],
  ["maxItems", onSize(items, { isMin: false, quantity: "item" })],
  ["minProperties", onSize(properties, { isMin: true, quantity: "field" })],
  ["maxProperties", onSize(properties, { isMin: false, quantity: "field" })],
  ["required", checkRequired],
  ["dependentRequired", checkDependentRequired],
  ["uniqueItems", checkUnique],
  ["pattern", checkPattern],
  ["format", checkFormat],
]);

function checkType({ value, rule }: KeywordInput): string | undefined {
  const type = typeOf(value);
  if (rule === type) return undefined;
  const types: readonly unknown[] = Array.isArray(rule) ? rule : [rule];
  const fits = types.some((one) => one === type || (one === "integer" && Number.isInteger(value)));
  return fits ? undefined : `must be ${types.join(" or ")}, not ${type}`;
}

function checkRequired({ value, rule }: KeywordInput): string | undefined {
  if (!isRecord(value) || !Array.isArray(rule)) return undefined;
  const isMissing = (name: unknown): boolean => typeof name === "string" && !hasProperty(value, name);
  return rule.some(isMissing) ? areMissing(rule.filter(isMissing)) : undefined;
}

function checkDependentRequired({ value, rule }: KeywordInput): string | undefined {
  if (!isRecord(value) || !isRecord(rule)) return undefined;
  for (const [name, needed] of Object.entries(rule)) {
    if (!hasProperty(value, name) || !Array.isArray(needed)) continue;
    const missing = needed.filter((one) => typeof one === "string" && !hasProperty(value, one));
    if (missing.length > 0) return `${areMissing(missing)} beside "${name}"`;
  }
  return undefined;
}

function areMissing(names: readonly string[]): string {
  return `${names.map((name) => `"${name}"`).join(", ")} ${names.length === 1 ? "is" : "are"} missing`;
}

function checkUnique({ value, rule }: KeywordInput): string | undefined {
  if (rule !== true || !Array.isArray(value)) return undefined;
  const isUnique = new Set(value.map(canonical)).size === value.length;
  return isUnique ? undefined : "must not hold an item twice";
}

function checkPattern({ value, rule, matches }: KeywordInput): string | undefined {
  if (typeof value !== "string" || typeof rule !== "string") return undefined;
  return matches(rule, value) === false ? `must match the pattern ${describeValue(rule)}` : undefined;
}

function checkFormat({ value, rule }: KeywordInput): string | undefined {
  if (typeof value !== "string" || typeof rule !== "string" || hasFormat(value, rule)) return undefined;
  return `must have the format "${rule}"`;
}

function isMultiple(value: number, divisor: number): boolean {
  const times = value / divisor;
  return Math.abs(times - Math.round(times)) < 1e-9 * Math.max(1, Math.abs(times));
}

const isSame = (one: unknown, other: unknown): boolean =>
  one === other || (typeof one === "object" && one !== null && canonical(one) === canonical(other));

/** Returns the same text for values that JSON Schema considers equal, in any order of their members. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isRecord(value)) return JSON.stringify(value) ?? "undefined";
  const members = propertiesOf(value)
    .toSorted()
    .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
  return `{${members.join(",")}}`;
}

function oneOf(rule: readonly unknown[]): string {
  const first = rule.slice(0, 20).map(describeValue).join(", ");
  return `must be one of ${first}${rule.length > 20 ? ", …" : ""}`;
}

/** Formats a schema's value for a message. */
function describeValue(value: unknown): string {
  const text = JSON.stringify(value) ?? "undefined";
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}

/** Maximum length of a text in a checked format. */
const maxLength = 10_000;

const date = /^(\d{4})-(\d\d)-(\d\d)$/;
const time = /^([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(?:\.\d+)?(?:[zZ]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const email = /^[^\s@<>"(),:;[\]\\]+@[^\s@<>"(),:;[\]\\]+$/;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** The formats that kit checks, each in linear time; it ignores others. */
const formats: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ["date", isDate],
  ["time", (text) => time.test(text)],
  ["date-time", (text) => /^.{10}[tT ]/.test(text) && isDate(text.slice(0, 10)) && time.test(text.slice(11))],
  ["email", (text) => email.test(text)],
  ["uuid", (text) => uuid.test(text)],
  ["ipv4", isIPv4],
  ["ipv6", (text) => isIPv6(text) && !text.includes("%")],
  ["hostname", (text) => text.length <= 253 && text.split(".").every((part) => label.test(part))],
  ["uri", (text) => /^[a-z][a-z0-9+.-]*:[^\s<>"{}|\\^`]*$/i.test(text)],
]);

function hasFormat(text: string, format: string): boolean {
  const check = formats.get(format);
  return check === undefined || (text.length <= maxLength && check(text));
}

function isDate(text: string): boolean {
  const [, year, month, day] = (date.exec(text) ?? []).map(Number);
  if (year === undefined || month === undefined || day === undefined) return false;
  const days = new Date(Date.UTC(2000, 0, 1));
  days.setUTCFullYear(year, month, 0);
  return month >= 1 && month <= 12 && day >= 1 && day <= days.getUTCDate();
}
