import { lstatSync, type Stats } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { attempt } from "../../base/attempt.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { readTestText, type TestText } from "../../specs/coverage/test-references.ts";
import { isTestPath } from "../../specs/model/mentions.ts";
import { sqliteFault } from "../../sqlite/database-file.ts";
import type { Connection } from "../../sqlite/statements.ts";
import type { RefreshOptions } from "../project.ts";
import type { ProjectIndex } from "../project-index.ts";
import { isSettled } from "../scan/tree.ts";
import { contentHash } from "./stale.ts";

/** The facts about a file that is no source: its digest, and the references and titles of a test. */
export interface KeptFile {
  readonly digest: string;
  readonly test?: TestText;
}

export interface KeptFiles {
  /** By path; without the files that are gone, and those of a diagnostic. */
  readonly files: ReadonlyMap<string, KeptFile>;
  readonly diagnostics: readonly Diagnostic[];
}

type Index = Pick<ProjectIndex, "root" | "read" | "writeRows" | "readSource" | "hasFile">;

interface Row extends KeptFile {
  readonly stamp: string;
}

/** Larger test files are generated, and skipped with a diagnostic. */
const maxTestBytes = 2 * 1024 * 1024;
/** Files per question to the index. */
const chunkSize = 200;
/** The longest time, in milliseconds, that a call blocks other work of the process. */
const pauseMs = 12;

/** Reads files by their real paths. Reads only those whose stamps differ from the index, and keeps them there. */
export async function readKept(
  index: Index,
  paths: readonly string[],
  { signal, onProgress }: RefreshOptions = {},
): Promise<KeptFiles> {
  const files = new Map<string, KeptFile>();
  const diagnostics: Diagnostic[] = [];
  const added = new Map<string, Row>();
  let start = performance.now();
  for (let from = 0; from < paths.length; from += chunkSize) {
    const chunk = paths.slice(from, from + chunkSize);
    const rows = index.read((database) => readRows(database, chunk));
    onProgress?.({ done: from, total: paths.length, phase: "tests" });
    for (const path of chunk) {
      signal?.throwIfAborted();
      const stats = lstatSync(`${index.root}/${path}`, { throwIfNoEntry: false });
      if (stats === undefined) continue;
      const known = rows.get(path);
      const row = known?.stamp === stampOf(stats) ? known : readRow(index, path, stats);
      if ("rule" in row) diagnostics.push(row);
      else files.set(path, row);
      if (!("rule" in row) && row !== known) added.set(path, row);
      if (performance.now() - start < pauseMs) continue;
      await nextTurn();
      start = performance.now();
    }
  }
  if (added.size > 0) writeRows(index, added);
  return { files, diagnostics };
}

function readRows(database: Connection, paths: readonly string[]): ReadonlyMap<string, Row> {
  const rows = database.all<[path: string, stamp: string, digest: string, test: string]>(
    "SELECT path, stamp, digest, test FROM kept WHERE path IN (SELECT value FROM json_each(?))",
    JSON.stringify(paths),
  );
  return new Map(
    rows.flatMap(([path, ...row]) => {
      const known = toRow(...row);
      return known === undefined ? [] : [[path, known] as const];
    }),
  );
}

/** A row as it was written; undefined for a damaged one, whose file is read again. */
function toRow(stamp: string, digest: string, test: string): Row | undefined {
  if (test === "") return { stamp, digest };
  return attempt(() => ({ stamp, digest, test: JSON.parse(test) as TestText }));
}

function readRow({ readSource }: Index, path: string, stats: Stats): Row | Diagnostic {
  const isTest = isTestPath(path);
  if (isTest && stats.size > maxTestBytes)
    return skipped(
      path,
      `${path} is larger than ${maxTestBytes / 1024 / 1024} MiB, so kit does not read it.`,
    );
  const read = readSource(path);
  if (read.kind === "gone") return skipped(path, `${path} is gone.`);
  if (read.kind === "problem") return skipped(path, read.diagnostic.message);
  const { bytes, seen } = read;
  const row = { stamp: isSettled(seen) ? stampOf(seen.stats) : "", digest: contentHash(bytes) };
  return isTest ? { ...row, test: readTestText(new TextDecoder().decode(bytes)) } : row;
}

function skipped(path: string, message: string): Diagnostic {
  return { severity: "warning", rule: "unreadable-file", message, path };
}

/** An empty stamp equals none: the file can change again within the same tick of the clock. */
function stampOf({ size, mtimeMs, ctimeMs, ino }: Stats): string {
  return `${size} ${mtimeMs} ${ctimeMs} ${ino}`;
}

function writeRows(index: Index, added: ReadonlyMap<string, Row>): void {
  try {
    index.writeRows((database) => {
      for (const [path, { stamp, digest, test }] of added)
        database.run(
          "INSERT OR REPLACE INTO kept (path, stamp, digest, test) VALUES (?, ?, ?, ?)",
          ...[path, stamp, digest, test === undefined ? "" : JSON.stringify(test)],
        );
      for (const [path] of database.all<[string]>("SELECT path FROM kept"))
        if (!index.hasFile(path)) database.run("DELETE FROM kept WHERE path = ?", path);
    });
  } catch (error) {
    // Another writer is at work, or the disk is full: the next call reads these files again.
    if (sqliteFault(error) === undefined) throw error;
  }
}
