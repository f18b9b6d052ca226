import { isPythonName } from "../dataclass-registry.ts";
import { createValueBudget, isWireList, type WireValue } from "../values/wire-value.ts";
import { fromMonty, toMonty } from "./monty-values.ts";
import { RunRefused } from "./run-failed.ts";

/**
 * A stored variable: a JSON line `[[position, value], …]` with the values that are not in its table, then the table that
 * `prelude.py` wrote. Only Python reads the table.
 */
export interface VariableTable {
  readonly text: string;
  readonly values: readonly (readonly [place: number, value: WireValue])[];
}

/** The limits of the values that belong to one table. */
const besideLimits = { depth: 200, nodes: 1_000_000, chars: 32_000_000 };

export function encodeTable({ text, values }: VariableTable): Buffer {
  return Buffer.from(`${JSON.stringify(values)}\n${text}`);
}

/** Throws `RunRefused` for invalid bytes, because a dump can contain any. */
export function decodeTable(bytes: Buffer): VariableTable {
  const end = bytes.indexOf("\n");
  if (end === -1) throw unreadable("they end too early");
  return { values: parseValues(bytes.toString("utf8", 0, end)), text: bytes.toString("utf8", end + 1) };
}

function parseValues(json: string): VariableTable["values"] {
  let values: unknown;
  try {
    values = JSON.parse(json);
  } catch (error) {
    throw unreadable(error instanceof Error ? error.message : "they are no JSON");
  }
  if (!Array.isArray(values)) throw unreadable("they are no list");
  const stack: [value: unknown, depth: number][] = [];
  for (const pair of values) {
    if (!Array.isArray(pair) || !Number.isSafeInteger(pair[0])) throw unreadable("a value has no position");
    stack.push([pair[1], 0]);
  }
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const [value, depth] = next;
    const parts = depth > besideLimits.depth ? undefined : partsOf(value);
    if (parts === undefined) throw unreadable("a value has an unknown form");
    for (const part of parts) stack.push([part, depth + 1]);
  }
  return values as VariableTable["values"];
}

const scalars: ReadonlySet<string> = new Set(["boolean", "number", "string"]);

/** The parts of a wire value; `undefined` for any other value. */
function partsOf(value: unknown): readonly unknown[] | undefined {
  if (value === null || scalars.has(typeof value)) return [];
  if (Array.isArray(value)) return value;
  if (typeof value !== "object") return undefined;
  const { t, v } = value as { readonly t?: unknown; readonly v?: unknown };
  switch (t) {
    case "number":
      return ["NaN", "Infinity", "-Infinity", "-0"].includes(String(v)) ? [] : undefined;
    case "int":
      return /^-?\d+$/.test(String(v)) || Number.isInteger(v) ? [] : undefined;
    case "bytes":
      return typeof v === "string" ? [] : undefined;
    case "time":
      return isTime(v) ? [] : undefined;
    case "tuple":
    case "set":
      return Array.isArray(v) ? v : undefined;
    case "dict":
      return Array.isArray(v) && v.every((pair) => Array.isArray(pair) && pair.length === 2)
        ? v.flat(1)
        : undefined;
    case "dataclass":
      return isDataclass(value) ? value.v : undefined;
    default:
      return undefined;
  }
}

function isTime(value: unknown): boolean {
  if (typeof value !== "object" || value === null || !("kind" in value)) return false;
  const { kind, timezoneName, name, ...numbers } = value as Record<string, unknown>;
  return (
    ["DateTime", "Date", "TimeDelta", "TimeZone"].includes(String(kind)) &&
    [timezoneName, name].every((text) => text === undefined || typeof text === "string") &&
    Object.values(numbers).every(Number.isInteger)
  );
}

function isDataclass(value: object): value is { readonly v: readonly unknown[] } {
  const { name, fields, v } = value as Record<string, unknown>;
  return (
    typeof name === "string" &&
    Array.isArray(fields) &&
    fields.every((field) => typeof field === "string" && isPythonName(field)) &&
    Array.isArray(v) &&
    v.length === fields.length
  );
}

/** The error for saved variables that kit cannot restore. */
export function unreadable(why: string): RunRefused {
  return new RunRefused(`The saved variables cannot be read: ${why.slice(0, 500)}.`);
}

/** The field names of all dataclasses in the values of the tables. */
export function fieldsOf(tables: readonly VariableTable[]): ReadonlySet<string> {
  const fields = new Set<string>();
  const stack = tables.flatMap(({ values }) => values.map(([, value]) => value));
  for (let wire = stack.pop(); wire !== undefined; wire = stack.pop()) {
    if (wire === null || typeof wire !== "object") continue;
    if (isWireList(wire)) for (const part of wire) stack.push(part);
    else if (wire.t === "dict") for (const pair of wire.v) stack.push(...pair);
    else if (wire.t === "tuple" || wire.t === "set") for (const part of wire.v) stack.push(part);
    else if (wire.t === "dataclass") {
      for (const name of wire.fields) fields.add(name);
      for (const part of wire.v) stack.push(part);
    }
  }
  return fields;
}

/** The tables in the form of the prelude's `restore`: one batch after the other. */
export function batchesToMonty(
  variables: readonly { readonly name: string; readonly batch: number; readonly table: VariableTable }[],
  typeId: (name: string) => bigint,
): unknown {
  const batches = Map.groupBy(variables, ({ batch }) => batch);
  return Array.from(batches.values(), (batch) =>
    batch.map(({ name, table }) => [
      name,
      table.text,
      table.values.map(([place, value]) => [place, toMonty(value, typeId)]),
    ]),
  );
}

/** The values that the prelude returned with a table. Throws `RangeError` if they are too large. */
export function besideFromMonty(values: readonly (readonly [number, unknown])[]): VariableTable["values"] {
  const budget = createValueBudget((problem) => {
    throw new RangeError(`it ${problem}`);
  }, besideLimits);
  return values.map(([place, value]) => [place, fromMonty(value, budget)] as const);
}
