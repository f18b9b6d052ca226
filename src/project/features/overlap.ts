import type { Project } from "../project.ts";
import type { OverlapOptions, OverlapPart } from "./overlap-sides.ts";

/**
 * A block that is changed twice. `changes`: by several open changes of OpenSpec; `base`: by an open change, and by the base since the
 * branch of the change began; `branches`: in different words on several branches.
 */
export interface Overlap {
  readonly kind: "changes" | "base" | "branches";
  /** The capability or feature: `shipping`. */
  readonly feature: string;
  readonly title: string;
  readonly parts: readonly OverlapPart[];
}

export interface OverlapReport {
  /** In path, then line order. */
  readonly overlaps: readonly Overlap[];
  /** The branch that the others are compared with; absent without one. */
  readonly base?: string;
  readonly branches: readonly string[];
  /** Sentences about what could not be compared. */
  readonly notes: readonly string[];
}

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
