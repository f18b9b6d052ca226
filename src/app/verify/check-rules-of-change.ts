import { posix } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { findRules, listRules } from "../../guidelines/checks/list-rules.ts";
import type { Project } from "../../project/project.ts";
import type { RuleCheck } from "../../project/project-config.ts";
import type { KitConfig } from "../config/config-schema.ts";
import { parseTomlConfig } from "../config/load-config.ts";
import { matcherOf, type RuleCheckOutcome, runCheck } from "../rule-checks/run-check.ts";
import type { JudgedChange } from "./judged-change.ts";
import type { Reasons } from "./reasons.ts";
import type { Listing } from "./trees.ts";
import type { Workplace } from "./workplace.ts";

interface RulesOfChange {
  readonly project: Pick<Project, "guidelines" | "realPath">;
  readonly change: JudgedChange;
  /** The path from the top of the repository to the project. */
  readonly prefix: string;
  /** The checks of the present configuration. */
  readonly checks: readonly RuleCheck[];
  readonly reasons: Reasons;
  readonly place: (listing: Listing) => Promise<Workplace>;
}

/**
 * Runs the checks of the rules whose files a change touches, as the base has them: its configuration, and its programs. Returns whether the
 * system isolated all of them.
 */
export async function checkRulesOfChange(of: RulesOfChange): Promise<boolean> {
  const { change, reasons } = of;
  let isolated = true;
  for (const check of await checksOf(of)) {
    const { rule } = check;
    const touched = change.paths.filter(matcherOf(check));
    const program = changedProgram(check, of);
    if (program !== undefined)
      reasons.ask("rule-unclear", `${program} was changed, and it checks ${rule}: ${decides}`, {
        ...{ rule, path: program },
      });
    if (touched.length === 0) continue;
    const run = async (listing: Listing): Promise<RuleCheckOutcome> => {
      await using place = await of.place(listing);
      isolated &&= await place.isolated();
      const where = place.checkPlace();
      return await runCheck(check, touched.filter(where.isFile), where);
    };
    const { label, isSame } = ruleOf(check, of);
    const asInBase = await run(withProgramsOfBase(check, of));
    const isOpen = asInBase.end === "kept" || asInBase.end === "skipped";
    // Settings are files, too, and have only been read as the base has them.
    const outcome = isOpen && touched.some(isSettings) ? await run(change.head) : asInBase;
    if (outcome.end === "failed")
      reasons.ask("rule-unclear", `The check of ${label} could not run. ${outcome.output}`, { rule });
    if (outcome.end !== "broken") continue;
    // Another program, its settings or a file that the checked ones need may be why: a refusal has no such doubt.
    const isCertain = !isOpen && isSame && (await run(change.head)).end === "broken";
    for (const { text, ...place } of remarksOf(outcome, label))
      if (isCertain) reasons.refuse("rule-broken", text, { rule, ...place });
      else reasons.ask("rule-unclear", `${text}\n${doubt}`, { rule, ...place });
  }
  return isolated;
}

const decides = "a person decides whether the rule is still checked.";
const doubt =
  "So says the base, but the change is also one of the rule, or of what its check reads: a person decides.";
/** More lines of one rule are left to `kit guidelines check`. */
const mostLines = 10;

function remarksOf(
  { findings, output }: RuleCheckOutcome,
  label: string,
): readonly { readonly text: string; readonly path?: string; readonly line?: number }[] {
  if (findings.length === 0) return [{ text: `${label} is broken: ${output}` }];
  return findings.slice(0, mostLines).map(({ path, line, message }) => ({
    ...{ text: `${label} is broken in ${path}:${line}: ${message}`, path, line },
  }));
}

const configuration = /^kit\.(?:toml|config\.[cm]?[jt]s)$/;

/** The checks of the base. A change of them is a question; no judge can run those that the base says in code. */
async function checksOf({ change, checks, reasons }: RulesOfChange): Promise<readonly RuleCheck[]> {
  const { before } = change;
  const files = change.paths.filter((path) => configuration.test(path));
  const file = files.find((path) => before.has(path)) ?? files[0];
  if (file === undefined) return checks;
  const text = before.get(file) ?? "";
  const isCode = text !== "" && file !== "kit.toml";
  // A base whose configuration is not valid checks nothing.
  const base: KitConfig = isCode ? {} : await parseTomlConfig(text, file).catch(() => ({}));
  const former = isCode ? checks : (base.guidelines?.check ?? []);
  const isSame = isCode
    ? checks.length === 0 && !/\bcheck\b/.test(text)
    : JSON.stringify(former) === JSON.stringify(checks);
  if (!isSame)
    reasons.ask("rule-unclear", `${file} was changed, and it says how rules are checked: ${decides}`, {
      path: file,
    });
  return former;
}

/** The name of a rule with its title, and whether the change leaves its file as it was. */
function ruleOf(
  { rule }: RuleCheck,
  { project: { guidelines, realPath }, change, reasons }: RulesOfChange,
): { readonly label: string; readonly isSame: boolean } {
  const isSame = !change.paths.includes(realPath(rule.replace(/#[^#]*$/, "")));
  try {
    const [first, ...others] = findRules(rule, listRules(guidelines.records()), realPath);
    return { label: others.length > 0 ? rule : `${rule} ("${first?.title}")`, isSame };
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    if (isSame) reasons.ask("rule-unclear", error.message, { rule });
    return { label: rule, isSame };
  }
}

/** The files of the base that the line of a check names, relative to the project. */
function programsOf({ run }: RuleCheck, { change: { base }, prefix }: RulesOfChange): readonly string[] {
  const words = run.split(/[\s"'=;|&()]+/).map((word) => posix.normalize(word));
  return words.filter((word) => base.has(`${prefix}${word}`));
}

/** A changed program of a check, or a changed file beside it, which it may read. */
function changedProgram(check: RuleCheck, of: RulesOfChange): string | undefined {
  const programs = programsOf(check, of);
  const folders = programs.map((path) => posix.dirname(path)).filter((folder) => folder !== ".");
  const matches = matcherOf(check);
  const isBeside = (path: string): boolean => folders.some((folder) => path.startsWith(`${folder}/`));
  return of.change.paths.find((path) => programs.includes(path) || (isBeside(path) && !matches(path)));
}

/** Whether tools read a file as their settings, also if it is one of the files that they check. */
function isSettings(path: string): boolean {
  return /(?:^|\/)(?:\.[^/]+|[^/]+\.config\.[cm]?[jt]sx?|(?:package|tsconfig[^/]*)\.json|pyproject\.toml)$/.test(
    path,
  );
}

/**
 * The files that a check is about from the change, and all others from the base: its program and what that reads, such as settings
 * that would switch the check off.
 */
function withProgramsOfBase(check: RuleCheck, of: RulesOfChange): Listing {
  const { base, head } = of.change;
  const [matches, programs] = [matcherOf(check), programsOf(check, of)];
  const isChecked = (path: string): boolean => {
    const inProject = path.slice(of.prefix.length);
    return (
      path.startsWith(of.prefix) &&
      matches(inProject) &&
      !programs.includes(inProject) &&
      !isSettings(inProject)
    );
  };
  return new Map([
    ...[...base].filter(([path]) => !isChecked(path)),
    ...[...head].filter(([path]) => isChecked(path)),
  ]);
}
