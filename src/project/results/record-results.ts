import { KitError } from "../../base/kit-error.ts";
import { parseJson } from "../../base/parse-json.ts";
import { defined, isRecord } from "../../base/record.ts";
import { commitPattern, type ReportFormat } from "../../protocol/enums.ts";
import type { RecordedResults, ResultOrigin } from "../../protocol/test-results.ts";
import { readCriteria } from "../features/criteria-links.ts";
import { readKept } from "../features/kept-files.ts";
import { assertWritable } from "../features/write-file.ts";
import type { Project } from "../project.ts";
import { indexOf } from "../project-index.ts";
import { readRevision } from "../scan/git/git-state.ts";
import { recordHistory } from "./record-history.ts";
import {
  criterionName,
  digestOfText,
  readTestResults,
  type StoredResult,
  writeTestResults,
} from "./results-store.ts";

export interface RecordOptions {
  /** Default: detected from the report. */
  readonly format?: ReportFormat | undefined;
  /** `observed` only if this program has run the tests itself. Default: `submitted`. */
  readonly source?: ResultOrigin["source"] | undefined;
  /** The commit that the tests ran on. Default: that of the project, with its tree if no file differs. */
  readonly commit?: string | undefined;
  /** The tree of Git that the tests ran on, if it is not that of the commit. */
  readonly tree?: string | undefined;
  /** The id of the principal that sent the report. */
  readonly by?: string | undefined;
}

/** File names of a reply. */
const mostUnknown = 20;

/**
 * Keeps the results of a report in the project's `.kit`, so that coverage tells how the tests of a criterion ended. What was known of
 * the files of the report is replaced, what was known of others stays. Throws `invalid_request` for a report that cannot
 * be read, and `forbidden` in a read-only project.
 *
 * @example
 * ```ts
 * import { readFileSync } from "node:fs";
 * import { openProject } from "kit";
 * import { recordResults } from "kit/project";
 *
 * const project = await openProject({ root: "." });
 * const { passed, failed } = await recordResults(project, readFileSync("junit.xml", "utf8"));
 * console.log(passed, failed);
 * await project.close();
 * ```
 */
export async function recordResults(
  project: Pick<Project, "root" | "readOnly" | "files" | "realPath" | "specs">,
  report: string | Readonly<Record<string, unknown>>,
  { format: requestedFormat, ...from }: RecordOptions = {},
): Promise<RecordedResults> {
  assertWritable(project);
  const { format, tests } = await readReport(report, requestedFormat);
  const origin = await originOf(project.root, from);
  const find = createFileFinder(project);
  const files = new Map<string, ReportedResult[]>();
  const unknown = new Set<string>();
  const count = { passed: 0, failed: 0, skipped: 0, unknown_tests: 0 };
  for (const { locations, failure: _, ...test } of tests) {
    const path = find(locations);
    if (path === undefined) {
      count.unknown_tests += 1;
      if (unknown.size < mostUnknown) unknown.add(nameOf(project.root, locations));
      continue;
    }
    count[test.status] += 1;
    const results = files.get(path);
    if (results === undefined) files.set(path, [test]);
    else results.push(test);
  }
  const recorded_at = new Date().toISOString();
  if (files.size > 0) {
    const digests = await digestsOf(project, [...files.keys(), ...readTestResults(project.root).files()]);
    writeTestResults(project.root, { recorded_at, origin, files, digests });
    await recordHistory(project, { recorded_at, origin, files });
  }
  return {
    format,
    recorded_at,
    ...origin,
    files: files.size,
    tests: tests.length - count.unknown_tests,
    ...count,
    unknown_files: [...unknown],
  };
}

type ReportedResult = Omit<StoredResult, "recorded_at" | "origin">;

/** Says who recorded a result and on which commit; without a repository, the commit is missing. */
async function originOf(
  root: string,
  { source = "submitted", commit, tree, by }: Omit<RecordOptions, "format">,
): Promise<ResultOrigin> {
  const sender = { source, ...defined({ tree, by }) };
  if (commit !== undefined) {
    if (!commitPattern.test(commit))
      throw badReport("The commit must be its 7 to 64 hexadecimal digits.", "commit");
    // Reports of one commit belong together, however many digits of it they name.
    const known = tree === undefined ? await readRevision(root, { commit }) : undefined;
    return { ...sender, commit, ...defined({ tree: tree ?? known?.tree }) };
  }
  const present = await readRevision(root);
  return present === undefined ? sender : { ...present, ...sender };
}

/** The present digests of test files, of the code that specs name, and of the criteria. */
async function digestsOf(
  project: Pick<Project, "root" | "specs">,
  tests: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { criteria, codeOfBlock } = readCriteria(project).sources;
  const paths = [...new Set([...tests, ...[...codeOfBlock.values()].flatMap((code) => [...code])])];
  const { files } = await readKept(indexOf(project), paths);
  const digests = new Map(paths.map((path) => [path, files.get(path)?.digest ?? ""]));
  for (const criterion of criteria.criteria)
    digests.set(criterionName(criterion.id), digestOfText(criterion.text));
  return digests;
}

/** The name of a file that the project does not have, without the machine's folders. */
function nameOf(root: string, [location = "(no file)"]: ReportedTest["locations"]): string {
  const name = location.replaceAll("\\", "/");
  return name.startsWith(`${root}/`) ? name.slice(root.length + 1) : name;
}

/** Finds the file that a report means by one of its names for it. Each name is looked for once. */
export function createFileFinder({
  root,
  files,
  realPath,
}: Pick<Project, "root" | "files" | "realPath">): (locations: readonly string[]) => string | undefined {
  const all = new Set(files());
  const byName = Map.groupBy(all, (path) => path.slice(path.lastIndexOf("/") + 1));
  const byStem = Map.groupBy(all, (path) => stemOf(path.slice(path.lastIndexOf("/") + 1)));
  const pathOfLocation = new Map<string, string | undefined>();

  const findPath = (location: string): string | undefined => {
    const path = location
      .replace(/^file:\/\//, "")
      .replaceAll("\\", "/")
      .replace(/^(?:\.\/)+/, "");
    const inside = path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
    if (all.has(inside)) return inside;
    const name = inside.slice(inside.lastIndexOf("/") + 1);
    // Reports of another machine, or of a package below the root.
    const alike = (byName.get(name) ?? []).filter(
      (candidate) =>
        `/${inside}`.endsWith(`/${candidate}`) || (inside.includes("/") && candidate.endsWith(`/${inside}`)),
    );
    return onlyLongest(alike);
  };

  /** `tests.test_auth.TestLogin`, `com.acme.LoginTest`: modules and classes with dots between. */
  const findModule = (location: string): string | undefined => {
    if (!/^[\w$]+(?:\.[\w$]+)+$/.test(location)) return undefined;
    const parts = location.replace(/\$.*$/, "").split(".");
    for (let length = parts.length; length > 0; length -= 1) {
      const path = parts.slice(0, length).join("/");
      const alike = (byStem.get(parts[length - 1] ?? "") ?? []).filter((candidate) =>
        `/${stemOf(candidate)}`.endsWith(`/${path}`),
      );
      if (alike.length > 0) return alike.length === 1 ? alike[0] : undefined;
    }
    return undefined;
  };

  return (locations) => {
    for (const location of locations) {
      if (!pathOfLocation.has(location)) {
        const path = findPath(location) ?? findModule(location);
        pathOfLocation.set(location, path && realPath(path));
      }
      const path = pathOfLocation.get(location);
      if (path !== undefined) return path;
    }
    return undefined;
  };
}

/** The file that shares the longest part of the name; `undefined` if two files share as much. */
function onlyLongest(paths: readonly string[]): string | undefined {
  const [first, second] = paths.toSorted((path, other) => other.length - path.length);
  return second !== undefined && second.length === first?.length ? undefined : first;
}

function stemOf(path: string): string {
  const dot = path.lastIndexOf(".");
  return dot <= path.lastIndexOf("/") + 1 ? path : path.slice(0, dot);
}

/** A test as a report has it. */
export interface ReportedTest {
  /** Names that can lead to its file, the most certain first: a path, or `tests.test_auth.TestLogin`. */
  readonly locations: readonly string[];
  /** The titles of the groups around the test, then its own title. */
  readonly titles: readonly string[];
  readonly status: "passed" | "failed" | "skipped";
  readonly duration_ms?: number | undefined;
  readonly message?: string | undefined;
  /** The report's text about a failure, with the kind of the error: at most 4,000 characters. */
  readonly failure?: string | undefined;
}

/** A report of more tests is refused. */
const mostTests = 200_000;
const maxDepth = 64;
const longestTitle = 500;
const longestMessage = 2_000;
const longestFailure = 4_000;

/**
 * Reads a report of tests: JUnit XML, or the JSON of Vitest and Jest. Throws `invalid_request` for one that is broken, hostile (a
 * document type, entities, deep nesting) or has no tests; the message has the line if it is known.
 *
 * @example
 * ```ts
 * import { readFileSync } from "node:fs";
 * import { readReport } from "kit/project";
 *
 * const { tests } = await readReport(readFileSync("junit.xml", "utf8"));
 * console.log(tests.filter(({ status }) => status === "failed"));
 * ```
 */
export async function readReport(
  report: string | Readonly<Record<string, unknown>>,
  format?: ReportFormat,
): Promise<{ readonly format: ReportFormat; readonly tests: readonly ReportedTest[] }> {
  if (typeof report !== "string") {
    if (format === "junit") throw badReport("A JUnit report is XML: send its text.");
    return { format: "vitest", tests: fromVitest(report) };
  }
  const text = report.replace(/^\uFEFF/, "").trimStart();
  const found = format ?? (text.startsWith("<") ? "junit" : "vitest");
  if (found === "junit") return { format: found, tests: await fromJUnit(text) };
  try {
    return { format: found, tests: fromVitest(parseJson(text, { maxDepth })) };
  } catch (error) {
    if (error instanceof KitError && error.code === "invalid_json")
      throw badReport(`The report is neither XML nor JSON. ${error.message}`);
    throw error;
  }
}

/** The JSON of Vitest and of Jest. */
function fromVitest(report: unknown): readonly ReportedTest[] {
  const files = isRecord(report) ? report.testResults : undefined;
  if (!Array.isArray(files))
    throw badReport("The report has no testResults: write it with vitest --reporter=json, or jest --json.");
  const tests: ReportedTest[] = [];
  for (const file of files) {
    if (!isRecord(file) || typeof file.name !== "string" || !Array.isArray(file.assertionResults))
      throw badReport("An entry of testResults has no name, or no assertionResults.");
    for (const test of file.assertionResults) {
      if (!isRecord(test)) throw badReport(`A test of ${file.name.slice(0, 200)} is not an object.`);
      const { title, ancestorTitles, status, duration, failureMessages } = test;
      const groups = Array.isArray(ancestorTitles) ? ancestorTitles : [];
      take(tests, {
        locations: [file.name],
        titles: [...groups, title].filter((part) => typeof part === "string"),
        status: status === "passed" || status === "failed" ? status : "skipped",
        duration_ms: typeof duration === "number" ? duration : undefined,
        ...failureOf(Array.isArray(failureMessages) ? failureMessages.filter(isText).join("\n") : ""),
      });
    }
  }
  return checked(tests);
}

function failureOf(text: string): Pick<ReportedTest, "message" | "failure"> {
  return text === "" ? {} : { message: text, failure: text };
}

interface OpenSuite {
  readonly name: string;
  readonly file: string | undefined;
}

interface OpenTest {
  readonly attributes: Readonly<Record<string, string>>;
  status: ReportedTest["status"];
  message: string;
  failure: string;
}

/** How much is parsed before others have their turn, in characters. */
const piece = 256 * 1024;

/** JUnit's XML, as the runners of many languages write it. */
async function fromJUnit(text: string): Promise<readonly ReportedTest[]> {
  // Programs that take no report do not load a parser of XML.
  const { default: sax } = await import("sax");
  // The parser refuses longer attribute values, and returns texts in pieces of this length.
  (sax as { MAX_BUFFER_LENGTH?: number }).MAX_BUFFER_LENGTH = 1024 * 1024;
  const parser = sax.parser(true);
  const tests: ReportedTest[] = [];
  const suites: OpenSuite[] = [];
  let depth = 0;
  let isJUnit = false;
  let test: OpenTest | undefined;
  let inFailure = false;
  let needsMessage = false;
  const fail = (message: string): never => {
    throw badReport(`${message} (line ${parser.line + 1})`);
  };
  parser.onerror = (error) => fail(`The XML is broken: ${error.message.split("\n")[0]}`);
  parser.ondoctype = () => fail("The report has a document type, which is not read");
  parser.onsgmldeclaration = () => fail("The report has declarations, which are not read");
  parser.onopentag = ({ name, attributes }) => {
    depth += 1;
    if (depth > maxDepth) fail(`The report is nested deeper than ${maxDepth} levels`);
    if (depth === 1) isJUnit = name === "testsuites" || name === "testsuite";
    if (!isJUnit) fail(`The report begins with <${name.slice(0, 80)}> and not with <testsuites>`);
    const values = attributes as Readonly<Record<string, string>>;
    if (name === "testsuite")
      suites.push({ name: values.name ?? "", file: values.file ?? values.filepath ?? suites.at(-1)?.file });
    else if (name === "testcase") test = { attributes: values, status: "passed", message: "", failure: "" };
    else if (test !== undefined && (name === "failure" || name === "error")) {
      if (test.status !== "failed") test.message = values.message ?? "";
      test.failure += `${values.type ?? ""}: ${values.message ?? ""}\n`;
      needsMessage = test.message === "";
      inFailure = true;
      test.status = "failed";
    } else if (test !== undefined && (name === "skipped" || name === "disabled")) {
      if (test.status === "passed") test.status = "skipped";
    }
  };
  const addText = (chunk: string): void => {
    if (!inFailure || test === undefined) return;
    if (needsMessage && test.message.length < longestMessage) test.message += chunk;
    if (test.failure.length < longestFailure) test.failure += chunk;
  };
  parser.ontext = addText;
  parser.oncdata = addText;
  parser.onclosetag = (name) => {
    depth -= 1;
    if (name === "testsuite") suites.pop();
    else if (name === "failure" || name === "error") inFailure = false;
    else if (name === "testcase" && test !== undefined) {
      take(tests, toTest(test, suites));
      test = undefined;
    }
  };
  for (let at = 0; at < text.length; at += piece) {
    parser.write(text.slice(at, at + piece));
    await new Promise(setImmediate);
  }
  parser.close();
  return checked(tests);
}

function toTest(
  { attributes, status, message, failure }: OpenTest,
  suites: readonly OpenSuite[],
): ReportedTest {
  const { name = "", classname, file, time } = attributes;
  const suite = suites.at(-1);
  const seconds = Number(time);
  return {
    locations: [file, suite?.file, classname, suite?.name].flatMap((location) => location || []),
    // Vitest joins all titles of a test in its name. For other runners, a suite whose name is not a path is one of the titles.
    // The reporter of Node escapes quotes twice.
    titles: [...(suite === undefined ? [] : [suite.name]), ...name.split(" > "), name].map((title) =>
      title.replaceAll("&quot;", '"'),
    ),
    status,
    duration_ms: time !== undefined && Number.isFinite(seconds) ? seconds * 1_000 : undefined,
    message: message === "" ? undefined : message,
    failure: failure === "" ? undefined : failure,
  };
}

function take(tests: ReportedTest[], test: ReportedTest): void {
  if (tests.length >= mostTests)
    throw badReport(`The report has more than ${mostTests.toLocaleString("en")} tests.`);
  tests.push({
    ...test,
    locations: test.locations.map((location) => location.slice(0, 4_096)),
    titles: [...new Set(test.titles.map((title) => title.trim().slice(0, longestTitle)))].slice(-20),
    message:
      test.message === undefined || test.message === "" ? undefined : test.message.slice(0, longestMessage),
    failure: test.failure?.slice(0, longestFailure),
  });
}

function checked(tests: readonly ReportedTest[]): readonly ReportedTest[] {
  if (tests.length === 0) throw badReport("The report has no test.");
  return tests;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function badReport(message: string, path: "report" | "commit" = "report"): KitError {
  return new KitError({
    code: "invalid_request",
    message,
    hint:
      path === "commit"
        ? "git rev-parse HEAD prints them."
        : "Pass JUnit XML, or the JSON of vitest --reporter=json.",
    meta: { issues: [{ path, message }] },
  });
}
