import type { ForgottenVariable } from "../contract.ts";
import type { KeptFunction, KeptImport, SavedState, SavedVariable } from "../process/messages.ts";
import { sharesWith } from "../state/session-variables.ts";
import { besideFromMonty, encodeTable } from "./variables.ts";

/** The variables that the last call of a program returns with the result; see `prelude.py`. */
export type TakenVariables = readonly [
  functions: readonly string[],
  written: readonly WrittenVariable[],
  lost: readonly (readonly [name: string, kind: string])[],
];

type WrittenVariable = readonly [
  name: string,
  text: string,
  values: readonly (readonly [place: number, value: unknown])[],
  functions: readonly string[],
  shares: readonly string[],
];

/** The sources of functions and imports; if a name occurs several times, the last one counts. */
export interface KnownSources {
  readonly functions: readonly KeptFunction[];
  readonly imports: readonly KeptImport[];
  /** Names that the program binds other than by an import. */
  readonly assigned: ReadonlySet<string>;
}

const mebibyte = 1024 * 1024;
/** The limit for one variable, in bytes. */
const maxVariableBytes = 16 * mebibyte;
/** The limit for all variables of one run, in bytes. */
const maxSavedBytes = 48 * mebibyte;

/** Serializes the variables at the end of a program. */
export function saveVariables(
  taken: TakenVariables,
  known: KnownSources,
): { readonly saved: SavedState; readonly attachment: Uint8Array } {
  const [functions, written, lost] = taken;
  const sources = new Map(known.functions.map((item) => [item.name, item]));
  const statements = new Map(known.imports.map((item) => [item.name, item]));
  const forgotten: ForgottenVariable[] = [];
  const imports: KeptImport[] = [];
  for (const [name, kind] of lost) {
    // A module can come from an import alone; what else has the name of one may be something else by now.
    const isImport = kind === "module" || (kind !== "function" && !known.assigned.has(name));
    const statement = isImport ? statements.get(name) : undefined;
    if (statement !== undefined) imports.push(statement);
    else forgotten.push({ name, reason: reasonOf(kind) });
  }
  const variables: SavedVariable[] = [];
  const chunks: Buffer[] = [];
  const left = new Set<string>();
  let total = 0;
  for (const variable of written) {
    const [name, , , used, shares] = variable;
    const other = shares.find((one) => left.has(one));
    const encoded = other === undefined ? encodeVariable(variable, total) : sharesWith(other);
    if (typeof encoded === "string") {
      left.add(name);
      forgotten.push({ name, reason: encoded });
      continue;
    }
    total += encoded.length;
    chunks.push(encoded);
    variables.push({ name, functions: used, shares, size: encoded.length });
  }
  return {
    saved: {
      functions: functions.flatMap((name) => sources.get(name) ?? []),
      imports,
      variables,
      forgotten,
    },
    attachment: Buffer.concat(chunks),
  };
}

/** The bytes of a variable, or the reason why it cannot be saved. */
function encodeVariable([, text, values]: WrittenVariable, total: number): Buffer | string {
  let bytes: Buffer;
  try {
    bytes = encodeTable({ text, values: besideFromMonty(values) });
  } catch (error) {
    if (error instanceof RangeError) return error.message;
    throw error;
  }
  if (bytes.length > maxVariableBytes) return `it takes more than ${maxVariableBytes / mebibyte} MiB`;
  return total + bytes.length > maxSavedBytes
    ? `together, the variables take more than ${maxSavedBytes / mebibyte} MiB`
    : bytes;
}

function reasonOf(kind: string): string {
  switch (kind) {
    case "function":
      return "only a function made by def or lambda at the top level, without decorators and with constants as defaults, can be kept";
    case "host function":
      return "each run receives the host's functions again";
    case "huge number":
      return "it holds a number of more than 4,300 digits";
    case "dataclass cycle":
      return "a dataclass that holds itself cannot be kept";
    default:
      if (kind.startsWith("dataclass of ")) {
        return `a dataclass that holds a value of the type ${typeName(kind)} cannot be kept`;
      }
      return `a value of the type ${typeName(kind)} cannot be kept`;
  }
}

function typeName(text: string): string {
  return (/<class '(.*)'>$/.exec(text)?.[1] ?? text).slice(0, 100);
}
