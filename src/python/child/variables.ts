import { createValueBudget, type WireValue } from "../values/wire-value.ts";
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
