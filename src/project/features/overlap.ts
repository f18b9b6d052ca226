import type { Project } from "../project.ts";
import type { OverlapOptions, OverlapReport } from "./overlap-sides.ts";

/**
 * Finds the requirements and blocks that two open changes, or two branches, change at once. Other branches are read from Git's objects and
 * never checked out. Without a repository, only the open changes of the work tree are compared.
 *
 * Throws `invalid_request` for a revision that Git does not know, and for globs that match no branch.
 *
 * @example
 * ```ts
 * import { openProject } from "kit";
 * import { specOverlaps } from "kit/project";
 *
 * const project = await openProject({ root: "." });
 * const { overlaps } = await specOverlaps(project, { base: "origin/main", branches: ["origin/*"] });
 * for (const { feature, title } of overlaps) console.log(feature, title);
 * await project.close();
 * ```
 */
export async function specOverlaps(
  project: Pick<Project, "root" | "specs">,
  options: OverlapOptions = {},
): Promise<OverlapReport> {
  // The adapters of all frameworks are loaded for this function alone.
  const { findOverlaps } = await import("./find-overlaps.ts");
  return await findOverlaps(project, options);
}
