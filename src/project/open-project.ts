import type { OpenProjectOptions, Project, RefreshOptions } from "./project.ts";

/**
 * Opens a repository and brings its index up to date with the disk. The caller closes the project. `signal` and `onProgress`
 * apply to the first pass. Throws `invalid_request` if the root is not a folder.
 *
 * @example
 * import { openProject } from "kit";
 *
 * const project = await openProject({ root: "." });
 * const { specs, total_count } = project.specs.query({ q: "login" });
 * await project.close();
 */
export async function openProject(options: OpenProjectOptions & RefreshOptions): Promise<Project> {
  // A program that imports `kit` for its agents alone does not load formats and the index.
  const { openIndexedProject } = await import("./open-indexed-project.ts");
  return await openIndexedProject(options);
}
