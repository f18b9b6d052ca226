import type { Project } from "../../project/project.ts";
import type { VerifyConfig } from "../../project/project-config.ts";
import type { Verdict, VerdictRun } from "../../protocol/verdict.ts";
import type { IsolationOptions } from "../../sandboxes/contract.ts";
import type { CriteriaChoice } from "./select-criteria.ts";

export interface VerifyOptions extends CriteriaChoice {
  /** The change is what differs from the merge base of HEAD with this revision. Default: the main branch. */
  readonly since?: string | undefined;
  /** `specs.verify` of the configuration. */
  readonly settings?: VerifyConfig | undefined;
  readonly isolation?: IsolationOptions | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called before each kind of run. */
  readonly onStep?: (step: VerdictRun["name"]) => void;
}

/**
 * Decides whether the present work tree does what its specs say, by running tests: those of the base on the new code, those of the
 * criteria again, on the old code, and with faults in the change. Needs no agent, and believes no box, report or record.
 *
 * Throws `unavailable` outside of Git, `invalid_request` for an unknown feature, task, criterion or revision, or without a known
 * runner. Records the results of the change as `observed`, unless the project is read-only.
 *
 * @example
 * ```ts
 * import { openProject } from "kit";
 * import { verifySpecs } from "kit/app";
 *
 * const project = await openProject({ root: "." });
 * const { end, reasons } = await verifySpecs(project, { feature: "checkout", task: "3" });
 * console.log(end, reasons);
 * await project.close();
 * ```
 */
export async function verifySpecs(project: Project, options: VerifyOptions = {}): Promise<Verdict> {
  // A program that imports `kit/app` for its types loads neither Git nor a sandbox.
  const { verifyWorkTree } = await import("./verify-work-tree.ts");
  return await verifyWorkTree(project, options);
}
