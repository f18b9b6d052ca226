import { createHash } from "node:crypto";
import { KitError } from "../../base/kit-error.ts";
import type { KeptFunction, KeptImport } from "../process/messages.ts";
import { isPythonName } from "../values/identifier.ts";
import { maxSessionBytes, type SessionVariables, type VariableGroup } from "./session-variables.ts";

/**
 * A dump: this text, the version as two bytes, the SHA-256 of all that follows, the length of the header as
 * four bytes, the header as JSON, and the groups it lists. Numbers are big-endian.
 */
const magic = Buffer.from("KIT-PYTHON-STATE");
const version = 1;
const hashAt = magic.length + 2;
const headerLengthAt = hashAt + 32;
const headerAt = headerLengthAt + 4;

interface DumpHeader {
  readonly functions: readonly KeptFunction[];
  readonly imports: readonly KeptImport[];
  readonly groups: readonly {
    readonly names: readonly string[];
    readonly functions: readonly string[];
    readonly size: number;
  }[];
}

export function encodeDump(variables: SessionVariables): Uint8Array {
  const header: DumpHeader = {
    functions: [...variables.functions.values()],
    imports: [...variables.imports.values()],
    groups: variables.groups.map(({ names, functions, bytes }) => ({ names, functions, size: bytes.length })),
  };
  const json = Buffer.from(JSON.stringify(header));
  const head = Buffer.alloc(headerAt);
  magic.copy(head);
  head.writeUInt16BE(version, magic.length);
  head.writeUInt32BE(json.length, headerLengthAt);
  const dump = Buffer.concat([head, json, ...variables.groups.map(({ bytes }) => bytes)]);
  hashOf(dump).copy(dump, hashAt);
  return new Uint8Array(dump.buffer, dump.byteOffset, dump.length);
}

/** Throws `invalid_request` for bytes that are no dump, that are damaged, or that a newer kit wrote. */
export function decodeDump(bytes: Uint8Array): SessionVariables {
  if (!(bytes instanceof Uint8Array)) throw refused("A dump of Python variables is a Uint8Array.");
  const dump = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (dump.length < headerAt || !dump.subarray(0, magic.length).equals(magic)) {
    throw refused("These bytes are no dump of Python variables.");
  }
  const found = dump.readUInt16BE(magic.length);
  if (found !== version) {
    throw refused(`This dump is of version ${found}; this kit reads version ${version}.`);
  }
  if (!hashOf(dump).equals(dump.subarray(hashAt, headerLengthAt))) throw damaged();
  const bodyAt = headerAt + dump.readUInt32BE(headerLengthAt);
  if (bodyAt > dump.length || dump.length - bodyAt > maxSessionBytes) throw damaged();
  const header = readHeader(dump.toString("utf8", headerAt, bodyAt));
  const groups: VariableGroup[] = [];
  let from = bodyAt;
  for (const { names, functions, size } of header.groups) {
    groups.push({ names, functions, bytes: new Uint8Array(dump.subarray(from, from + size)) });
    from += size;
  }
  if (from !== dump.length) throw damaged();
  return {
    functions: new Map(header.functions.map((item) => [item.name, item])),
    imports: new Map(header.imports.map((item) => [item.name, item])),
    groups,
  };
}

function hashOf(dump: Buffer): Buffer {
  return createHash("sha256").update(dump.subarray(headerLengthAt)).digest();
}

function readHeader(json: string): DumpHeader {
  let header: unknown;
  try {
    header = JSON.parse(json);
  } catch (cause) {
    throw damaged(cause);
  }
  if (!isRecord(header)) throw damaged();
  const { functions, imports, groups } = header;
  const isHeader =
    isListOf(functions, (item) => isSource(item) && isListOf(item.mentions, isText)) &&
    isListOf(imports, isSource) &&
    isListOf(groups, isGroup);
  if (!isHeader) throw damaged();
  return header as unknown as DumpHeader;
}

function isGroup(item: unknown): boolean {
  return (
    isRecord(item) &&
    isListOf(item.names, isName) &&
    isListOf(item.functions, isName) &&
    Number.isSafeInteger(item.size) &&
    Number(item.size) >= 0
  );
}

function isSource(item: unknown): item is Record<string, unknown> {
  return isRecord(item) && isName(item.name) && isText(item.source);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
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

function damaged(cause?: unknown): KitError {
  return refused("This dump of Python variables is damaged.", cause);
}

function refused(message: string, cause?: unknown): KitError {
  return new KitError({ code: "invalid_request", message, cause });
}
