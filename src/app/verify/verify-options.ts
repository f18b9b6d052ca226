import type { RuleCheck, VerifyConfig } from "../../project/project-config.ts";
import type { VerdictRun } from "../../protocol/verdict.ts";
import type { IsolationOptions } from "../../sandboxes/contract.ts";
import type { CriteriaChoice } from "./select-criteria.ts";

export interface VerifyOptions extends CriteriaChoice {
  /** The change is what differs from the merge base of HEAD with this revision. Default: the main branch. */
  readonly since?: string | undefined;
  /** `specs.verify` of the configuration. */
  readonly settings?: VerifyConfig | undefined;
  /** `guidelines.check` of the configuration. A change cannot take one away: those of the base are added. */
  readonly checks?: readonly RuleCheck[] | undefined;
  readonly isolation?: IsolationOptions | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called before each kind of run. */
  readonly onStep?: (step: VerdictRun["name"]) => void;
}
