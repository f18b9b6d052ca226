import { createHash } from "node:crypto";
import { lstatSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { atOnce, type Steps } from "../../base/steps.ts";
import { assertNoLinkOut } from "../../files/find-place.ts";
import { hasCode } from "../../files/obstacle.ts";
import { makeFolderSync } from "../../files/replace-file.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import type { ResultOrigin } from "../../protocol/test-results.ts";
import { type CriteriaList, listCriteriaInSteps } from "../../specs/coverage/list-criteria.ts";
import { openStore, type StoreDefinition } from "../../sqlite/open-store.ts";
import { createTransaction, type Database, query } from "../../sqlite/statements.ts";
import { codeOf } from "../features/stale.ts";

/** How a test of a file ended when it last ran. */
export interface StoredResult {
  /** The titles of its groups, then its own title. */
  readonly titles: readonly string[];
  readonly status: "passed" | "failed" | "skipped";
  /** ISO 8601. */
  readonly recorded_at: string;
  readonly duration_ms?: number | undefined;
  readonly message?: string | undefined;
  readonly origin: ResultOrigin;
}

/** The last results of tests, by file. */
export interface TestResults {
  /** Returns the results of a file of the project; empty where no report had it. */
  of(path: string): readonly StoredResult[];
  /** Test files that have results. */
  files(): Iterable<string>;
  /**
   * Whether a file or text has changed since a result was submitted. False for a name that no report has a digest of: specs
   * name it only since then.
   */
  hasChanged(name: string, now: { readonly digest: string; readonly since: string }): boolean;
}

/** Test files, code files and criteria: the digest that the last report met, and the time of the first report that met it. */
const seenTable =
  "CREATE TABLE seen (name TEXT PRIMARY KEY, digest TEXT NOT NULL, since TEXT NOT NULL) WITHOUT ROWID;";

/**
 * The states of criteria over time. A report has the list of the criteria that it is about. A state has a row only if it, or the day,
 * is another one than in the row before, so the state at a report is that of the last row up to it.
 */
const historyTables = `
  CREATE TABLE lists (id INTEGER PRIMARY KEY, criteria TEXT NOT NULL UNIQUE);
  CREATE TABLE reports (id INTEGER PRIMARY KEY, recorded_at TEXT NOT NULL, origin TEXT NOT NULL, revision TEXT, list INTEGER NOT NULL);
  CREATE INDEX reports_of_revision ON reports (revision) WHERE revision IS NOT NULL;
  CREATE TABLE states (criterion TEXT NOT NULL, report INTEGER NOT NULL, state TEXT NOT NULL, parts TEXT NOT NULL,
    PRIMARY KEY (criterion, report)) WITHOUT ROWID;
`;

/** Results have a separate database: unlike the index, they cannot be rebuilt from the files of the project. */
const definition: StoreDefinition = {
  store: "The store of test results",
  applicationId: 0x6b697472, // "kitr"
  create: `
    CREATE TABLE files (path TEXT PRIMARY KEY, recorded_at TEXT NOT NULL, results TEXT NOT NULL, origin TEXT) WITHOUT ROWID;
    ${seenTable}
    ${historyTables}
  `,
  upgrades: [seenTable, "ALTER TABLE files ADD COLUMN origin TEXT;", historyTables],
  hint: "Remove .kit/test-results.db, and record the reports again: kit specs results <file>.",
};

const fileName = ".kit/test-results.db";

export interface RecordedReport {
  readonly recorded_at: string;
  /** By path. */
  readonly files: ReadonlyMap<string, readonly Omit<StoredResult, "recorded_at" | "origin">[]>;
  readonly origin: ResultOrigin;
  /** The digests of all that results can be older than, by name. */
  readonly digests: ReadonlyMap<string, string>;
}

/** Replaces the results of these files in one transaction. Keeps the results of other files. */
export function writeTestResults(
  root: string,
  { recorded_at, origin, files, digests }: RecordedReport,
): void {
  assertNoLinkOut(root, [".kit", fileName]);
  makeFolderSync(join(root, ".kit"));
  ignoreInGit(join(root, ".kit/.gitignore"));
  withStore(root, (database) => {
    const replace = query(
      database,
      "INSERT OR REPLACE INTO files (path, recorded_at, results, origin) VALUES (?, ?, ?, ?)",
    );
    const from = JSON.stringify(origin);
    createTransaction(database)(() => {
      for (const [path, results] of files) replace.run(path, recorded_at, JSON.stringify(results), from);
      const see = query(
        database,
        `INSERT INTO seen (name, digest, since) VALUES (?, ?, ?) ON CONFLICT (name)
         DO UPDATE SET digest = excluded.digest, since = excluded.since WHERE digest <> excluded.digest`,
      );
      for (const [name, digest] of digests) see.run(name, digest, recorded_at);
      const forget = query(database, "DELETE FROM seen WHERE name = ?");
      for (const { name } of query<{ name: string }>(database, "SELECT name FROM seen").all())
        if (!digests.has(name)) forget.run(name);
    });
  });
}

/** Reads the present results. A store that cannot be read counts as missing. */
export function readTestResults(root: string): TestResults {
  const stored = readStore(root, (database) => ({
    rows: query<Row>(database, "SELECT path, recorded_at, results, origin FROM files").all(),
    seen: query<SeenRow>(database, "SELECT name, digest, since FROM seen").all(),
  }));
  const rows = new Map(stored?.rows.map((row) => [row.path, row]));
  const seen = new Map(stored?.seen.map((row) => [row.name, row]));
  const parsed = new Map<string, readonly StoredResult[]>();
  return {
    of(path) {
      const row = rows.get(path);
      if (row === undefined) return [];
      const results = parsed.get(path) ?? parse(row);
      parsed.set(path, results);
      return results;
    },
    files: () => rows.keys(),
    hasChanged(name, { digest, since }) {
      const row = seen.get(name);
      return row !== undefined && (row.digest !== digest || row.since > since);
    },
  };
}

interface SeenRow {
  readonly name: string;
  readonly digest: string;
  readonly since: string;
}

interface Row {
  readonly path: string;
  readonly recorded_at: string;
  readonly results: string;
  /** Null in rows of earlier versions, which took reports of anybody. */
  readonly origin: string | null;
}

/** Asks the store; undefined where no report was ever recorded. */
export function readStore<Value>(root: string, work: (database: Database) => Value): Value | undefined {
  if (lstatSync(join(root, fileName), { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  assertNoLinkOut(root, [".kit"]);
  return withStore(root, work);
}

function parse({ results, recorded_at, origin }: Row): readonly StoredResult[] {
  const read = JSON.parse(results) as readonly Omit<StoredResult, "recorded_at" | "origin">[];
  const from: ResultOrigin = origin === null ? { source: "submitted" } : JSON.parse(origin);
  return read.map((result) => ({ ...result, recorded_at, origin: from }));
}

/** Opens the store for one piece of work; `writeTestResults` has made its folder. */
export function withStore<Value>(root: string, work: (database: Database) => Value): Value {
  const database = openStore(definition, join(root, fileName), (opened) =>
    opened.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"),
  );
  try {
    return work(database);
  } finally {
    database.close();
  }
}

function ignoreInGit(file: string): void {
  try {
    writeFileSync(file, "*\n", { flag: "wx" });
  } catch (error) {
    if (hasCode(error, "EEXIST")) return;
    // A full disk can leave a file without its line.
    rmSync(file, { force: true });
    throw error;
  }
}

/** The criteria and the code that results of tests are about. */
export interface ResultSources {
  readonly criteria: CriteriaList;
  /** The code of a block: the files that it names, and those that the tasks and designs of it name. By the block's id. */
  readonly codeOfBlock: ReadonlyMap<string, ReadonlySet<string>>;
  /** Blocks that name tests. */
  readonly naming: readonly SpecBlock[];
}

/** Reads the blocks of a project once. */
export function readSources(blocks: Iterable<SpecBlock>): ResultSources {
  return atOnce(readSourcesInSteps(blocks));
}

/** The same, one block at a time. */
export function* readSourcesInSteps(blocks: Iterable<SpecBlock>): Steps<ResultSources> {
  const codeOfBlock = new Map<string, Set<string>>();
  const naming: SpecBlock[] = [];
  const add = (id: string, paths: readonly string[]): void => {
    const codePaths = codeOfBlock.get(id) ?? new Set();
    for (const path of paths) codePaths.add(path);
    codeOfBlock.set(id, codePaths);
  };
  function* noticing(): Generator<SpecBlock> {
    for (const block of blocks) {
      if (block.metadata.test_refs?.length) naming.push(block);
      const paths = codeOf(block);
      if (paths.length > 0) {
        add(block.id, paths);
        if (block.spec_type === "task" || block.spec_type === "design")
          for (const related of block.metadata.related_specs ?? []) add(related, paths);
      }
      yield block;
    }
  }
  return { criteria: yield* listCriteriaInSteps(noticing()), codeOfBlock, naming };
}

/** The key of a criterion in a map of file paths: no path contains NUL. */
export const criterionName = (id: string): string => `\0${id}`;

export function digestOfText(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
