import { guardOf } from "../../agents/policy/protected-paths.ts";
import { findRules, listRules, listUnchecked, type Rule } from "../../guidelines/checks/list-rules.ts";
import { runGit } from "../../processes/git.ts";
import type { Project } from "../../project/project.ts";
import type { RuleCheck } from "../../project/project-config.ts";
import type { IsolationOptions } from "../../sandboxes/contract.ts";
import { openLocal } from "../../sandboxes/local/open-local.ts";
import { installedFolders } from "../verify/workplace.ts";
import { type CheckPlace, matcherOf, type RuleCheckOutcome, runCheck } from "./run-check.ts";

export interface CheckRulesOptions {
  readonly checks: readonly RuleCheck[];
  /** Only these files, relative to the project root; default: all. */
  readonly files?: readonly string[] | undefined;
  readonly isolation: IsolationOptions;
  readonly signal?: AbortSignal | undefined;
  /** Called before each check. */
  readonly onCheck?: (check: RuleCheck) => void;
}

/** A check of the configuration, and how it ended. */
export interface CheckedRule extends RuleCheckOutcome, Pick<Rule, "name" | "title" | "path" | "line"> {
  readonly run: string;
  /** The number of files that it was given. */
  readonly files: number;
}

export interface RuleReport {
  readonly checks: readonly CheckedRule[];
  /** The rules that apply to the files, and that no check covers. */
  readonly unchecked: readonly Rule[];
  /** Whether the system isolated the commands from the machine. */
  readonly isolated: boolean;
}

/**
 * Runs the checks of rules in the project itself, which isolated commands can only read. Throws `invalid_request` for a check of a rule that
 * does not exist.
 */
export async function checkRules(project: Project, options: CheckRulesOptions): Promise<RuleReport> {
  const { checks, files, isolation, signal, onCheck } = options;
  const { root, realPath } = project;
  const [present, records] = [project.files(), project.guidelines.records()];
  const rules = listRules(records);
  const found = checks.map((check) => ({ check, rules: findRules(check.rule, rules, realPath) }));
  const sandbox = await openLocal({ root, ...isolation }, { ...owner, project_root: root });
  const git = await runGit(["rev-parse", "--show-toplevel", "--show-prefix"], { cwd: root, signal });
  const [top = root, prefix = ""] = git.status === "ok" ? git.stdout.toString().split("\n") : [];
  const env = { PATH: await installedFolders({ top, prefix }) };
  const existing = new Set(present);
  const place: CheckPlace = {
    withoutRoot: (text) => text.replaceAll(`${root}/`, ""),
    isFile: (path) => existing.has(path),
    exec: (request) =>
      sandbox.exec({ ...request, env: { ...request.env, ...env }, signal, access: readOnlyAccess }),
  };
  try {
    const reports: CheckedRule[] = [];
    for (const { check, rules: covered } of found) {
      const matching = (files ?? present).filter(matcherOf(check));
      const given = matching.filter(place.isFile);
      if (matching.length > 0) onCheck?.(check);
      const outcome = matching.length === 0 ? skipped : await runCheck(check, given, place);
      reports.push({ ...describe(check, covered), run: check.run, files: given.length, ...outcome });
    }
    const checked = new Set(found.flatMap(({ rules: covered }) => covered.map(({ id }) => id)));
    const isolated = (await sandbox.isolation?.())?.wall !== "none";
    return { checks: reports, unchecked: listUnchecked(records, checked, files), isolated };
  } finally {
    await sandbox.close();
  }
}

const owner = { agent: "guidelines", instance_id: "check", session: "check" };
/** A check changes nothing, and reads no file of secrets. */
const readOnlyAccess = { write: false, guard: guardOf({}, []) };
const skipped: RuleCheckOutcome = { end: "skipped", findings: [], output: "" };

/** A check of a whole file has the name of the file. */
function describe(
  { rule }: RuleCheck,
  covered: readonly Rule[],
): Pick<CheckedRule, "name" | "title" | "path" | "line"> {
  const [first, ...others] = covered;
  const { name = rule, title = rule, path = rule, line = 1 } = first ?? {};
  return others.length === 0 ? { name, title, path, line } : { name: path, title: path, path, line: 1 };
}
