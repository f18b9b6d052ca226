import { createValueBudget, isWireList, type WireValue } from "../values/wire-value.ts";
import { fromMonty, toMonty } from "./monty-values.ts";

/**
 * A group of variables as it is stored: the length of the values beside the table as four bytes, the values
 * as JSON `[[place, value], …]`, and the table that `prelude.ts` wrote. Nothing but Python reads the table.
 */
export interface VariableTable {
  readonly text: string;
  readonly values: readonly (readonly [place: number, value: WireValue])[];
}

/** What the values beside one table may hold. */
const besideLimits = { depth: 200, nodes: 1_000_000, chars: 32_000_000 };

export function encodeTable({ text, values }: VariableTable): Buffer {
  const beside = Buffer.from(JSON.stringify(values));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(beside.length);
  return Buffer.concat([length, beside, Buffer.from(text)]);
}

export function decodeTable(bytes: Buffer): VariableTable {
  const end = 4 + bytes.readUInt32BE(0);
  return { values: JSON.parse(bytes.toString("utf8", 4, end)), text: bytes.toString("utf8", end) };
}

/** Names of the fields of all dataclasses beside the tables. */
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

/** The table as the prelude's `restore` takes it. */
export function tableToMonty({ text, values }: VariableTable, typeId: (name: string) => bigint): unknown {
  return [text, values.map(([place, value]) => [place, toMonty(value, typeId)])];
}

/** The values that the prelude put beside a table. Throws `RangeError` for those that are too large. */
export function besideFromMonty(values: readonly (readonly [number, unknown])[]): VariableTable["values"] {
  const budget = createValueBudget((problem) => {
    throw new RangeError(`it ${problem}`);
  }, besideLimits);
  return values.map(([place, value]) => [place, fromMonty(value, budget)] as const);
}
