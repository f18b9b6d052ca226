import { createHash } from "node:crypto";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import { isPythonName } from "../dataclass-registry.ts";
import type { KeptFunction, KeptImport } from "../process/messages.ts";
import { maxSessionBytes, type SessionVariables } from "./session-variables.ts";

const version = 2;
const start = /^\{"kit_python":(\d+),"sha256":"([0-9a-f]{64})",/;

/** The content of a dump, in this order of keys: the hash is that of its text. */
interface DumpContent {
  readonly functions: readonly KeptFunction[];
  readonly imports: readonly KeptImport[];
  readonly variables: readonly {
    readonly name: string;
    readonly functions: readonly string[];
    readonly shares: readonly string[];
    readonly batch: number;
    readonly data: string;
  }[];
}

/** A dump is JSON: `{"kit_python": 2, "sha256": …, "functions": […], "imports": […], "variables": […]}`. */
export function encodeDump({ functions, imports, data }: SessionVariables): Uint8Array {
  const content: DumpContent = {
    functions: [...functions.values()],
    imports: [...imports.values()],
    variables: Array.from(data.values(), ({ bytes, ...variable }) => ({
      ...variable,
      data: Buffer.from(bytes).toString("utf8"),
    })),
  };
  const text = JSON.stringify(content);
  const head = JSON.stringify({ kit_python: version, sha256: hashOf(text) });
  return new TextEncoder().encode(`${head.slice(0, -1)},${text.slice(1)}`);
}

/** Throws `invalid_request` for bytes that are not a dump, are damaged, or have another version. */
export function decodeDump(bytes: Uint8Array): SessionVariables {
  if (!(bytes instanceof Uint8Array)) throw refused("A dump of Python variables must be a Uint8Array.");
  const dump = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (dump.subarray(0, oldStart.length).equals(oldStart)) throw otherVersion(1);
  const found = start.exec(dump.toString("latin1", 0, 200));
  if (found === null) throw refused("These bytes are not a dump of Python variables.");
  const [head, number, hash] = found;
  if (Number(number) !== version) throw otherVersion(Number(number));
  const text = `{${dump.toString("utf8", head.length)}`;
  if (hashOf(text) !== hash) throw damaged();
  const { functions, imports, variables } = readContent(text);
  const data = variables.map(
    ({ data, ...variable }) =>
      [variable.name, { ...variable, bytes: new TextEncoder().encode(data) }] as const,
  );
  if (data.reduce((sum, [, { bytes }]) => sum + bytes.length, 0) > maxSessionBytes) throw damaged();
  return {
    functions: new Map(functions.map((item) => [item.name, item])),
    imports: new Map(imports.map((item) => [item.name, item])),
    data: new Map(data),
  };
}

/** Dumps of version 1 were binary. */
const oldStart = Buffer.from("KIT-PYTHON-STATE");

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function readContent(text: string): DumpContent {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (cause) {
    throw damaged(cause);
  }
  if (!isRecord(content)) throw damaged();
  const { functions, imports, variables } = content;
  const isContent =
    isListOf(functions, (item) => isSource(item) && isListOf(item.mentions, isText)) &&
    isListOf(imports, isSource) &&
    isListOf(variables, isVariable);
  if (!isContent) throw damaged();
  return content as unknown as DumpContent;
}

function isVariable(item: unknown): boolean {
  return (
    isRecord(item) &&
    isName(item.name) &&
    isListOf(item.functions, isName) &&
    isListOf(item.shares, isName) &&
    Number.isSafeInteger(item.batch) &&
    isText(item.data)
  );
}

function isSource(item: unknown): item is Record<string, unknown> {
  return isRecord(item) && isName(item.name) && isText(item.source);
}

function isListOf(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isItem);
}

function isName(value: unknown): boolean {
  return isText(value) && isPythonName(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function otherVersion(found: number): KitError {
  return refused(`This dump has version ${found}; this kit reads version ${version}.`);
}

function damaged(cause?: unknown): KitError {
  return refused("This dump of Python variables is damaged.", cause);
}

function refused(message: string, cause?: unknown): KitError {
  return new KitError({ code: "invalid_request", message, cause });
}
