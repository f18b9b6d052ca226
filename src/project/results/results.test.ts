import { mkdirSync, renameSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { afterAll, beforeEach, expect, test } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import { requirementsFile } from "../../testing/requirements-file.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { pageCoverage, specCoverage } from "../features/coverage.ts";
import { openProject } from "../open-project.ts";
import type { Project } from "../project.ts";
import { readReport, recordResults } from "./record-results.ts";

const requirements = requirementsFile("Login", [
  "WHEN a user logs in THEN the system SHALL open a session.",
  "WHEN the password is wrong THEN the system SHALL refuse.",
  "WHEN a user logs out THEN the system SHALL close the session.",
  "WHEN three attempts fail THEN the system SHALL wait.",
]);

const loginTest = `import { test } from "vitest";
test("opens a session (auth#1.1)", () => {});
// auth#1.2
test.each(["a", "b"])("refuses %s", () => {});
describe("auth#1.3", () => {
  test("closes the session", () => {});
  test("forgets the cookie", () => {});
});
`;

const folder = await createTemporaryRepository();
let root = "";
let count = 0;
beforeEach(() => {
  count += 1;
  root = join(folder.root, String(count));
  const write = (path: string, text: string): void => {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  write(".kiro/specs/auth/requirements.md", requirements);
  write("src/login.test.ts", loginTest);
  write("tests/test_auth.py", 'def test_waits():\n    """auth#1.4"""\n');
});
afterAll(() => folder[Symbol.asyncDispose]());

async function inProject<Value>(work: (project: Project) => Promise<Value>): Promise<Value> {
  const project = await openProject({ root, indexFile: ":memory:" });
  try {
    return await work(project);
  } finally {
    await project.close();
  }
}

const states = (): Promise<string> =>
  inProject(async (project) => {
    const { criteria } = await specCoverage(project);
    return criteria.map(({ number, state }) => `${number} ${state}`).join(", ");
  });
const record = (report: string | Record<string, unknown>) =>
  inProject((project) => recordResults(project, report));

const junit = (cases: string, file = "src/login.test.ts"): string =>
  `<?xml version="1.0"?>\n<testsuites><testsuite name="${file}">${cases}</testsuite></testsuites>`;
const passed = (name: string, classname = "src/login.test.ts"): string =>
  `<testcase classname="${classname}" name="${name}" time="0.012"></testcase>`;
const failed = (name: string): string =>
  `<testcase classname="src/login.test.ts" name="${name}"><failure message="expected 1"><![CDATA[<!DOCTYPE html> at x]]></failure></testcase>`;

test("a criterion is covered and never ran, passes, or fails, as the last report has its tests", async () => {
  expect(await states()).toBe("1.1 never_run, 1.2 never_run, 1.3 never_run, 1.4 never_run");
  expect(
    await record(
      junit(
        passed("opens a session (auth#1.1)") +
          passed("refuses a") +
          failed("refuses b") +
          passed("auth#1.3 &gt; closes the session") +
          '<testcase classname="src/login.test.ts" name="auth#1.3 > forgets the cookie"><skipped/></testcase>',
      ),
    ),
  ).toMatchObject({
    format: "junit",
    files: 1,
    tests: 5,
    passed: 3,
    failed: 1,
    skipped: 1,
    unknown_tests: 0,
  });
  expect(await states()).toBe("1.1 passing, 1.2 failing, 1.3 partly_run, 1.4 never_run");
  const { criteria, totals } = await inProject((project) => specCoverage(project));
  expect(criteria[1]?.tests[0]?.result).toMatchObject({ status: "failed", tests: 2, message: "expected 1" });
  expect(criteria[0]?.tests[0]?.result).toMatchObject({ status: "passed", tests: 1, duration_ms: 12 });
  expect(criteria[2]?.tests[0]).toMatchObject({
    titles: ["auth#1.3"],
    result: { status: "skipped", tests: 2, skipped: 1 },
  });
  expect(totals).toMatchObject({ covered: 4, passing: 1, failing: 1, partly_run: 1, never_run: 1 });
});

test("a criterion passes only if all of its tests have passed", async () => {
  const write = (text: string): void => writeFileSync(join(root, "src/login.test.ts"), text);
  write(`// All of auth#1.1 is here.
import { test } from "vitest";
const one = 1;
const two = 2;
test("auth#1.1: an empty one", () => {});
test.skip("auth#1.1: the real one", () => {});
`);
  const skipped =
    '<testcase classname="src/login.test.ts" name="auth#1.1: the real one"><skipped/></testcase>';
  await record(junit(passed("auth#1.1: an empty one") + skipped));
  expect(await states()).toMatch("1.1 partly_run");
  await record(junit(passed("auth#1.1: an empty one")));
  expect(await states(), "the other one has no result").toMatch("1.1 partly_run");
  await record(junit(passed("auth#1.1: an empty one") + passed("auth#1.1: the real one")));
  expect(await states(), "the comment at the top belongs to no test").toMatch("1.1 passing");
  await record(junit(skipped));
  expect(await states()).toMatch("1.1 never_run");
  const page = await inProject(async (project) =>
    pageCoverage(await specCoverage(project), { show: "never_run" }),
  );
  expect(page.criteria.map(({ number }) => number)).toContain("1.1");
});

test("the box of a task that names a test is a claim, and no evidence", async () => {
  writeFileSync(
    join(root, ".kiro/specs/auth/tasks.md"),
    "- [x] 1. Wait after three attempts, see `tests/test_waiting.py`\n  - _Requirements: 1.4_\n",
  );
  writeFileSync(join(root, "tests/test_auth.py"), "");
  writeFileSync(join(root, "tests/test_waiting.py"), "def test_sleeps():\n    pass\n");
  await record(junit(passed("test_sleeps", "tests.test_waiting"), "pytest"));
  const { criteria } = await inProject((project) => specCoverage(project));
  expect(criteria.find(({ number }) => number === "1.4")).toMatchObject({
    state: "uncovered",
    tests: [],
    suggestions: [{ path: "tests/test_waiting.py", line: 1, score: 1 }],
  });
});

test("a result says who recorded it, and of which commit", async () => {
  await using repository = await createTemporaryRepository({
    ".kiro/specs/auth/requirements.md": requirements,
    "src/login.test.ts": loginTest,
    ".gitignore": ".kit\n",
  });
  root = repository.root;
  const report = junit(passed("opens a session (auth#1.1)"));
  const last = async (): Promise<unknown> =>
    (await inProject((project) => specCoverage(project))).criteria[0]?.tests[0]?.result;
  expect(await record(report)).not.toHaveProperty("commit");
  expect(await last()).toMatchObject({ source: "submitted" });
  await repository.init();
  const commit = await repository.commit("one", 1_700_000_000);
  const tree = await repository.git("rev-parse", "HEAD^{tree}");
  expect(await record(report)).toMatchObject({ source: "submitted", commit, tree });
  expect(await last()).toMatchObject({ source: "submitted", commit, tree });
  writeFileSync(join(root, "src/new.ts"), "");
  expect(await record(report)).toMatchObject({ commit, dirty: true });
  expect(await last()).not.toHaveProperty("tree");
  const options = { source: "observed", commit: commit.slice(0, 12), tree, by: "ci" } as const;
  await inProject((project) => recordResults(project, report, options));
  expect(await last()).toMatchObject(options);
  expect(await last()).not.toHaveProperty("dirty");
  for (const wrong of ["main", "123", "-x"])
    await expect(
      inProject((project) => recordResults(project, report, { commit: wrong })),
    ).rejects.toMatchObject({ code: "invalid_request", meta: { issues: [{ path: "commit" }] } });
});

test("results of Vitest and Jest, of another machine, and of pytest lead to the same files", async () => {
  const vitest = {
    testResults: [
      {
        name: "/home/ci/build/repo/src/login.test.ts",
        assertionResults: [
          {
            ancestorTitles: [],
            title: "opens a session (auth#1.1)",
            status: "failed",
            duration: 3,
            failureMessages: ["no"],
          },
          { ancestorTitles: ["auth#1.3"], title: "closes the session", status: "passed" },
        ],
      },
    ],
  };
  expect(await record(vitest)).toMatchObject({ format: "vitest", tests: 2, failed: 1 });
  const pytest = junit(passed("test_waits[3]", "tests.test_auth"), "pytest");
  expect(await record(pytest)).toMatchObject({ tests: 1, files: 1 });
  expect(await states()).toBe("1.1 failing, 1.2 never_run, 1.3 passing, 1.4 passing");
  expect(await record(JSON.stringify(vitest))).toMatchObject({ format: "vitest", tests: 2 });
});

test("a result is stale once the test, the code that the spec names, or the criterion has changed since", async () => {
  const write = (path: string, text: string): void => writeFileSync(join(root, path), text);
  const path = ".kiro/specs/auth/requirements.md";
  const code = "src/login.ts";
  write(code, "export const login = 1;\n");
  write(".kiro/specs/auth/tasks.md", `- [x] 1. Log in, in \`${code}\`\n  - _Requirements: 1.1_\n`);
  const opens = junit(passed("opens a session (auth#1.1)") + failed("refuses a"));
  const waits = junit(passed("test_waits", "tests.test_auth"), "pytest");
  const stale = (): Promise<string> =>
    inProject(async (project) => {
      const report = await specCoverage(project);
      const { criteria } = pageCoverage(report, { show: "stale" });
      expect(report.totals.stale).toBe(criteria.length);
      return criteria
        .map(({ number, tests }) => {
          const causes = tests
            .flatMap((result) => result.stale ?? [])
            .map((cause) => `${cause.cause} ${cause.path}`);
          return `${number}: ${causes.join(", ")}`;
        })
        .join("; ");
    });
  await record(opens);
  await record(waits);
  expect(await stale()).toBe("");
  utimesSync(join(root, code), new Date(), new Date());
  write(code, "export const login = 1;\r\n");
  expect(await stale(), "a checkout changes times and ends of lines").toBe("");

  write("src/login.test.ts", `${loginTest}// more\n`);
  expect(await stale()).toBe("1.1: test src/login.test.ts; 1.2: test src/login.test.ts");
  await record(opens);
  expect(await stale()).toBe("");

  write(path, requirements.replace("SHALL wait", "SHALL wait longer"));
  expect(await stale()).toBe(`1.4: criterion ${path}`);
  // Another report meets the new text; the result of the older one stays one of the old text.
  await record(opens);
  expect(await stale()).toBe(`1.4: criterion ${path}`);
  await record(waits);
  expect(await stale()).toBe("");

  write(code, "export const login = 2;\n");
  expect(await stale()).toBe(`1.1: code ${code}; 1.2: code ${code}; 1.4: code ${code}`);
  const page = await inProject(async (project) => specCoverage(project));
  expect(page.criteria.map(({ state }) => state)).toEqual(["passing", "failing", "never_run", "passing"]);
  expect(pageCoverage(page, { show: "not_passing" }).criteria.map(({ number }) => number)).toEqual([
    "1.2",
    "1.3",
  ]);
});

test("results that an older kit has kept are not called stale", async () => {
  await record(junit(passed("opens a session (auth#1.1)")));
  const database = new DatabaseSync(join(root, ".kit/test-results.db"));
  for (const table of ["seen", "lists", "reports", "states"]) database.exec(`DROP TABLE ${table}`);
  database.exec("ALTER TABLE files DROP COLUMN origin; PRAGMA user_version = 1;");
  database.close();
  writeFileSync(join(root, "src/login.test.ts"), `${loginTest}// more\n`);
  const { totals } = await inProject((project) => specCoverage(project));
  expect(totals).toMatchObject({ passing: 1, stale: 0 });
});

test("a report replaces what was known of its files, and nothing else", async () => {
  await record(junit(failed("opens a session (auth#1.1)") + failed("refuses a")));
  await record(junit(passed("test_waits", "tests.test_auth"), "pytest"));
  await record(junit(passed("opens a session (auth#1.1)")));
  expect(await states()).toBe("1.1 passing, 1.2 never_run, 1.3 never_run, 1.4 passing");
});

test("a test that is renamed, moved or removed is unknown again", async () => {
  const report = junit(passed("opens a session (auth#1.1)") + passed("refuses a"));
  await record(report);
  const path = join(root, "src/login.test.ts");
  writeFileSync(path, loginTest.replace("opens a session (auth#1.1)", "starts a session (auth#1.1)"));
  expect(await states()).toBe("1.1 never_run, 1.2 passing, 1.3 never_run, 1.4 never_run");
  writeFileSync(path, loginTest);
  renameSync(path, join(root, "src/sign-in.test.ts"));
  expect(await states()).toBe("1.1 never_run, 1.2 never_run, 1.3 never_run, 1.4 never_run");
  writeFileSync(join(root, "src/sign-in.test.ts"), "");
  expect(await states()).toBe("1.1 uncovered, 1.2 uncovered, 1.3 uncovered, 1.4 never_run");
});

test("tests of files that the project does not have are named and left out", async () => {
  const report = junit(passed("x", "src/other.test.ts"), "src/other.test.ts") as string;
  expect(await record(report)).toMatchObject({
    tests: 0,
    files: 0,
    unknown_tests: 1,
    unknown_files: ["src/other.test.ts"],
  });
});

test("a store of results that is a link out of the project is refused", async () => {
  mkdirSync(join(root, ".kit"));
  symlinkSync(join(folder.root, "elsewhere.db"), join(root, ".kit/test-results.db"));
  await expect(record(junit(passed("x")))).rejects.toMatchObject({ code: "forbidden" });
});

const laughs = `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "${"&lol;".repeat(10)}">]><testsuites>&lol2;</testsuites>`;

test.each<[name: string, report: string, message: RegExp]>([
  ["a billion laughs", laughs, /document type/],
  [
    "an external entity",
    `<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite>&x;</testsuite>`,
    /document type/,
  ],
  ["an entity of its own", "<testsuite><testcase name='&x;'/></testsuite>", /broken/],
  ["a document type alone", "<!DOCTYPE testsuite><testsuite/>", /document type/],
  ["deep nesting", `${"<testsuite>".repeat(5_000)}${"</testsuite>".repeat(5_000)}`, /deeper than 64/],
  ["an end that is missing", "<testsuite><testcase name='a'/>", /broken/],
  ["another document", "<html><testcase name='a'/></html>", /begins with <html>/],
  ["no test", "<testsuites/>", /no test/],
  ["a value without end", `<testsuite><testcase name="${"x".repeat(3_000_000)}"/></testsuite>`, /broken/],
  ["nothing", " ", /neither XML nor JSON/],
  ["a text", "all is well", /neither XML nor JSON/],
  ["other JSON", '{"tests": 3}', /no testResults/],
  ["deep JSON", `{"testResults":${"[".repeat(1_000)}${"]".repeat(1_000)}}`, /deeper than 64/],
  ["a broken entry", '{"testResults":[{"name":1}]}', /no name/],
  ["a prototype", '{"testResults":[{"name":"__proto__","assertionResults":[null]}]}', /is not an object/],
])("%s is refused, with what is wrong", async (_name, report, message) => {
  const began = performance.now();
  await expect(readReport(report)).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.stringMatching(message),
  });
  expect(performance.now() - began).toBeLessThan(5_000);
});

test("any text is a report or an error of ours", async () => {
  const piece = fc.oneof(
    fc.string(),
    fc.constantFrom(
      "<testsuite>",
      "</testsuite>",
      '<testcase name="a">',
      "</testcase>",
      "<failure>",
      "<![CDATA[",
      "]]>",
      "&amp;",
      "<!--",
      "-->",
      "<?x",
      "?>",
    ),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
      await readReport(`<testsuite>${pieces.join("")}</testsuite>`).catch((error: unknown) => {
        if (!(error instanceof KitError)) throw error;
      });
    }),
    { numRuns: 60 },
  );
});
