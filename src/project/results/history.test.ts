import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { requirementsFile } from "../../testing/requirements-file.ts";
import { createTemporaryRepository, type TemporaryRepository } from "../../testing/temporary-repository.ts";
import { criterionHistory, worseCriteria } from "../features/spec-history.ts";
import { openProject } from "../open-project.ts";
import type { Project } from "../project.ts";
import { type RecordOptions, recordResults } from "./record-results.ts";

const requirements = requirementsFile("Log in", [
  "WHEN a user logs in THEN the system SHALL open a session.",
  "WHEN the password is wrong THEN the system SHALL refuse.",
]);

let repository: TemporaryRepository;
let project: Project;
let first = "";

beforeEach(async () => {
  repository = await createTemporaryRepository({
    ".kiro/specs/auth/requirements.md": requirements,
    "src/a.test.ts": 'test("opens (auth#1.1)", () => {});\ntest("refuses (auth#1.2)", () => {});\n',
    "src/b.test.ts": 'test("opens again (auth#1.1)", () => {});\n',
    ".gitignore": ".kit\n",
  });
  await repository.init();
  first = await repository.commit("one", 1_700_000_000);
  project = await openProject({ root: repository.root, indexFile: ":memory:" });
});
afterEach(async () => {
  await project.close();
  await repository[Symbol.asyncDispose]();
});

/** A report with tests of two files, `+` passed and `-` failed: `a +opens -refuses`. */
const report = (...suites: readonly string[]): string =>
  `<testsuites>${suites
    .map((suite) => {
      const [file = "", ...tests] = suite.split(" ");
      const cases = tests.map((test) => {
        const name = titles[test.slice(1)] ?? "";
        return `<testcase name="${name}">${test.startsWith("-") ? '<failure message="no"/>' : ""}</testcase>`;
      });
      return `<testsuite name="src/${file}.test.ts" file="src/${file}.test.ts">${cases.join("")}</testsuite>`;
    })
    .join("")}</testsuites>`;
const titles: Readonly<Record<string, string>> = {
  opens: "opens (auth#1.1)",
  refuses: "refuses (auth#1.2)",
  again: "opens again (auth#1.1)",
};

const record = (suites: readonly string[], options?: RecordOptions) =>
  recordResults(project, report(...suites), options);
const states = (criterion = "auth#1.1"): string =>
  criterionHistory(project, { criterion })
    .history.map(({ state, flaky }) => (flaky === true ? `${state} (flaky)` : state))
    .join(", ");

test("a criterion has an entry for each change of its state, with its commit, and none for the same again", async () => {
  await record(["a +opens +refuses", "b +again"]);
  await record(["a +opens +refuses", "b +again"]);
  expect(states()).toBe("passing");
  await repository.write("src/new.ts", "1\n");
  const second = await repository.commit("two", 1_700_000_100);
  await record(["a -opens +refuses", "b +again"]);
  expect(states()).toBe("failing, passing");
  expect(states("auth#1.2")).toBe("passing");
  const { history } = criterionHistory(project, { criterion: "auth#1.1" });
  expect(history).toMatchObject([
    { state: "failing", passed: 1, failed: 1, skipped: 0, commit: second, source: "submitted" },
    { state: "passing", passed: 2, failed: 0, skipped: 0, commit: first },
  ]);
  expect(criterionHistory(project, { criterion: "auth#9.9" })).toEqual({ history: [] });
});

test("a result of another commit does not count for this one", async () => {
  await record(["a +opens", "b +again"]);
  await repository.write("src/new.ts", "1\n");
  await repository.commit("two", 1_700_000_100);
  await record(["a +opens"]);
  expect(states()).toBe("partly_run, passing");
});

test("reports of two machines about one commit add up, also with reports of another commit in between", async () => {
  const second = "b".repeat(40);
  await record(["a +opens"], { commit: first });
  await record(["a -opens"], { commit: second });
  await record(["b +again"], { commit: first.slice(0, 10) });
  await record(["b +again"], { commit: second });
  expect(states()).toBe("failing, passing, failing, partly_run");
});

test("a criterion that passed and failed on the same files is flaky", async () => {
  await record(["a +opens", "b +again"]);
  await record(["a -opens", "b +again"]);
  expect(states()).toBe("failing (flaky), passing (flaky)");
  await repository.write("src/new.ts", "1\n");
  await record(["a +opens", "b +again"]);
  await record(["a -opens", "b +again"]);
  expect(states(), "files that differ from their commit can be others each time").toBe(
    "failing, passing, failing (flaky), passing (flaky)",
  );
});

test("a criterion that passed on another commit and does not here is worse, and one without a spec is gone", async () => {
  await expect(worseCriteria(project, { than: "main" })).rejects.toMatchObject({
    code: "invalid_request",
    message: `No results are recorded of main (${first.slice(0, 12)}).`,
  });
  await record(["a +opens +refuses", "b +again"]);
  expect(await worseCriteria(project, { than: "main" })).toMatchObject({ worse: [], passed: 2, gone: [] });
  await repository.write("src/new.ts", "1\n");
  await repository.commit("two", 1_700_000_100);
  await record(["a -opens +refuses", "b +again"]);
  expect(await worseCriteria(project, { than: "HEAD~1" })).toMatchObject({
    commit: first,
    worse: [{ criterion: "auth#1.1", state: "failing", path: ".kiro/specs/auth/requirements.md", line: 7 }],
  });
  await repository.write(".kiro/specs/auth/requirements.md", requirements.replace(/^2\..*$/m, ""));
  await project.refresh();
  expect(await worseCriteria(project, { than: first })).toMatchObject({ gone: ["auth#1.2"] });
  await expect(worseCriteria(project, { than: "nowhere" })).rejects.toMatchObject({
    code: "invalid_request",
  });
});

test("results of the same day and state keep the state of a later commit", async () => {
  await record(["a +opens +refuses", "b +again"]);
  await repository.write("src/new.ts", "1\n");
  await repository.commit("two", 1_700_000_100);
  await record(["a +opens +refuses", "b +again"]);
  expect(states()).toBe("passing");
  await repository.write("src/new.ts", "2\n");
  await record(["a -opens +refuses", "b +again"]);
  expect((await worseCriteria(project, { than: "main" })).worse).toHaveLength(1);
});

test("a store of an earlier version keeps its results, and begins a history", async () => {
  await record(["a +opens +refuses", "b +again"]);
  const database = new DatabaseSync(join(repository.root, ".kit/test-results.db"));
  database.exec("DROP TABLE lists; DROP TABLE reports; DROP TABLE states; PRAGMA user_version = 3;");
  database.close();
  expect(states()).toBe("");
  await record(["b +again"]);
  expect(states()).toBe("partly_run");
});

test("a page of a hundred thousand entries takes milliseconds, and pages have each entry once", async () => {
  await record(["b +again"]);
  const database = new DatabaseSync(join(repository.root, ".kit/test-results.db"));
  database.exec(`
    WITH RECURSIVE days(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM days WHERE n < 1000)
      INSERT INTO reports (id, recorded_at, origin, revision, list)
      SELECT n + 1, strftime('%Y-%m-%dT00:00:00.000Z', '2020-01-01', n || ' days'), '{"source":"observed"}', 'tree' || (n / 2), 1 FROM days;
    WITH RECURSIVE keys(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM keys WHERE n < 100)
      INSERT INTO states (criterion, report, state, parts)
      SELECT 'auth#' || keys.n, r.id, iif(r.id % 7, 'passing', 'failing'), '{"src/a.test.ts":[1,0,0,0]}'
      FROM keys, reports r WHERE r.id > 1;
  `);
  database.close();
  const began = process.cpuUsage();
  const seen: string[] = [];
  let pages = 0;
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = criterionHistory(project, { criterion: "auth#7", ...(cursor !== undefined && { cursor }) });
    pages += 1;
    seen.push(...page.history.map(({ recorded_at }) => recorded_at));
    cursor = page.next_cursor;
  }
  expect(seen).toHaveLength(1_000);
  expect(seen).toEqual([...new Set(seen)].toSorted().toReversed());
  const { user, system } = process.cpuUsage(began);
  expect((user + system) / 1_000 / pages).toBeLessThan(10);
  const query = { criterion: "auth#7", after: "2022-09-20", limit: 1_000 };
  const after = criterionHistory(project, query).history.map(({ recorded_at }) => recorded_at);
  expect(after).toEqual(seen.filter((time) => time > "2022-09-20T00:00:00.000Z"));
  expect(() => criterionHistory(project, { criterion: "auth#8", cursor: "x" })).toThrow("cursor");
});
