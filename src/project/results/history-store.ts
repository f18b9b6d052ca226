import type { CriterionState } from "../../protocol/enums.ts";
import type { PastState } from "../../protocol/spec-history.ts";
import type { ResultOrigin } from "../../protocol/test-results.ts";
import { createTransaction, type Database, query } from "../../sqlite/statements.ts";
import { readStore, withStore } from "./results-store.ts";

/** How the tests of a criterion in one file ended. `missing`: places of the file that name the criterion and have no result. */
export interface FilePart {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly missing: number;
}

/** The tests of a criterion by file, with `undefined` for a file that the report does not have. */
export type CriterionParts = ReadonlyMap<string, FilePart | undefined>;

interface ReportedStates {
  readonly recorded_at: string;
  readonly origin: ResultOrigin;
  /** By key; only criteria with a test in the report. */
  readonly criteria: ReadonlyMap<string, CriterionParts>;
}

interface StateRow {
  readonly state: CriterionState;
  readonly parts: string;
  readonly recorded_at: string;
}

/**
 * Adds a report to the history of its criteria. Reports of one commit add up, as those of machines that share the tests of a
 * commit: a file without a result in this report has that of an earlier report of the commit.
 */
export function writeHistory(root: string, { recorded_at, origin, criteria }: ReportedStates): void {
  if (criteria.size === 0) return;
  withStore(root, (database) =>
    createTransaction(database)(() => {
      const revision = (origin.dirty === true ? undefined : (origin.tree ?? origin.commit)) ?? null;
      const earlier = revision === null ? [] : reportReader(database)(revision);
      const list = JSON.stringify([...criteria.keys()].sort());
      query(database, "INSERT OR IGNORE INTO lists (criteria) VALUES (?)").run(list);
      const report = query<{ id: number }>(
        database,
        `INSERT INTO reports (recorded_at, origin, revision, list)
         VALUES (?, ?, ?, (SELECT id FROM lists WHERE criteria = ?)) RETURNING id`,
      ).get(recorded_at, JSON.stringify(origin), revision, list);
      const id = report?.id ?? 0;
      const add = query(database, "INSERT INTO states (criterion, report, state, parts) VALUES (?, ?, ?, ?)");
      const stateAt = stateReader(database);
      for (const [criterion, parts] of criteria) {
        const before = earlier.find((one) => one.criteria.has(criterion));
        const merged = mergeParts(parts, before && stateAt(criterion, before.id));
        const next = { state: stateOf(merged), parts: JSON.stringify(merged) };
        const last = stateAt(criterion, id);
        const isSame =
          last?.state === next.state &&
          last.parts === next.parts &&
          last.recorded_at.slice(0, 10) === recorded_at.slice(0, 10);
        if (!isSame) add.run(criterion, id, next.state, next.parts);
      }
    }),
  );
}

type Parts = Readonly<
  Record<string, readonly [passed: number, failed: number, skipped: number, missing: number]>
>;

function mergeParts(parts: CriterionParts, before: StateRow | undefined): Parts {
  const known: Parts = before === undefined ? {} : JSON.parse(before.parts);
  const files = [...parts].toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(
    files.map(([path, part]) => [
      path,
      part === undefined
        ? (known[path] ?? [0, 0, 0, 1])
        : [part.passed, part.failed, part.skipped, part.missing],
    ]),
  );
}

function sumOf(parts: Parts): FilePart {
  const sum = { passed: 0, failed: 0, skipped: 0, missing: 0 };
  for (const [passed, failed, skipped, missing] of Object.values(parts)) {
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped;
    sum.missing += missing;
  }
  return sum;
}

/** As in coverage: a criterion passes only if all of its tests did. */
function stateOf(parts: Parts): CriterionState {
  const { passed, failed, skipped, missing } = sumOf(parts);
  if (failed > 0) return "failing";
  if (passed === 0) return "never_run";
  return skipped + missing > 0 ? "partly_run" : "passing";
}

/** The state of a criterion at a report: that of the last row up to it. */
function stateReader(database: Database): (criterion: string, report: number) => StateRow | undefined {
  const rows = query<StateRow>(
    database,
    `SELECT s.state, s.parts, r.recorded_at FROM states s JOIN reports r ON r.id = s.report
     WHERE s.criterion = ? AND s.report <= ? ORDER BY s.report DESC LIMIT 1`,
  );
  return (criterion, report) => rows.get(criterion, report);
}

interface Report {
  readonly id: number;
  readonly criteria: ReadonlySet<string>;
}

/** Finds the last reports of a commit, newest first: machines that share its tests are few. */
function reportReader(
  database: Database,
  condition = "r.revision = ?",
): (...values: readonly string[]) => readonly Report[] {
  const reports = query<{ id: number; list: number }>(
    database,
    `SELECT r.id, r.list FROM reports r WHERE ${condition} ORDER BY r.id DESC LIMIT 100`,
  );
  const lists = query<{ criteria: string }>(database, "SELECT criteria FROM lists WHERE id = ?");
  const sets = new Map<number, ReadonlySet<string>>();
  return (...values) =>
    reports.all(...values).map(({ id, list }) => {
      const criteria = sets.get(list) ?? new Set<string>(JSON.parse(lists.get(list)?.criteria ?? "[]"));
      sets.set(list, criteria);
      return { id, criteria };
    });
}

/** The states of the criteria on a commit; undefined if no report is of it. */
export function readStatesOf(
  root: string,
  { commit, tree }: { readonly commit: string; readonly tree: string },
): ReadonlyMap<string, CriterionState> | undefined {
  return readStore(root, (database) => {
    // A report can name its commit in fewer digits.
    const reports = reportReader(database, "r.revision = ? OR instr(?, r.revision) = 1")(tree, commit);
    if (reports.length === 0) return undefined;
    const stateAt = stateReader(database);
    const states = new Map<string, CriterionState>();
    for (const { id, criteria } of reports)
      for (const criterion of criteria) {
        if (states.has(criterion)) continue;
        const row = stateAt(criterion, id);
        if (row !== undefined) states.set(criterion, row.state);
      }
    return states;
  });
}

interface HistoryRequest {
  readonly criterion: string;
  /** Only entries that were recorded after this time, ISO 8601 in UTC. */
  readonly after: string;
  /** Only entries of reports before this one. */
  readonly before: number;
  readonly limit: number;
}

/** Entries of the history of a criterion, newest first, each with the number of its report. */
export function readPastStates(
  root: string,
  { criterion, after, before, limit }: HistoryRequest,
): readonly { readonly report: number; readonly past: PastState }[] {
  const past = readStore(root, (database) => {
    const rows = query<StateRow & { report: number; origin: string; revision: string | null }>(
      database,
      `SELECT s.report, s.state, s.parts, r.recorded_at, r.origin, r.revision
       FROM states s CROSS JOIN reports r ON r.id = s.report
       WHERE s.criterion = ? AND s.report < ? AND r.recorded_at > ? ORDER BY s.report DESC LIMIT ?`,
    ).all(criterion, before, after, limit);
    const isFlaky = flakinessReader(database, criterion);
    return rows.map(({ report, state, parts, recorded_at, origin, revision }) => {
      const { missing: _, ...counts } = sumOf(JSON.parse(parts));
      const from: ResultOrigin = JSON.parse(origin);
      const entry = { criterion, state, ...counts, recorded_at, ...from };
      return { report, past: isFlaky(revision) ? { ...entry, flaky: true as const } : entry };
    });
  });
  return past ?? [];
}

/** Whether a criterion has both passed and failed on the same files. */
function flakinessReader(database: Database, criterion: string): (revision: string | null) => boolean {
  const stateAt = stateReader(database);
  const reportsOf = reportReader(database);
  const several = query<{ count: number }>(
    database,
    "SELECT count(*) AS count FROM reports WHERE revision = ?",
  );
  const known = new Map<string, boolean>();
  return (revision) => {
    if (revision === null) return false;
    const answer = known.get(revision);
    if (answer !== undefined) return answer;
    const reports = (several.get(revision)?.count ?? 0) < 2 ? [] : reportsOf(revision);
    const states = new Set(
      reports
        .filter(({ criteria }) => criteria.has(criterion))
        .map(({ id }) => stateAt(criterion, id)?.state),
    );
    const flaky = states.has("passing") && states.has("failing");
    known.set(revision, flaky);
    return flaky;
  };
}
