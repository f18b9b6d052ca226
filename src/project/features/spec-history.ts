import { KitError } from "../../base/kit-error.ts";
import type { CriterionHistory, CriterionHistoryQuery, WorseReport } from "../../protocol/spec-history.ts";
import type { Project, RefreshOptions } from "../project.ts";
import { digestOf, pageSize, parseCursor, toCursor, wrongCursor } from "../query/page.ts";
import { readPastStates, readStatesOf } from "../results/history-store.ts";
import { readRevision, resolveRevision } from "../scan/git/git-state.ts";
import { specCoverage } from "./coverage.ts";

/**
 * How the tests of a criterion ended over time, newest first: an entry per report that changed its state, and one per day. Empty for a
 * criterion that no report was about.
 *
 * Throws `invalid_request` for a limit out of range, and for a cursor of another query.
 *
 * @example
 * ```ts
 * import { openProject } from "kit";
 * import { criterionHistory } from "kit/project";
 *
 * const project = await openProject({ root: "." });
 * const { history } = criterionHistory(project, { criterion: "checkout#1.2" });
 * console.log(history.filter(({ flaky }) => flaky));
 * await project.close();
 * ```
 */
export function criterionHistory(
  { root }: Pick<Project, "root">,
  query: CriterionHistoryQuery,
): CriterionHistory {
  const { criterion, after, limit, cursor } = query;
  const size = pageSize(limit);
  const digest = digestOf(["history", criterion, after]);
  const [before = Number.MAX_SAFE_INTEGER] = cursor === undefined ? [] : parseCursor(digest, cursor);
  if (typeof before !== "number") throw wrongCursor();
  const entries = readPastStates(root, {
    criterion,
    after: after === undefined ? "" : new Date(after).toISOString(),
    before,
    // One more tells whether there is a further page.
    limit: size + 1,
  });
  const page = entries.slice(0, size);
  const last = page.at(-1);
  return {
    history: page.map(({ past }) => past),
    ...(entries.length > size && last !== undefined && { next_cursor: toCursor(digest, [last.report]) }),
  };
}

/**
 * The criteria that passed on another commit, by the results that were recorded of it, and do not pass by the present results.
 *
 * Throws `invalid_request` for a revision that Git does not know and for one without results, and `unavailable` without a repository.
 *
 * @example
 * ```ts
 * import { openProject } from "kit";
 * import { worseCriteria } from "kit/project";
 *
 * const project = await openProject({ root: "." });
 * const { worse } = await worseCriteria(project, { than: "origin/main" });
 * for (const { criterion, state } of worse) console.log(criterion, state);
 * await project.close();
 * ```
 */
export async function worseCriteria(
  project: Pick<Project, "root" | "specs" | "files" | "realPath">,
  { than, ...options }: RefreshOptions & { readonly than: string },
): Promise<WorseReport> {
  const { root } = project;
  const { signal } = options;
  const commit = await resolveRevision({ root, since: than, ...(signal && { signal }) });
  const tree = (await readRevision(root, { commit, signal }))?.tree ?? "";
  const states = readStatesOf(root, { commit, tree });
  if (states === undefined)
    throw new KitError({
      code: "invalid_request",
      message: `No results are recorded of ${than} (${commit.slice(0, 12)}).`,
      hint: `Run the tests there, and record their report: kit specs results junit.xml --commit ${commit.slice(0, 12)}`,
    });
  const { criteria, totals } = await specCoverage(project, options);
  const passed = [...states].filter(([, state]) => state === "passing").map(([criterion]) => criterion);
  const passedThere = new Set(passed);
  const here = new Set(criteria.map(({ id }) => id));
  return {
    commit,
    worse: criteria
      .filter(({ id, state }) => passedThere.has(id) && state !== "passing")
      .map(({ id, state, path, line }) => ({ criterion: id, state, path, line })),
    passed: passed.length,
    gone: passed.filter((criterion) => !here.has(criterion)),
    stale: totals.stale,
  };
}
