import type { Project } from "../project.ts";
import type { NamedSpecs } from "../query/impact.ts";
import { namedCriteria } from "./criteria-links.ts";

/** Finds the blocks whose criteria these test files name, by file. Ignores files that are no tests. */
export async function readNamedSpecs(
  project: Pick<Project, "specs" | "files" | "realPath">,
  files: readonly string[],
): Promise<NamedSpecs> {
  const references = files.length === 0 ? [] : await namedCriteria(project, { files });
  const byPath = Map.groupBy(references, ({ path }) => path);
  return new Map(
    files.flatMap((file) => {
      const ids = byPath.get(project.realPath(file))?.map(({ spec_id }) => spec_id);
      return ids === undefined ? [] : [[file, [...new Set(ids)]] as const];
    }),
  );
}
