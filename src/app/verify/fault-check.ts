import { KitError } from "../../base/kit-error.ts";
import type { VerdictRun } from "../../protocol/verdict.ts";
import { type ChangedText, type Fault, faultsOf, isCode, respaced } from "./faults.ts";
import type { JudgedChange } from "./judged-change.ts";
import type { Reasons } from "./reasons.ts";
import { casesAt, filesOf, type Judged, passes, titleOf } from "./test-cases.ts";
import type { TestCase, TestRun, Workplace } from "./workplace.ts";

export interface FaultCheck {
  readonly change: JudgedChange;
  readonly judged: readonly Judged[];
  readonly reasons: Reasons;
  /** Opens a new checkout of the change. */
  readonly open: () => Promise<Workplace>;
  /** The most faults; 0: none. */
  readonly most: number;
  readonly timeoutMs: number;
  readonly count: (name: VerdictRun["name"], running: Promise<TestRun>) => Promise<TestRun>;
}

/** The least time of a run with a fault. */
const shortestMs = 5_000;

/** Checks 5 and 6: the tests of criteria do not read the text of the code, and notice a fault in it by an assertion. */
export async function checkFaults(check: FaultCheck): Promise<void> {
  try {
    await tryFaults(check);
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    check.reasons.refuse(
      "flaky",
      `The tests replace files of their checkout, so they cannot run with another version of the code: ${error.message}`,
    );
  }
}

async function tryFaults(check: FaultCheck): Promise<void> {
  const { change, judged, reasons, count } = check;
  await using place = await check.open();
  const changed: readonly ChangedText[] = change.paths.flatMap((path) => {
    const after = change.after.get(path);
    if (after === undefined || change.isTest(path) || change.isDocument(path) || !isCode(path)) return [];
    return [{ path, before: change.before.get(path) ?? "", after }];
  });
  for (const file of changed) await place.write(file.path, respaced(file));
  const spaced = await count("respaced", place.run(filesOf(judged)));
  for (const { path, after } of changed) await place.write(path, after);
  for (const { id, namingTests } of judged)
    for (const each of namingTests)
      if (!passes(spaced, each))
        reasons.refuse(
          "reads-source",
          `${titleOf(each)} depends on the text of the code: it does not pass if only spaces differ.`,
          { criterion: id, path: each.path, line: each.line },
        );
  if (reasons.isDecided) return;
  const faults = faultsOf(changed, check.most);
  // A fault can make an endless loop.
  const timeoutMs = Math.min(check.timeoutMs, Math.max(shortestMs, 4 * spaced.duration_ms));
  for (const fault of faults) {
    const open = judged.filter((one) => one.count.noticed === 0);
    if (open.length === 0) break;
    await place.write(fault.path, fault.text);
    const run = await count("faults", place.run(filesOf(open), timeoutMs));
    await place.write(fault.path, change.after.get(fault.path) ?? "");
    for (const one of open) noteFault(one, run);
    await confirm({ ...check, judged: open.filter((one) => one.count.noticed > 0) }, { ...fault, timeoutMs });
    if (reasons.isDecided) return;
  }
  for (const one of judged) judgeFaults(one, faults, reasons);
}

/** In a checkout where a test has run before, it can fail by the number of its run: only one where it has not shows that it noticed a fault. */
async function confirm(
  { judged, reasons, open, count }: FaultCheck,
  { path, text, timeoutMs }: Fault & { readonly timeoutMs: number },
): Promise<void> {
  if (judged.length === 0) return;
  await using place = await open();
  await place.write(path, text);
  const run = await count("faults", place.run(filesOf(judged), timeoutMs));
  for (const { id, namingTests } of judged) {
    const [first] = namingTests;
    if (first === undefined || failuresOf(namingTests, run).some(isAssertion)) continue;
    reasons.refuse(
      "flaky",
      `${titleOf(first)} fails with a fault only where it has run before, and not in a new checkout.`,
      { criterion: id, path: first.path, line: first.line },
    );
  }
}

function judgeFaults({ id, namingTests, count }: Judged, faults: readonly Fault[], reasons: Reasons): void {
  if (count.noticed > 0) return;
  const where = { criterion: id, path: namingTests[0]?.path, line: namingTests[0]?.line };
  if (faults.length === 0)
    reasons.ask(
      "no-faults",
      `kit can put no fault into this change, so nothing shows that the tests of ${id} would notice one.`,
      where,
    );
  else if (count.survived === 0)
    reasons.ask(
      "no-faults",
      `None of ${count.tried} faults says whether the tests of ${id} assert anything: with ${count.crashed} they only crash, with ${count.invalid} they do not load.`,
      where,
    );
  else
    reasons.refuse(
      "asserts-nothing",
      `The tests of ${id} notice none of ${count.tried} faults in the changed code by an assertion: ${count.survived} pass, ${count.crashed} only crash, ${count.invalid} do not load.`,
      where,
    );
}

function noteFault({ namingTests, count }: Judged, run: TestRun): void {
  count.tried += 1;
  const cases = namingTests.flatMap((place) => casesAt(run.cases, place));
  const failed = failuresOf(namingTests, run);
  if (failed.some(isAssertion)) count.noticed += 1;
  else if (failed.length > 0) count.crashed += 1;
  else if (cases.length === 0) count.invalid += 1;
  else count.survived += 1;
}

function failuresOf(tests: Judged["namingTests"], run: TestRun): readonly TestCase[] {
  const cases = tests.flatMap((place) => casesAt(run.cases, place));
  return cases.filter(({ status }) => status === "failed");
}

/** Whether a test failed by an assertion: of node:assert, Chai, Vitest, Jest, pytest, unittest, and of JUnit's families. */
function isAssertion({ message = "", failure = "" }: TestCase): boolean {
  return /Assertion(?:Failed)?Error|ERR_ASSERTION|\bexpect\(|^(?:: )?assert\b|DID NOT RAISE|ComparisonFailure/m.test(
    `${message}\n${failure}`,
  );
}
