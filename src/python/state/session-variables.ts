import type { ForgottenVariable } from "../contract.ts";
import type { KeptFunction, KeptImport, SavedState, StateMessage } from "../process/messages.ts";

/** Variables that share objects, with their table as bytes that only a Python process reads. */
export interface VariableGroup {
  readonly names: readonly string[];
  /** Functions that the values refer to. */
  readonly functions: readonly string[];
  readonly bytes: Uint8Array;
}

/** What a session remembers between two runs. */
export interface SessionVariables {
  readonly functions: ReadonlyMap<string, KeptFunction>;
  readonly imports: ReadonlyMap<string, KeptImport>;
  readonly groups: readonly VariableGroup[];
}

export const noVariables: SessionVariables = { functions: new Map(), imports: new Map(), groups: [] };

/** Bytes that the variables of a session may take. */
export const maxSessionBytes: number = 64 * 1024 * 1024;

const identifiers = /[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}]*/gu;

/** The part of a session's variables that one run takes. */
export interface SelectedVariables {
  readonly state: StateMessage;
  /** The bytes of the groups, one after the other. */
  readonly attachment: Uint8Array;
  readonly names: ReadonlySet<string>;
}

/**
 * Chooses what a run needs: the variables that its code may name and those it is given, what their functions
 * name, and what shares objects with them. Everything else stays where it is, however large it is.
 */
export function selectVariables(
  run: { readonly code: string; readonly inputs: readonly string[] },
  variables: SessionVariables,
): SelectedVariables {
  const groupOf = new Map(
    variables.groups.flatMap((group) => group.names.map((name) => [name, group] as const)),
  );
  const names = new Set<string>();
  const functions = new Set<KeptFunction>();
  const imports = new Set<KeptImport>();
  const groups = new Set<VariableGroup>();
  // Python reads identifiers in this normal form (PEP 3131).
  const queue = [...new Set(run.code.normalize("NFKC").match(identifiers)), ...run.inputs];
  for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
    if (names.has(name)) continue;
    const kept = variables.functions.get(name);
    const imported = variables.imports.get(name);
    const group = groupOf.get(name);
    if (kept === undefined && imported === undefined && group === undefined) continue;
    names.add(name);
    if (kept !== undefined) {
      functions.add(kept);
      queue.push(...kept.mentions);
    }
    if (imported !== undefined) imports.add(imported);
    if (group !== undefined && !groups.has(group)) {
      groups.add(group);
      queue.push(...group.names, ...group.functions);
    }
  }
  return {
    state: {
      functions: [...functions],
      imports: [...imports],
      groups: [...groups].map(({ names, bytes }) => ({ names, size: bytes.length })),
    },
    attachment: Buffer.concat([...groups].map(({ bytes }) => bytes)),
    names,
  };
}

/** The variables after a run that took `taken` of them and ended with `saved`. */
export function updateVariables(
  before: SessionVariables,
  taken: ReadonlySet<string>,
  run: { readonly saved: SavedState; readonly attachment: Uint8Array },
): { readonly variables: SessionVariables; readonly forgotten: readonly ForgottenVariable[] } {
  const { saved } = run;
  // Names are of one kind at a time: what the run gave a new value is gone as what it was.
  const replaced = new Set(taken);
  for (const { name } of [...saved.functions, ...saved.imports, ...saved.forgotten]) replaced.add(name);
  for (const { names } of saved.groups) for (const name of names) replaced.add(name);
  const functions = new Map([...before.functions].filter(([name]) => !replaced.has(name)));
  const imports = new Map([...before.imports].filter(([name]) => !replaced.has(name)));
  const groups = before.groups.filter((group) => !group.names.some((name) => replaced.has(name)));
  for (const kept of saved.functions) functions.set(kept.name, kept);
  for (const kept of saved.imports) imports.set(kept.name, kept);
  const forgotten = [...saved.forgotten];
  let total = groups.reduce((sum, { bytes }) => sum + bytes.length, 0);
  let from = 0;
  for (const { names, functions: used, size } of saved.groups) {
    // A copy, so that a small variable does not hold on to the whole of a large message.
    const bytes = new Uint8Array(run.attachment.subarray(from, from + size));
    from += size;
    if (total + size > maxSessionBytes) {
      const reason = `the variables of a session may take ${maxSessionBytes / 1024 / 1024} MiB`;
      for (const name of names) forgotten.push({ name, reason });
      continue;
    }
    total += size;
    groups.push({ names, functions: used, bytes });
  }
  return { variables: { functions, imports, groups }, forgotten };
}
