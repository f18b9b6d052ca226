import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { open, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { KitError } from "../../../base/kit-error.ts";
import { storeUnavailable } from "../../../protocol/error-code.ts";
import { createTransaction, type Database, query } from "../../../sqlite/statements.ts";
import type { Blobs } from "../../shared/engine-base.ts";
import { parseStored } from "../../shared/stored-rows.ts";

/** Payloads above this size, in bytes of UTF-8, are stored as files. */
const largestInline = 256 * 1024;
/** The prefix of references. No JSON begins with it. */
const prefix = "blob:";
/** The age below which unused files are kept: a file is written shortly before the row that names it. */
const graceMs = 3_600_000;

export interface BlobStore extends Blobs {
  /** Removes payloads that no row names and that are older than an hour. */
  sweep(now: number): Promise<void>;
}

/** Stores large payloads as files, named after the SHA-256 of their content; without a folder all payloads are inline. */
export function createBlobStore(folder: string | undefined, database: Database): BlobStore {
  if (folder === undefined) {
    return {
      store: async (value) => toText(value),
      load: parseStored,
      size: (text) => text.length,
      sweep: async () => {},
    };
  }
  mkdirSync(folder, { recursive: true });
  const isUsed = database.prepare("SELECT 1 FROM blob_uses WHERE blob = ? LIMIT 1");
  const fileOf = (hash: string): string => join(folder, `${hash}.json`);

  return {
    async store(value) {
      const text = toText(value);
      // A UTF-16 unit has at most three bytes in UTF-8, so short texts need not be measured.
      if (text.length * 3 <= largestInline || Buffer.byteLength(text) <= largestInline) return text;
      const hash = createHash("sha256").update(text).digest("hex");
      await writeBlob(folder, fileOf(hash), text);
      return prefix + hash;
    },
    load: createBlobReader(folder),
    size(stored) {
      if (!stored.startsWith(prefix)) return stored.length;
      return statSync(fileOf(stored.slice(prefix.length)), { throwIfNoEntry: false })?.size ?? 0;
    },
    async sweep(now) {
      for (const name of await readdir(folder)) {
        const file = join(folder, name);
        if (isUsed.get(prefix + name.replace(/\.json$/, "")) !== undefined) continue;
        const info = await stat(file).catch(() => undefined);
        if (info !== undefined && now - info.mtimeMs > graceMs) await rm(file, { force: true });
      }
    },
  };
}

/** Returns the function that reads the payloads of a folder's store. */
export function createBlobReader(folder: string): (stored: string) => unknown {
  return (stored) =>
    parseStored(
      stored.startsWith(prefix) ? readPayload(join(folder, `${stored.slice(prefix.length)}.json`)) : stored,
    );
}

/** UTF-16 units per row: Cloudflare limits a row to 2 MB, and a unit has at most three bytes in UTF-8. */
const partLength = 500_000;

const partTable = `
CREATE TABLE IF NOT EXISTS blob_parts (
  blob TEXT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, stored_at INTEGER NOT NULL, PRIMARY KEY (blob, part)
) STRICT, WITHOUT ROWID;
`;

/** Stores large payloads as rows of the database, in parts, named after the SHA-256 of their content. */
export function createRowBlobStore(database: Database): BlobStore {
  database.exec(partTable);
  const transaction = createTransaction(database);
  const put = database.prepare("INSERT OR REPLACE INTO blob_parts VALUES (?, ?, ?, ?)");
  const parts = query<{ readonly text: string }>(
    database,
    "SELECT text FROM blob_parts WHERE blob = ? ORDER BY part",
  );
  const bytes = query<{ readonly bytes: number }>(
    database,
    "SELECT coalesce(sum(octet_length(text)), 0) AS bytes FROM blob_parts WHERE blob = ?",
  );
  const remove = database.prepare(
    "DELETE FROM blob_parts WHERE stored_at < ? AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob_uses.blob = blob_parts.blob)",
  );
  return {
    async store(value) {
      const text = toText(value);
      if (text.length * 3 <= largestInline || Buffer.byteLength(text) <= largestInline) return text;
      const blob = prefix + createHash("sha256").update(text).digest("hex");
      transaction(() => {
        for (let at = 0; at < text.length; at += partLength)
          put.run(blob, at / partLength, JSON.stringify(text.slice(at, at + partLength)), Date.now());
      });
      return blob;
    },
    load(stored) {
      if (!stored.startsWith(prefix)) return parseStored(stored);
      const rows = parts.all(stored);
      if (rows.length === 0) throw missingPayload(undefined);
      return parseStored(rows.map(({ text }) => String(JSON.parse(text))).join(""));
    },
    size: (stored) => (stored.startsWith(prefix) ? (bytes.get(stored)?.bytes ?? 0) : stored.length),
    async sweep(now) {
      remove.run(now - graceMs);
    },
  };
}

function readPayload(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw missingPayload(cause);
  }
}

function toText(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  return text ?? "null";
}

/** Writes a payload atomically: the file gets its name only once its content is on disk. */
async function writeBlob(folder: string, file: string, text: string): Promise<void> {
  if (existsSync(file)) {
    // Renews the time of the file, so that `sweep` keeps it until the row that names it is written.
    const now = new Date();
    const refreshed = await utimes(file, now, now).then(
      () => true,
      () => false,
    );
    if (refreshed) return;
  }
  const draft = join(folder, `${randomUUID()}.tmp`);
  try {
    await write(draft, text);
    await rename(draft, file);
    await syncFolder(folder);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw cannotStore(error);
  }
}

async function write(file: string, text: string): Promise<void> {
  const handle = await open(file, "wx");
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes the new file name durable. Windows cannot open folders, and does not need this. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function cannotStore(cause: unknown): KitError {
  return storeUnavailable({
    store: "The engine's store",
    reason: "a large payload could not be written",
    hint: "Check the disk of the engine's folder.",
    cause,
  });
}

function missingPayload(cause: unknown): KitError {
  return new KitError({ code: "internal_error", message: "A stored payload is missing.", cause });
}
