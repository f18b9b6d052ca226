import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import type { Project } from "../../project/project.ts";
import { recordResults } from "../../project/results/record-results.ts";
import type { Verdict } from "../../protocol/verdict.ts";
import { BaseRuns } from "./base-runs.ts";
import { checkRulesOfChange } from "./check-rules-of-change.ts";
import { isCode } from "./faults.ts";
import { Judge } from "./judge.ts";
import type { JudgedChange } from "./judged-change.ts";
import { findRunner, isFixture, isOfNodeTest, isOfTests, type Runner } from "./runners.ts";
import { CriteriaOfChange } from "./select-criteria.ts";
import { differing, type Listing, Trees } from "./trees.ts";
import type { VerifyOptions } from "./verify-options.ts";
import { Workplace } from "./workplace.ts";

const baseRuns = new BaseRuns();
const defaults = { setup: "link", timeoutS: 300, faults: 24 } as const;
/** The limit of a run with a fault, which can be an endless loop; the tests took less without it. */
const faultTimeoutMs = 20_000;

/** A change of texts alone has this runner, which is never called. */
const noRunner: Runner = { label: "", command: () => "false" };

/** A change in a work tree of kit's own. */
export interface WorkTreeOptions extends VerifyOptions {
  /** Exactly this commit, instead of a merge base. */
  readonly base?: string | undefined;
  /** The top folder of the checkout whose packages are installed; default: that of the project. */
  readonly packagesOf?: string | undefined;
}

/** `verifySpecs`, whose modules are many. */
export async function verifyWorkTree(project: Project, options: WorkTreeOptions): Promise<Verdict> {
  const { signal, settings = {}, since, isolation = {}, packagesOf } = options;
  const began = performance.now();
  await project.refresh({ ...defined({ signal }) });
  await using trees = await Trees.open(project.root, { signal });
  const [base, tree] = [options.base ?? (await trees.base(since)), await trees.snapshot()];
  const [before, after] = [await trees.list(base), await trees.list(tree)];
  const change = await changeOf(project, trees, { before, after });
  const selection = new CriteriaOfChange(project, change);
  const criteria = selection.choose(options);
  const manifest = await trees.texts(after, [`${trees.prefix}package.json`, "package.json"]);
  // A test says nothing about texts, so a project whose specs come before its tests needs no runner.
  const runner = change.paths.every((path) => change.isDocument(path))
    ? noRunner
    : findRunner({
        configured: settings.test,
        manifest: manifest.get(`${trees.prefix}package.json`),
        topManifest: manifest.get("package.json"),
        hasNodeTests: [...change.after].some(([path, text]) => change.isTest(path) && isOfNodeTest(text)),
        files: project.files(),
      });
  const workplace = {
    trees,
    runner,
    setup: settings.setup ?? defaults.setup,
    timeoutMs: (settings.timeout_seconds ?? defaults.timeoutS) * 1_000,
    isolation,
    signal,
    packagesOf: packagesOf ?? trees.top,
  };
  const place = (listing: Listing): Promise<Workplace> => Workplace.open(workplace, listing);
  const { setup, timeoutMs } = workplace;
  const baseOf = { top: workplace.packagesOf, prefix: trees.prefix, commit: base };
  const judge = new Judge({
    baseRun: (make) =>
      baseRuns.get({ ...baseOf, settings: [runner.label, setup, timeoutMs, isolation] }, make),
    change,
    selection,
    criteria,
    place,
    faults: settings.faults ?? defaults.faults,
    withoutCriteria: settings.without_criteria ?? "ask",
    faultTimeoutMs: Math.min(faultTimeoutMs, workplace.timeoutMs),
    onStep: options.onStep,
  });
  const { reasons, report, ...judgment } = await judge.judge();
  const { prefix } = trees;
  const rulesIsolated =
    reasons.end === "broken" ||
    (await checkRulesOfChange({ project, change, prefix, checks: options.checks ?? [], reasons, place }));
  if (report !== "" && !project.readOnly) await record(project, report, { commit: base, tree });
  return {
    end: reasons.end,
    base,
    tree,
    ...judgment,
    isolated: judgment.isolated && rulesIsolated,
    criteria: [...judgment.criteria],
    notes: [...judgment.notes],
    runs: [...judgment.runs],
    reasons: reasons.all,
    changed: [...change.paths],
    runner: runner.label,
    duration_ms: Math.round(performance.now() - began),
  };
}

/** The report is that of kit's own run. What it cannot keep does not change the verdict. */
async function record(
  project: Project,
  report: string,
  { commit, tree }: { readonly commit: string; readonly tree: string },
): Promise<void> {
  try {
    await recordResults(project, report, { source: "observed", commit, tree });
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
  }
}

async function changeOf(
  project: Project,
  trees: Trees,
  { before, after }: { readonly before: Listing; readonly after: Listing },
): Promise<JudgedChange> {
  const { prefix } = trees;
  const changed = differing(before, after).filter((path) => path.startsWith(prefix));
  const inProject = (path: string): string => path.slice(prefix.length);
  const tests = [...after.keys()].filter(
    (path) => path.startsWith(prefix) && isOfTests(inProject(path)) && isCode(path),
  );
  const isDocument = (path: string): boolean =>
    project.specs.frameworkOf(path) !== undefined || (document.test(path) && !isFixture(path));
  const isTest = (path: string): boolean => isOfTests(path) && !isDocument(path);
  const texts = async (listing: Listing, paths: readonly string[]): Promise<ReadonlyMap<string, string>> =>
    new Map([...(await trees.texts(listing, paths))].map(([path, text]) => [inProject(path), text]));
  return {
    base: before,
    head: after,
    paths: changed.map(inProject),
    before: await texts(before, changed),
    after: await texts(after, [...new Set([...changed, ...tests])]),
    isOfTests: (path) => isTest(path.startsWith(prefix) ? inProject(path) : path),
    isTest,
    isDocument,
  };
}

const document =
  /\.(?:md|mdx|mdc|txt|rst|adoc)$|(?:^|\/)(?:LICENSE|\.gitignore|\.gitattributes|\.editorconfig)$/i;
