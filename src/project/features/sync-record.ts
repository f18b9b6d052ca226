import { createHash } from "node:crypto";
import { canonical } from "../../base/json-text.ts";
import { isRecord } from "../../base/record.ts";
import { readFileInside, type WritableRoot, writeFileInside } from "./write-file.ts";

/** The file that remembers what a sync wrote, where a copy or a JSON file has no place for a mark. People commit it. */
export const recordPath = "kit.synced.json";

/** The digests of what kit wrote: by the path of a file, and by `path#name` of a server in a file. */
export interface SyncRecord {
  readonly written: Map<string, string>;
  /** The file as it was last read or written. */
  before: Uint8Array | null;
}

/** A record that cannot be read knows nothing: kit then overwrites no copy that differs. */
export async function readRecord(root: string): Promise<SyncRecord> {
  const bytes = (await readFileInside(root, { path: recordPath })) ?? null;
  const written = new Map<string, string>();
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes ?? new Uint8Array()));
    for (const [key, digest] of Object.entries(isRecord(value) ? value : {}))
      if (typeof digest === "string") written.set(key, digest);
  } catch {
    // No JSON, such as after a conflict of Git.
  }
  return { written, before: bytes };
}

/** Writes the record if it says something else than the file. Returns whether it wrote. */
export async function writeRecord(target: WritableRoot, record: SyncRecord): Promise<boolean> {
  const { written, before } = record;
  const sorted = [...written].sort(([one], [other]) => (one < other ? -1 : 1));
  const content = `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`;
  if (before === null ? written.size === 0 : Buffer.from(content).equals(before)) return false;
  await writeFileInside(target, { path: recordPath, content, expected: before });
  record.before = Buffer.from(content);
  return true;
}

/** The digest of a file, or of settings in any order of their keys. */
export function digestOf(value: Uint8Array | Readonly<Record<string, unknown>>): string {
  const bytes = value instanceof Uint8Array ? value : Buffer.from(canonical(value));
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}
