import type { Project } from "../../project/project.ts";
import type { Verdict } from "../../protocol/verdict.ts";
import type { VerifyOptions } from "./verify-options.ts";

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
