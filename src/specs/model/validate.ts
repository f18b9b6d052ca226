import { isRecord } from "../../base/record.ts";
import { codePointsIn, hasAtMostCodePoints } from "../../base/text-size.ts";
import type { Diagnostic, DiagnosticRule } from "../../protocol/diagnostic.ts";
import { frameworks, lifecycles, maxSummaryLength, priorities, specTypes } from "../../protocol/enums.ts";

const requiredFields = ["id", "path", "framework", "spec_type", "title", "content"] as const;
const enumFields: readonly (readonly [field: string, values: readonly string[]])[] = [
  ["framework", frameworks],
  ["spec_type", specTypes],
  ["lifecycle", lifecycles],
  ["priority", priorities],
];

/**
 * Validates spec blocks from outside (parsed JSON or YAML) and reports violations of the five rules of the record (required
 * fields, enums, ISO 8601 timestamps, summary length, no id twice) as errors, each with the block's path, id and field, in the
 * order of the blocks. A value of the wrong type breaks the rule of its field, or `structure` if the field has no rule. The path
 * of a block without a path is its place: `blocks[3]`.
 *
 * @example
 * ```ts
 * import { validateBlocks } from "kit/specs";
 *
 * for (const { rule, message } of validateBlocks([{ id: "returns" }])) console.error(rule, message);
 * ```
 */
export function validateBlocks(blocks: readonly unknown[]): Diagnostic[] {
  const diagnostics: Diagnostic[] = [];
  const locations = new Map<string, string>();
  for (const [index, block] of blocks.entries()) {
    const place = `blocks[${index}]`;
    diagnostics.push(...validateBlock(block, place));
    const id = isRecord(block) ? block.id : undefined;
    if (typeof id !== "string" || id.trim() === "") continue;
    const first = locations.get(id);
    if (first === undefined) locations.set(id, place);
    else
      diagnostics.push(
        problem(block, place, {
          rule: "duplicate-id",
          field: "id",
          message: `${first} has the id ${describeValue(id)} already.`,
        }),
      );
  }
  return diagnostics;
}

/** Validates one block against all rules but `duplicate-id`. `place` names a block without a path. */
export function validateBlock(block: unknown, place: string): Diagnostic[] {
  if (!isRecord(block)) {
    const message = `A spec block must be an object, not ${kindOf(block)}.`;
    return [{ severity: "error", rule: "structure", message, path: place }];
  }
  return [
    ...requiredProblems(block),
    ...enumProblems(block),
    ...timestampProblems(block),
    ...shapeProblems(block),
  ].map((found) => problem(block, place, found));
}

interface Problem {
  readonly rule: DiagnosticRule;
  readonly field: string;
  readonly message: string;
}

type Untrusted = Readonly<Record<string, unknown>>;

function requiredProblems(block: Untrusted): Problem[] {
  return requiredFields.flatMap((field): Problem[] => {
    const value = block[field];
    if (typeof value === "string" && value.trim() !== "") return [];
    const message =
      value === undefined || typeof value === "string"
        ? `"${field}" is missing or empty.`
        : `"${field}" must be a text, not ${kindOf(value)}.`;
    return [{ rule: "required-field", field, message }];
  });
}

function enumProblems(block: Untrusted): Problem[] {
  return enumFields.flatMap(([field, values]): Problem[] => {
    const value = block[field];
    // A required field that is missing has been reported as that.
    const isReported = requiredFields.some((name) => name === field) && !isText(value);
    if (value === undefined || isReported || (typeof value === "string" && values.includes(value))) return [];
    return [
      {
        rule: "enum",
        field,
        message: `"${field}" must be one of ${values.join(", ")}, not ${describeValue(value)}.`,
      },
    ];
  });
}

function timestampProblems(block: Untrusted): Problem[] {
  return ["created_at", "updated_at"].flatMap((field): Problem[] => {
    const value = block[field];
    if (value === undefined || (typeof value === "string" && isIsoDate(value))) return [];
    return [
      {
        rule: "timestamp",
        field,
        message: `"${field}" must be a full ISO 8601 date (2026-05-26) or date-time with a T, seconds and offset (2026-05-26T18:03:03Z), not ${describeValue(value)}.`,
      },
    ];
  });
}

function shapeProblems(block: Untrusted): Problem[] {
  const problems: Problem[] = [];
  const { summary, tags, metadata } = block;
  if (summary !== undefined && typeof summary !== "string") {
    problems.push({
      rule: "structure",
      field: "summary",
      message: `"summary" must be a text, not ${kindOf(summary)}.`,
    });
  } else if (summary !== undefined && !hasAtMostCodePoints(summary, maxSummaryLength)) {
    const message = `"summary" has ${codePointsIn(summary)} characters; at most ${maxSummaryLength} are allowed.`;
    problems.push({ rule: "summary-length", field: "summary", message });
  }
  if (tags !== undefined && !(Array.isArray(tags) && tags.every((tag) => typeof tag === "string"))) {
    problems.push({ rule: "structure", field: "tags", message: '"tags" must be a list of texts.' });
  }
  if (metadata !== undefined && !isRecord(metadata)) {
    problems.push({ rule: "structure", field: "metadata", message: '"metadata" must be an object.' });
  }
  return problems;
}

function problem(block: unknown, place: string, found: Problem): Diagnostic {
  const { id, path, metadata } = isRecord(block) ? block : {};
  const line = startLineOf(metadata);
  return {
    severity: "error",
    rule: found.rule,
    message: found.message,
    path: isText(path) ? path : place,
    ...(line === undefined ? {} : { line }),
    ...(isText(id) ? { id } : {}),
    field: found.field,
  };
}

function startLineOf(metadata: unknown): number | undefined {
  const source = isRecord(metadata) ? metadata.source : undefined;
  const line = isRecord(source) ? source.start_line : undefined;
  return typeof line === "number" && Number.isInteger(line) && line > 0 ? line : undefined;
}

/** Whether a value is a text that is not blank. */
export function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

/** The kind of a value for a message, such as "a list". */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return Array.isArray(value) ? "a list" : `a value of type ${typeof value}`;
}

/** A value for a message: quoted and short. */
export function describeValue(value: unknown): string {
  if (typeof value !== "string") return kindOf(value);
  return JSON.stringify(value.length <= 60 ? value : `${value.slice(0, 59)}…`);
}

const dateOf = /^(\d{4})-(\d{2})-(\d{2})$/;
const timeOf = /^(\d{2}):(\d{2}):(\d{2}(?:\.\d+)?)(?:z|([+-])(\d{2})(?::?(\d{2}))?)$/i;

/**
 * Whether a text is a full date (`2026-05-26`) or a full date-time (`2026-05-26T18:03:03+01:00`) that the
 * calendar and the clock have, exactly as the published schema decides it: a time has seconds and an offset, and
 * follows a T, for which RFC 3339 also allows a space and ISO 8601 does not. Reduced dates (`2026-05`), week dates and the basic
 * format (`20260526`) are neither.
 */
export function isIsoDate(text: string): boolean {
  const [date = "", time, ...more] = text.split(/t/i);
  return more.length === 0 && isDate(date) && (time === undefined || isTime(time));
}

function isDate(text: string): boolean {
  const [year = 0, month = 0, day = 0] = dateOf.exec(text)?.slice(1).map(Number) ?? [];
  return month >= 1 && month <= 12 && day >= 1 && day <= daysOf(year, month);
}

function isTime(text: string): boolean {
  const match = timeOf.exec(text);
  if (match === null) return false;
  const [hour, minute, second] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const sign = match[4] === "-" ? -1 : 1;
  const [offsetHour, offsetMinute] = [Number(match[5] ?? 0), Number(match[6] ?? 0)];
  if (offsetHour > 23 || offsetMinute > 59) return false;
  if (hour <= 23 && minute <= 59 && second < 60) return true;
  // A leap second is 23:59:60 in UTC, at any local time.
  const utcMinute = minute - offsetMinute * sign;
  const utcHour = hour - offsetHour * sign - (utcMinute < 0 ? 1 : 0);
  const isLastMinute = (utcHour === 23 || utcHour === -1) && (utcMinute === 59 || utcMinute === -1);
  return isLastMinute && second < 61;
}

function daysOf(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}
