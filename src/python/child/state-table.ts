import { createValueBudget, type WireValue } from "../values/wire-value.ts";
import { fromMonty, toMonty } from "./monty-values.ts";

/** Items of a container: scalars, floats, or positions in the table. See `prelude.ts`. */
type Items = readonly ["v" | "f", readonly WireValue[]] | readonly ["n", readonly number[]];

/** One object of the table, as it is stored. A function is stored by its name. */
export type TableEntry =
  | readonly ["v" | "f" | "native", WireValue]
  | readonly ["function" | "path", string]
  | readonly ["pattern", string, number]
  | readonly ["list" | "tuple" | "set" | "frozenset", Items]
  | readonly ["dict", Items, Items];

/** Variables with the objects they reach; variables that share an object are in one table. */
export interface StateTable {
  readonly roots: readonly (readonly [name: string, at: number])[];
  readonly table: readonly TableEntry[];
}

/** Parts, and characters, that the variables of one run may hold together. */
const stateLimits = { depth: 200, nodes: 3_000_000, chars: 64_000_000 };

/** The table that Monty gave. `functionName` is the name of a function by its number. */
export function readTable(entries: unknown, functionName: (number: number) => string): TableEntry[] {
  const budget = createValueBudget((problem) => {
    throw new RangeError(`What the variables hold ${problem}.`);
  }, stateLimits);
  return (entries as readonly (readonly unknown[])[]).map((entry): TableEntry => {
    const kind = String(entry[0]);
    switch (kind) {
      case "function":
        return [kind, functionName(Number(entry[1]))];
      case "path":
        return [kind, String(entry[1])];
      case "pattern":
        return [kind, String(entry[1]), Number(entry[2])];
      case "list":
      case "tuple":
      case "set":
      case "frozenset":
        return [kind, readItems(entry[1], budget)];
      case "dict":
        return [kind, readItems(entry[1], budget), readItems(entry[2], budget)];
      default:
        return [kind as "v", fromMonty(entry[1], budget)];
    }
  });
}

function readItems(given: unknown, budget: ReturnType<typeof createValueBudget>): Items {
  const [kind, values] = given as readonly [string, readonly unknown[]];
  if (kind === "n") {
    for (const _ of values) budget.enter(0);
    return ["n", [...(values as readonly number[])]];
  }
  return [kind as "v", values.map((value) => fromMonty(value, budget))];
}

/** The tables of several groups as one, for Monty. `functionNumber` is the number of a function by its name. */
export function writeTables(
  tables: readonly StateTable[],
  convert: { typeId(name: string): bigint; functionNumber(name: string): number },
): { readonly entries: readonly unknown[]; readonly roots: StateTable["roots"] } {
  const entries: unknown[] = [];
  const roots: [string, number][] = [];
  for (const { table, roots: own } of tables) {
    const base = entries.length;
    for (const [name, at] of own) roots.push([name, base + at]);
    const value = (wire: WireValue): unknown => toMonty(wire, convert.typeId);
    const items = (part: Items): unknown[] => {
      if (part[0] === "n") return ["n", part[1].map((at) => base + at)];
      return [part[0], part[1].map(part[0] === "f" ? toFloat : value)];
    };
    for (const entry of table) {
      if (entry[0] === "function") entries.push(["function", convert.functionNumber(entry[1])]);
      else if (entry[0] === "path" || entry[0] === "pattern") entries.push([...entry]);
      else if (entry[0] === "dict") entries.push(["dict", items(entry[1]), items(entry[2])]);
      else if (entry[0] === "f") entries.push(["f", toFloat(entry[1])]);
      else if (isContainer(entry)) entries.push([entry[0], items(entry[1])]);
      else entries.push([entry[0], value(entry[1])]);
    }
  }
  return { entries, roots };
}

// Python makes a float of it; as a number, -0 would have become the integer 0 by then.
function toFloat(wire: WireValue): unknown {
  const value = toMonty(wire, () => 0n);
  return Object.is(value, -0) ? "-0.0" : value;
}

/** Parts a table into groups that share no object, so that each can be stored and fetched by itself. */
export function splitTable({ roots, table }: StateTable): readonly StateTable[] {
  const owner = new Int32Array(table.length).fill(-1);
  const parent = roots.map((_, index) => index);
  const find = (index: number): number => {
    let at = index;
    while (parent[at] !== at) {
      parent[at] = parent[parent[at] ?? at] ?? at;
      at = parent[at] ?? at;
    }
    return at;
  };
  roots.forEach(([, root], index) => {
    const stack = [root];
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      const other = owner[at] ?? -1;
      if (other === -1) {
        owner[at] = index;
        for (const child of childrenOf(table[at])) stack.push(child);
      } else if (other !== index) parent[find(index)] = find(other);
    }
  });
  const groups = new Map<number, { roots: [string, number][]; places: number[] }>();
  const groupOf = (index: number): { roots: [string, number][]; places: number[] } => {
    const key = find(index);
    const group = groups.get(key) ?? { roots: [], places: [] };
    groups.set(key, group);
    return group;
  };
  // Each object is numbered anew by its place in its group.
  const moved = new Int32Array(table.length);
  owner.forEach((index, at) => {
    if (index === -1) return;
    const { places } = groupOf(index);
    moved[at] = places.length;
    places.push(at);
  });
  roots.forEach(([name, root], index) => {
    groupOf(index).roots.push([name, moved[root] ?? 0]);
  });
  return [...groups.values()].map((group) => ({
    roots: group.roots,
    table: group.places.flatMap((at) => {
      const entry = table[at];
      return entry === undefined ? [] : [withPlaces(entry, moved)];
    }),
  }));
}

function childrenOf(entry: TableEntry | undefined): readonly number[] {
  if (entry === undefined) return [];
  if (entry[0] === "dict") return [...placesOf(entry[1]), ...placesOf(entry[2])];
  return isContainer(entry) ? placesOf(entry[1]) : [];
}

function isContainer(entry: TableEntry): entry is readonly ["list" | "tuple" | "set" | "frozenset", Items] {
  return entry[0] === "list" || entry[0] === "tuple" || entry[0] === "set" || entry[0] === "frozenset";
}

function placesOf(items: Items): readonly number[] {
  return items[0] === "n" ? items[1] : [];
}

function withPlaces(entry: TableEntry, moved: Int32Array): TableEntry {
  const items = (part: Items): Items => (part[0] === "n" ? ["n", part[1].map((at) => moved[at] ?? 0)] : part);
  if (entry[0] === "dict") return ["dict", items(entry[1]), items(entry[2])];
  return isContainer(entry) ? [entry[0], items(entry[1])] : entry;
}
