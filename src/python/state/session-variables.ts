import type { ForgottenVariable } from "../contract.ts";
import type { KeptFunction, KeptImport, SavedState, StateMessage } from "../process/messages.ts";

/** A stored variable, which only a Python process can read. */
export interface StoredVariable {
  readonly name: string;
  /** Functions that the value refers to. */
  readonly functions: readonly string[];
  /** Variables that share objects with this one: a run loads all of them or none. */
  readonly shares: readonly string[];
  /** The run that saved the variable. */
  readonly batch: number;
  readonly bytes: Uint8Array;
}

/** The state of a session between runs. */
export interface SessionVariables {
  readonly functions: ReadonlyMap<string, KeptFunction>;
  readonly imports: ReadonlyMap<string, KeptImport>;
  readonly data: ReadonlyMap<string, StoredVariable>;
}

export const noVariables: SessionVariables = { functions: new Map(), imports: new Map(), data: new Map() };

/** The limit for all variables of a session, in bytes. */
export const maxSessionBytes: number = 64 * 1024 * 1024;

const identifiers = /[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}]*/gu;

/** The variables of a session that one run loads. */
export interface SelectedVariables {
  readonly state: StateMessage;
  /** The bytes of the variables, concatenated. */
  readonly attachment: Uint8Array;
  readonly names: ReadonlySet<string>;
}

/**
 * Selects what a run needs: variables that its code may name, its inputs, the names used by their functions, and variables
 * that share objects with them. All other variables are not loaded, however large they are.
 */
export function selectVariables(
  run: { readonly code: string; readonly inputs: readonly string[] },
  variables: SessionVariables,
): SelectedVariables {
  const names = new Set<string>();
  const functions = new Set<KeptFunction>();
  const imports = new Set<KeptImport>();
  const data = new Set<StoredVariable>();
  // Python normalizes identifiers to NFKC (PEP 3131).
  const queue = [...new Set(run.code.normalize("NFKC").match(identifiers)), ...run.inputs];
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (names.has(name)) continue;
    const kept = variables.functions.get(name);
    const imported = variables.imports.get(name);
    const stored = variables.data.get(name);
    if (kept === undefined && imported === undefined && stored === undefined) continue;
    names.add(name);
    if (kept !== undefined) {
      functions.add(kept);
      queue.push(...kept.mentions);
    }
    if (imported !== undefined) imports.add(imported);
    if (stored !== undefined) {
      data.add(stored);
      queue.push(...stored.shares, ...stored.functions);
    }
  }
  return {
    state: {
      functions: [...functions],
      imports: [...imports],
      variables: [...data].map(({ name, batch, bytes }) => ({ name, batch, size: bytes.length })),
    },
    attachment: Buffer.concat([...data].map(({ bytes }) => bytes)),
    names,
  };
}

/** The variables after a run that loaded `taken` and ended with `saved`. */
export function updateVariables(
  before: SessionVariables,
  taken: ReadonlySet<string>,
  run: { readonly saved: SavedState; readonly attachment: Uint8Array },
): { readonly variables: SessionVariables; readonly forgotten: readonly ForgottenVariable[] } {
  const { saved } = run;
  // A name has one kind at a time, so a new value replaces the old one of any kind.
  const replaced = new Set(taken);
  for (const { name } of [...saved.functions, ...saved.imports, ...saved.forgotten]) replaced.add(name);
  for (const { name } of saved.variables) replaced.add(name);
  const without = <Kept>(all: ReadonlyMap<string, Kept>): Map<string, Kept> =>
    new Map([...all].filter(([name]) => !replaced.has(name)));
  const functions = without(before.functions);
  const imports = without(before.imports);
  const data = without(before.data);
  for (const kept of saved.functions) functions.set(kept.name, kept);
  for (const kept of saved.imports) imports.set(kept.name, kept);
  const forgotten = [...saved.forgotten];
  const batch = Math.max(0, ...Array.from(before.data.values(), (stored) => stored.batch)) + 1;
  let total = [...data.values()].reduce((sum, { bytes }) => sum + bytes.length, 0);
  let from = 0;
  for (const { size, ...variable } of saved.variables) {
    // Copy the bytes, so that a small variable does not keep a large message in memory.
    const bytes = new Uint8Array(run.attachment.subarray(from, from + size));
    from += size;
    const missing = variable.shares.find((name) => data.get(name)?.batch !== batch);
    if (total + size > maxSessionBytes || missing !== undefined) {
      const limit = `the variables of a session can take at most ${maxSessionBytes / 1024 / 1024} MiB`;
      forgotten.push({ name: variable.name, reason: missing === undefined ? limit : sharesWith(missing) });
      continue;
    }
    total += size;
    data.set(variable.name, { ...variable, batch, bytes });
    for (const name of variable.shares) {
      const other = data.get(name);
      if (other !== undefined) data.set(name, { ...other, shares: [...other.shares, variable.name] });
    }
  }
  return { variables: { functions, imports, data }, forgotten };
}

/** The reason for dropping a variable together with another one. */
export function sharesWith(name: string): string {
  return `it shares a value with ${name}, which is forgotten`;
}
