import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import { isTestPath } from "../../specs/model/mentions.ts";
import { isCode } from "./faults.ts";

/** How the tests of a project are run. */
export interface Runner {
  /** For people: the command without report and files. */
  readonly label: string;
  /** The command for a report file, which the runner writes, and for some test files or all of them. */
  command(report: string, files: readonly string[] | undefined): readonly string[] | string;
}

const node = "node";

const vitest: Runner = {
  label: "vitest run",
  command: (report, files = []) => [
    ...["vitest", "run", "--reporter=junit", `--outputFile=${report}`],
    ...["--coverage.enabled=false", "--passWithNoTests", ...files],
  ],
};

const jest: Runner = {
  label: "jest",
  command: (report, files) => [
    ...["jest", "--ci", "--json", `--outputFile=${report}`, "--coverage=false", "--passWithNoTests"],
    ...(files === undefined ? [] : ["--runTestsByPath", ...files]),
  ],
};

const nodeTest: Runner = {
  label: "node --test",
  command: (report, files = []) => [
    ...[node, "--test", "--test-reporter=junit", `--test-reporter-destination=${report}`],
    ...files,
  ],
};

const pytest: Runner = {
  label: "python3 -m pytest",
  command: (report, files = []) => [
    ...["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"],
    ...[`--junitxml=${report}`, ...files],
  ],
};

/** Whether the text of a test says that `node --test` runs it. */
export function isOfNodeTest(text: string): boolean {
  return /["']node:test["']/.test(text);
}

/**
 * The runner of a project: the configured command, else that of its manifest: Vitest, Jest, pytest, or `node --test`. A project below the
 * top of its repository has the runner of the top, unless its tests say another one. Throws `invalid_request` if there is none.
 */
export function findRunner({
  configured,
  manifest,
  topManifest,
  hasNodeTests = false,
  files,
}: {
  /** `specs.verify.test`: a line for the shell with `{report}` and, if some files can be run alone, `{files}`. */
  readonly configured: string | undefined;
  /** The text of the project's `package.json`. */
  readonly manifest: string | undefined;
  /** That of the top of its repository. */
  readonly topManifest?: string | undefined;
  /** Whether a test of the project is one of `node:test`. */
  readonly hasNodeTests?: boolean;
  /** The files of the project, relative to its root. */
  readonly files: readonly string[];
}): Runner {
  if (configured !== undefined) return configuredRunner(configured);
  const own = runnerOf(manifest);
  if (own !== undefined) return own;
  if (hasNodeTests) return nodeTest;
  const atTop = runnerOf(topManifest);
  if (atTop !== undefined) return atTop;
  const tests = files.filter((path) => isTestPath(path));
  const isPython = (path: string): boolean => path.endsWith(".py");
  if (tests.some((path) => /\.[cm]?[jt]s$/.test(path)) && !tests.every(isPython)) return nodeTest;
  if (tests.some(isPython)) return pytest;
  throw new KitError({
    code: "invalid_request",
    message: "kit does not know how to run the tests of this project.",
    hint: 'Say it in kit.toml: [specs.verify] test = "your-runner --junit {report} {files}". The runner writes JUnit XML, or the JSON of Vitest and Jest, to {report}.',
  });
}

function runnerOf(manifest: string | undefined): Runner | undefined {
  const packages = packagesOf(manifest);
  if (packages.has("vitest")) return vitest;
  return packages.has("jest") ? jest : undefined;
}

function configuredRunner(line: string): Runner {
  if (!line.includes("{report}"))
    throw new KitError({
      code: "invalid_request",
      message: "specs.verify.test does not say where its runner writes the report.",
      hint: 'Put {report} where the path of the report belongs: "go-junit-report -out {report}".',
    });
  return {
    label: line.replace(/\s*\{files\}/, ""),
    command: (report, files = []) => lineForFiles(line.replaceAll("{report}", quoted(report)), files),
  };
}

/**
 * A line for the shell in which `{files}` stands for some files. They are arguments of the shell and not a part of the line, so no name
 * of a file is read as code, whatever quotes are around `{files}`; nor is one read as an option.
 */
export function lineForFiles(line: string, files: readonly string[]): readonly string[] {
  const words = files.map((path) => (path.startsWith("-") ? `./${path}` : path));
  return ["/bin/sh", "-c", "--", line.replaceAll("{files}", '"$@"'), "sh", ...words];
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

function packagesOf(manifest: string | undefined): ReadonlySet<string> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(manifest ?? "{}");
  } catch {
    return new Set();
  }
  if (!isRecord(parsed)) return new Set();
  const { dependencies, devDependencies } = parsed;
  return new Set([dependencies, devDependencies].flatMap((one) => (isRecord(one) ? Object.keys(one) : [])));
}

const besideTests =
  /(?:^|\/)(?:__tests__|__mocks__|__snapshots__|__fixtures__|fixtures|testdata|test|tests|testing|spec|specs|e2e)\/|\.(?:snap|test-d\.ts)$/;
const runnerSettings =
  /(?:^|\/)(?:(?:vitest|vite|jest|playwright|cypress)\.(?:config|workspace|setup)\.[cm]?[jt]s|conftest\.py|pytest\.ini|tox\.ini|\.mocharc\.\w+|(?:setup|test)[-_.]?(?:setup|tests?)\.[cm]?[jt]s)$/;

/** Whether a file of the tests holds only data: what a test expects or reads. */
export function isFixture(path: string): boolean {
  return /(?:^|\/)(?:__snapshots__|__fixtures__|fixtures|testdata)\/|\.snap$/.test(path) && !isCode(path);
}

/** Whether a file belongs to the tests: their helpers, fixtures, snapshots and the settings of their runner do, too. */
export function isOfTests(path: string): boolean {
  return isTestPath(path) || besideTests.test(path) || runnerSettings.test(path);
}
