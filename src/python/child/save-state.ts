import type { ForgottenVariable } from "../contract.ts";
import type { KeptFunction, KeptImport, SavedGroup, SavedState } from "../process/messages.ts";
import { readTable, type StateTable, splitTable, type TableEntry } from "./state-table.ts";

/** What the last call of a program gives beside the result; see `prelude.ts`. */
export type TakenVariables = readonly [
  roots: readonly (readonly [name: string, at: number])[],
  table: readonly (readonly unknown[])[],
  lost: readonly (readonly [name: string, kind: string])[],
];

/** Where the sources of functions and imports are found. Functions are numbered by their place. */
export interface KnownSources {
  readonly functions: readonly KeptFunction[];
  readonly imports: readonly KeptImport[];
}

/** Bytes that one group of variables may take. */
const maxGroupBytes = 16 * 1024 * 1024;
/** Bytes that all variables of one run may take. */
const maxSavedBytes = 48 * 1024 * 1024;

/** Makes what is stored of the variables that a program ended with. */
export function saveState(
  taken: TakenVariables,
  known: KnownSources,
): { readonly saved: SavedState; readonly attachment: Uint8Array } {
  const [roots, entries, lost] = taken;
  // A function stays where it is the value of its own name; then a value can refer to it by that name.
  const kept = new Map<number, KeptFunction>();
  const data = roots.filter(([name, at]) => {
    const number = entries[at]?.[0] === "function" ? Number(entries[at]?.[1]) : Number.NaN;
    const source = known.functions[number];
    if (source?.name !== name) return true;
    kept.set(number, source);
    return false;
  });
  const table = readTable(entries, (number) => kept.get(number)?.name ?? "");
  const imports = new Map(known.imports.map((item) => [item.name, item]));
  const forgotten: ForgottenVariable[] = [];
  const keptImports: KeptImport[] = [];
  for (const [name, kind] of lost) {
    const source = kind === "function" ? undefined : imports.get(name);
    if (source !== undefined) keptImports.push(source);
    else forgotten.push({ name, reason: reasonOf(kind) });
  }
  const groups: SavedGroup[] = [];
  const chunks: Buffer[] = [];
  let total = 0;
  for (const group of splitTable({ roots: data, table })) {
    const bytes = Buffer.from(JSON.stringify(group));
    const problem = problemOf(group, bytes.length, total);
    const names = group.roots.map(([name]) => name);
    if (problem !== undefined) {
      for (const name of names) forgotten.push({ name, reason: problem });
      continue;
    }
    total += bytes.length;
    chunks.push(bytes);
    groups.push({ names, functions: functionsOf(group.table), size: bytes.length });
  }
  return {
    saved: { functions: [...kept.values()], imports: keptImports, groups, forgotten },
    attachment: Buffer.concat(chunks),
  };
}

function problemOf(group: StateTable, bytes: number, total: number): string | undefined {
  if (functionsOf(group.table).includes("")) return "it holds a function that is no variable of its own";
  if (bytes > maxGroupBytes) return `it takes more than ${maxGroupBytes / 1024 / 1024} MiB`;
  return total + bytes > maxSavedBytes
    ? `together, the variables take more than ${maxSavedBytes / 1024 / 1024} MiB`
    : undefined;
}

function functionsOf(table: readonly TableEntry[]): readonly string[] {
  const names = new Set<string>();
  for (const entry of table) if (entry[0] === "function") names.add(entry[1]);
  return [...names];
}

function reasonOf(kind: string): string {
  if (kind === "host function") return "a function of the host is given anew to every run";
  if (kind === "function") {
    return "only a function made by def or lambda at the top level, without decorators and with constants as defaults, can be kept";
  }
  return `a value of the type ${/^<class '(.*)'>$/.exec(kind)?.[1] ?? kind} cannot be kept`;
}
