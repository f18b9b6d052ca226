import type { ReportFormat } from "../../protocol/enums.ts";
import type { RecordedResults } from "../../protocol/test-results.ts";
import { createHashes } from "../features/stale.ts";
import { assertWritable } from "../features/write-file.ts";
import type { Project } from "../project.ts";
import { type ReportedTest, readReport } from "./read-report.ts";
import { criterionName, digestOfText, readSources } from "./result-sources.ts";
import { readTestResults, type StoredResult, writeTestResults } from "./results-store.ts";

export interface RecordOptions {
  /** Default: told from the report. */
  readonly format?: ReportFormat | undefined;
}

/** File names of a reply. */
const mostUnknown = 20;

/**
 * Keeps the results of a report in the project's `.kit`, so that coverage tells how the tests of a criterion ended. What was known of
 * the files of the report is replaced, what was known of others stays. Throws `invalid_request` for a report that cannot
 * be read, and `forbidden` in a read-only project.
 *
 * For example:
 * const project = await openProject({ root: "." });
 * const { passed, failed } = await recordResults(project, readFileSync("junit.xml", "utf8"));
 */
export async function recordResults(
  project: Pick<Project, "root" | "readOnly" | "files" | "realPath" | "specs">,
  report: string | Readonly<Record<string, unknown>>,
  { format: asked }: RecordOptions = {},
): Promise<RecordedResults> {
  assertWritable(project);
  const { format, tests } = await readReport(report, asked);
  const find = createFileFinder(project);
  const files = new Map<string, Omit<StoredResult, "recorded_at">[]>();
  const unknown = new Set<string>();
  const count = { passed: 0, failed: 0, skipped: 0, unknown_tests: 0 };
  for (const { locations, ...test } of tests) {
    const path = find(locations);
    if (path === undefined) {
      count.unknown_tests += 1;
      if (unknown.size < mostUnknown) unknown.add(nameOf(project.root, { locations, ...test }));
      continue;
    }
    count[test.status] += 1;
    const known = files.get(path);
    if (known === undefined) files.set(path, [test]);
    else known.push(test);
  }
  const recorded_at = new Date().toISOString();
  if (files.size > 0) {
    const digests = await digestsOf(project, [...files.keys(), ...readTestResults(project.root).files()]);
    writeTestResults(project.root, { recorded_at, files, digests });
  }
  return {
    format,
    recorded_at,
    files: files.size,
    tests: tests.length - count.unknown_tests,
    ...count,
    unknown_files: [...unknown],
  };
}

/** The digests of test files, of the code that specs name, and of the criteria, as they are now. */
async function digestsOf(
  project: Pick<Project, "root" | "specs">,
  tests: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { criteria, codeOfBlock } = readSources(project.specs.all());
  const hashes = createHashes(project.root);
  const digests = new Map<string, string>();
  for (const path of new Set([...tests, ...[...codeOfBlock.values()].flatMap((paths) => [...paths])]))
    digests.set(path, (await hashes(path)) ?? "");
  for (const criterion of criteria.criteria)
    digests.set(criterionName(criterion.id), digestOfText(criterion.text));
  return digests;
}

/** The name of a place that the project does not have, without what belongs to the machine. */
function nameOf(root: string, { locations: [place = "(no file)"] }: ReportedTest): string {
  const name = place.replaceAll("\\", "/");
  return name.startsWith(`${root}/`) ? name.slice(root.length + 1) : name;
}

/** Finds the file that a report means by one of its names for it. Each name is looked for once. */
function createFileFinder({
  root,
  files,
  realPath,
}: Pick<Project, "root" | "files" | "realPath">): (locations: readonly string[]) => string | undefined {
  const all = new Set(files());
  const byName = Map.groupBy(all, (path) => path.slice(path.lastIndexOf("/") + 1));
  const byStem = Map.groupBy(all, (path) => stemOf(path.slice(path.lastIndexOf("/") + 1)));
  const found = new Map<string, string | undefined>();

  const findPath = (place: string): string | undefined => {
    const path = place
      .replace(/^file:\/\//, "")
      .replaceAll("\\", "/")
      .replace(/^(?:\.\/)+/, "");
    const inside = path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
    if (all.has(inside)) return inside;
    const name = inside.slice(inside.lastIndexOf("/") + 1);
    // Reports of another machine, or of a package below the root.
    const alike = (byName.get(name) ?? []).filter(
      (one) => `/${inside}`.endsWith(`/${one}`) || (inside.includes("/") && one.endsWith(`/${inside}`)),
    );
    return onlyLongest(alike);
  };

  /** `tests.test_auth.TestLogin`, `com.acme.LoginTest`: modules and classes with dots between. */
  const findModule = (place: string): string | undefined => {
    if (!/^[\w$]+(?:\.[\w$]+)+$/.test(place)) return undefined;
    const parts = place.replace(/\$.*$/, "").split(".");
    for (let length = parts.length; length > 0; length -= 1) {
      const path = parts.slice(0, length).join("/");
      const alike = (byStem.get(parts[length - 1] ?? "") ?? []).filter((one) =>
        `/${stemOf(one)}`.endsWith(`/${path}`),
      );
      if (alike.length > 0) return alike.length === 1 ? alike[0] : undefined;
    }
    return undefined;
  };

  return (locations) => {
    for (const place of locations) {
      if (!found.has(place)) {
        const path = findPath(place) ?? findModule(place);
        found.set(place, path && realPath(path));
      }
      const path = found.get(place);
      if (path !== undefined) return path;
    }
    return undefined;
  };
}

/** The file that has the most of the name; none where two have as much. */
function onlyLongest(paths: readonly string[]): string | undefined {
  const [first, second] = paths.toSorted((one, other) => other.length - one.length);
  return second !== undefined && second.length === first?.length ? undefined : first;
}

function stemOf(path: string): string {
  const dot = path.lastIndexOf(".");
  return dot <= path.lastIndexOf("/") + 1 ? path : path.slice(0, dot);
}
