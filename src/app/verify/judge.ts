import type { JudgedCriterion, VerdictRun } from "../../protocol/verdict.ts";
import { isTestPath } from "../../specs/model/mentions.ts";
import type { BaseRuns } from "./base-runs.ts";
import { checkFaults, type FaultCheck } from "./fault-check.ts";
import type { JudgedChange } from "./judged-change.ts";
import { Reasons } from "./reasons.ts";
import { isFixture } from "./runners.ts";
import type { ChosenCriterion, CriteriaOfChange, NamingTest } from "./select-criteria.ts";
import { casesAt, filesOf, hasFile, type Judged, passes, quoted, statusOf, titleOf } from "./test-cases.ts";
import type { Listing } from "./trees.ts";
import type { TestCase, TestRun, Workplace } from "./workplace.ts";

export interface JudgeOptions {
  readonly change: JudgedChange;
  readonly selection: CriteriaOfChange;
  readonly criteria: readonly ChosenCriterion[];
  /** Opens a checkout of a listing. */
  readonly place: (listing: Listing) => Promise<Workplace>;
  readonly faults: number;
  readonly withoutCriteria: "ask" | "suite";
  readonly faultTimeoutMs: number;
  readonly onStep?: ((step: VerdictRun["name"]) => void) | undefined;
  /** Returns the kept run of all tests of the base, or makes it. */
  readonly baseRun: (make: () => Promise<TestRun>) => ReturnType<BaseRuns["get"]>;
}

export interface Judgment {
  readonly reasons: Reasons;
  readonly criteria: readonly JudgedCriterion[];
  readonly notes: readonly string[];
  readonly runs: readonly VerdictRun[];
  /** The report of the tests on the change itself. */
  readonly report: string;
  readonly isolated: boolean;
}

/**
 * Judges a change by running tests in checkouts that only the judge sees. Its answer depends on the trees, the criteria and the tests
 * alone, so it can be asked again at any time. Every check is there because of a way to pass those before it without doing the work.
 *
 * @see decisions/2026-11-30-verdicts.md
 */
export class Judge {
  readonly #options: JudgeOptions;
  readonly #reasons = new Reasons();
  readonly #notes: string[] = [];
  readonly #runs = new Map<VerdictRun["name"], VerdictRun>();
  #report = "";
  #isolated = true;

  constructor(options: JudgeOptions) {
    this.#options = options;
  }

  async judge(): Promise<Judgment> {
    const criteria = await this.#check();
    return {
      reasons: this.#reasons,
      criteria: criteria.map(({ criterion, id, namingTests, count }) => ({
        id,
        tests: namingTests.map(({ path, line, titles = [] }) => ({ path, line, titles: [...titles] })),
        ...(this.#options.selection.hasChangedText(criterion) ? { text_changed: true as const } : {}),
        ...(count.tried > 0 ? { faults: count } : {}),
      })),
      notes: this.#notes,
      runs: [...this.#runs.values()],
      report: this.#report,
      isolated: this.#isolated,
    };
  }

  async #check(): Promise<readonly Judged[]> {
    const { change, selection, withoutCriteria } = this.#options;
    const reasons = this.#reasons;
    const judged = this.#options.criteria.map((chosen) => this.#toJudged(chosen));
    if (change.paths.every((path) => change.isDocument(path))) {
      const isSame = change.paths.length === 0;
      if (judged.some(({ isClaimed }) => isClaimed))
        reasons.refuse(
          "no-change",
          isSame ? "Nothing differs from the base." : "Only specs and documents were changed.",
        );
      else if (isSame) this.#notes.push("Nothing differs from the base.");
      else
        reasons.ask(
          "no-change",
          "Only specs and documents were changed: no test can tell anything about that.",
        );
      return judged;
    }
    for (const { criterion, id } of judged)
      if (selection.hasChangedText(criterion))
        this.#notes.push(`The text of ${id} differs from the base: it is judged as it is now.`);
    const base = await this.#baseRun();
    const head = await this.#runOf("head", change.head);
    this.#report = head.report;
    if (!this.#ran(base, head)) return judged;
    const hasNewTests = change.paths.some(change.isTest);
    const oldTests = hasNewTests ? await this.#runOf("old_tests", this.#composed("old_tests")) : head;
    await this.#checkOldTests({ base, head, oldTests });
    this.#checkNamedTests(judged, { base, head, oldTests });
    if (judged.length === 0 && withoutCriteria === "ask" && !reasons.isDecided)
      reasons.ask(
        "no-criteria",
        "The change is about no criterion: no test of it names one, no task was ticked, and no criterion was changed.",
      );
    const tested = judged
      .map((one) => ({ ...one, namingTests: one.namingTests.filter((place) => passes(head, place)) }))
      .filter(({ namingTests }) => namingTests.length > 0);
    if (tested.length === 0 || reasons.isDecided) return judged;
    await this.#checkAgain(tested);
    const noticing = reasons.isDecided ? [] : await this.#checkOldCode(tested);
    if (!reasons.isDecided && noticing.length > 0 && this.#options.faults > 0)
      await this.#checkFaults(noticing);
    return judged;
  }

  #toJudged(chosen: ChosenCriterion): Judged {
    const { criterion } = chosen;
    const { selection, change } = this.#options;
    const namingTests: NamingTest[] = [];
    for (const path of this.#testFiles()) {
      const text = change.after.get(path);
      if (text !== undefined) namingTests.push(...(selection.testsNaming(path, text).get(criterion) ?? []));
    }
    const own = namingTests.filter(({ isWhole, titles }) => !isWhole && titles?.length !== 0);
    for (const path of selection.filesNamedFor(criterion))
      own.push({ path, line: 1, titles: undefined, text: "", isWhole: false });
    return {
      ...chosen,
      id: selection.index.criteria[criterion]?.id ?? "",
      namingTests: own.length > 0 ? own : namingTests.filter(({ titles }) => titles?.length !== 0),
      count: { tried: 0, noticed: 0, crashed: 0, survived: 0, invalid: 0 },
    };
  }

  /** The texts of `after` are those of all test files, and of the changed ones. */
  #testFiles(): readonly string[] {
    return [...this.#options.change.after.keys()].filter((path) => isTestPath(path));
  }

  /** The texts of the test files before the change. */
  #oldTestTexts(): readonly (readonly [path: string, text: string])[] {
    const { paths, before, after } = this.#options.change;
    const changed = new Set(paths);
    return [...before, ...[...after].filter(([path]) => !changed.has(path))].filter(([path]) =>
      isTestPath(path),
    );
  }

  async #baseRun(): Promise<TestRun> {
    const { change, baseRun } = this.#options;
    const { run, isKept } = await baseRun(() => this.#runOf("base", change.base));
    if (isKept) await this.#count("base", Promise.resolve({ ...run, duration_ms: 0 }), 0);
    return run;
  }

  #ran(base: TestRun, head: TestRun): boolean {
    for (const [name, run] of [
      ["the base", base],
      ["the change", head],
    ] as const) {
      if (run.timed_out) {
        this.#reasons.break(
          `The tests of ${name} did not end in time. [specs.verify] timeout_seconds sets the limit.`,
        );
        return false;
      }
    }
    if (head.cases.length === 0 && base.cases.length > 0) {
      this.#reasons.refuse(
        "regression",
        `No test runs on the change, but ${base.cases.length} ran on the base. ${head.output}`,
      );
      return false;
    }
    if (head.cases.length === 0) {
      this.#reasons.break(`No test ran, neither on the base nor on the change. ${head.output}`);
      return false;
    }
    if (base.cases.length === 0) this.#notes.push("No test ran on the base.");
    return true;
  }

  /** Check 1: what passed on the base passes on the new code, in the words of the base. */
  async #checkOldTests({
    base,
    head,
    oldTests,
  }: Readonly<Record<"base" | "head" | "oldTests", TestRun>>): Promise<void> {
    const passed = base.cases.filter(({ status }) => status === "passed");
    const lost = passed.filter((test) => statusOf(oldTests.cases, test) !== "passed");
    const flaky = await this.#passesSometimes(lost);
    for (const test of lost) {
      if (flaky.has(test)) {
        this.#notes.push(`${quoted(test)} does not always pass, so it counts for nothing.`);
        continue;
      }
      const place = { path: test.path };
      const now = statusOf(head.cases, test);
      if (now === "failed" || (now === "absent" && this.#isStillWritten(test)))
        this.#reasons.refuse(
          "regression",
          `${quoted(test)} passed before the change, and ${now === "failed" ? "fails" : "does not run any more"}.`,
          place,
        );
      else if (now === "passed")
        this.#reasons.ask(
          "test-changed",
          `${quoted(test)} passed before the change. In its old words it is ${statusOf(oldTests.cases, test)} now, and its file was changed: a person decides whether it had to be.`,
          place,
        );
      else
        this.#reasons.ask(
          "test-removed",
          `${quoted(test)} passed before the change, is ${now} now, and fails in its old words: a person decides whether it may go.`,
          place,
        );
    }
    for (const test of passed) {
      const now = statusOf(head.cases, test);
      if (lost.includes(test) || now === "passed") continue;
      if (now === "failed")
        this.#reasons.refuse("regression", `${quoted(test)} passed before the change, and fails now.`, {
          path: test.path,
        });
      else
        this.#notes.push(
          `${quoted(test)} is ${now === "absent" ? "gone or has another name" : now}; in its old words it passes.`,
        );
    }
  }

  /** Whether the file of a test has its title after the change. */
  #isStillWritten({ path, titles }: TestCase): boolean {
    const { paths, after } = this.#options.change;
    return !paths.includes(path) || after.get(path)?.includes(titles.at(-1) ?? "") === true;
  }

  /** Runs the base and the old tests of lost tests once more: a test that fails now and then says nothing about the change. */
  async #passesSometimes(lost: readonly TestCase[]): Promise<ReadonlySet<TestCase>> {
    const files = [...new Set(lost.map(({ path }) => path))].filter((path) => path !== "");
    if (files.length === 0) return new Set();
    const again = await this.#runOf("base", this.#options.change.base, files);
    const oldAgain = await this.#runOf("old_tests", this.#composed("old_tests"), files);
    return new Set(
      lost.filter(
        (test) => statusOf(again.cases, test) !== "passed" || statusOf(oldAgain.cases, test) === "passed",
      ),
    );
  }

  /** Check 2: each criterion has tests of its own, which ran and passed. */
  #checkNamedTests(
    judged: readonly Judged[],
    { base, head, oldTests }: Readonly<Record<"base" | "head" | "oldTests", TestRun>>,
  ): void {
    const { selection, change } = this.#options;
    const reasons = this.#reasons;
    for (const { criterion, id, namingTests, isClaimed } of judged) {
      if (namingTests.length === 0) {
        const message = `No test names ${id}. Put this key into the title of a test, or above it.`;
        // A change that only writes a criterion down does not claim that it is done.
        if (isClaimed) reasons.refuse("no-test", message, { criterion: id });
        else reasons.ask("no-test", message, { criterion: id });
      } else if (namingTests.every(({ isWhole }) => isWhole))
        reasons.ask("no-test", `Tests name only the requirement of ${id}, not the criterion.`, {
          criterion: id,
        });
      for (const place of namingTests) {
        const { path, line } = place;
        const cases = casesAt(head.cases, place);
        const [failed] = cases.filter(({ status }) => status === "failed");
        const where = { criterion: id, path, line };
        if (failed !== undefined)
          reasons.refuse(
            "failing",
            `${quoted(failed)} fails: ${(failed.message ?? "").slice(0, 500)}`,
            where,
          );
        else if (!passes(head, place)) {
          const message = `${titleOf(place)} ${cases.length === 0 ? "did not run" : "was skipped"}.`;
          // Tests of another runner, such as those in a browser, do not run here, before the change or after it.
          const isForeign = [base, head].every((run) => !hasFile(run, path)) && !change.paths.includes(path);
          if (isClaimed && !(isForeign && namingTests.some((other) => passes(head, other))))
            reasons.refuse("not-run", message, where);
          else reasons.ask("not-run", message, where);
        }
      }
      // A test can also be changed by its fixtures and snapshots.
      for (const [path, text] of this.#oldTestTexts()) {
        for (const place of selection.testsNaming(path, text).get(criterion) ?? []) {
          if (place.titles?.length === 0) continue;
          const before = casesAt(base.cases, place);
          if (!before.some(({ status }) => status === "failed")) continue;
          const now = casesAt(oldTests.cases, place);
          if (now.length > 0 && now.every(({ status }) => status === "passed")) continue;
          reasons.refuse(
            "original-test",
            `${titleOf(place)} was there before the change and failed. In its old words it does not pass now.`,
            { criterion: id, path },
          );
        }
      }
    }
  }

  /** Check 3: the tests of the criteria end the same way twice. */
  async #checkAgain(judged: readonly Judged[]): Promise<void> {
    const again = await this.#runOf("again", this.#options.change.head, filesOf(judged));
    for (const { id, namingTests } of judged)
      for (const place of namingTests)
        if (!passes(again, place))
          this.#reasons.refuse("flaky", `${titleOf(place)} passed, and did not pass when it ran again.`, {
            criterion: id,
            path: place.path,
            line: place.line,
          });
  }

  /** Check 4: without the change, a test of each criterion does not pass. Returns the criteria for which that is so. */
  async #checkOldCode(judged: readonly Judged[]): Promise<readonly Judged[]> {
    const { change } = this.#options;
    const hasCode = change.paths.some((path) => !change.isTest(path) && !change.isDocument(path));
    const oldCode = hasCode
      ? await this.#runOf("old_code", this.#composed("old_code"), filesOf(judged))
      : undefined;
    const noticing: Judged[] = [];
    for (const one of judged) {
      const { id, namingTests, isClaimed } = one;
      if (oldCode !== undefined && !namingTests.every((place) => passes(oldCode, place))) {
        noticing.push(one);
        continue;
      }
      const where = { criterion: id, path: namingTests[0]?.path, line: namingTests[0]?.line };
      if (oldCode === undefined)
        this.#reasons.ask(
          "passes-without",
          `Only tests were changed: those of ${id} say that the code did it already.`,
          where,
        );
      else if (isClaimed)
        this.#reasons.refuse(
          "passes-without",
          `The tests of ${id} pass without the change, so they do not show that it was done.`,
          where,
        );
      else
        this.#reasons.ask(
          "passes-without",
          `A test of ${id} was changed, and passes without the change of the code, too.`,
          where,
        );
    }
    return noticing;
  }

  async #checkFaults(judged: readonly Judged[]): Promise<void> {
    const { change, faults: most, faultTimeoutMs: timeoutMs } = this.#options;
    const open = () => this.#options.place(change.head);
    const count: FaultCheck["count"] = (name, running) => this.#count(name, running);
    await checkFaults({ change, judged, reasons: this.#reasons, open, most, timeoutMs, count });
  }

  /** The listing of a mixture: the files of the tests from one side, all others from the other. Old tests get the fixtures that they lacked. */
  #composed(name: "old_tests" | "old_code"): Listing {
    const { base, head, isOfTests } = this.#options.change;
    const [tests, code] = name === "old_tests" ? [base, head] : [head, base];
    return new Map([
      ...[...code].filter(([path]) => !isOfTests(path) || (name === "old_tests" && isFixture(path))),
      ...[...tests].filter(([path]) => isOfTests(path)),
    ]);
  }

  async #runOf(name: VerdictRun["name"], listing: Listing, files?: readonly string[]): Promise<TestRun> {
    await using place = await this.#options.place(listing);
    this.#isolated &&= await place.isolated();
    return await this.#count(name, place.run(files));
  }

  async #count(name: VerdictRun["name"], running: Promise<TestRun>, runs = 1): Promise<TestRun> {
    if (!this.#runs.has(name)) this.#options.onStep?.(name);
    const run = await running;
    const before = this.#runs.get(name) ?? { name, runs: 0, tests: 0, failed: 0, duration_ms: 0 };
    this.#runs.set(name, {
      name,
      runs: before.runs + runs,
      tests: Math.max(before.tests, run.cases.length),
      failed: Math.max(before.failed, run.cases.filter(({ status }) => status === "failed").length),
      duration_ms: before.duration_ms + run.duration_ms,
    });
    return run;
  }
}
