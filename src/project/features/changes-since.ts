import type { ComparedSpecs } from "../../protocol/spec-query.ts";
import type { Project } from "../project.ts";
import { readChangedFiles, readFilesSince, toChangedPaths } from "../scan/git/git-state.ts";
import { decodeText } from "../scan/source-reader.ts";

/** The changed files to ask an impact analysis about, and what changed in those that are specs. */
export interface ChangesSince {
  readonly files: readonly string[];
  readonly compared: ComparedSpecs;
}

/** Larger changes count whole files as changed. */
const maxCompared = 1_000;

/**
 * The files that differ from the merge base with a revision, and the spec blocks that differ in them. A file that is new, gone or
 * renamed is not compared: all of it counts as changed.
 *
 * Throws `invalid_request` for a revision that Git does not know, and `unavailable` without a repository.
 */
export async function readChangesSince(
  { root, specs }: Pick<Project, "root" | "specs">,
  { since, signal }: { readonly since: string; readonly signal?: AbortSignal | undefined },
): Promise<ChangesSince> {
  const revision = { root, since, ...(signal && { signal }) };
  const changes = await readChangedFiles(revision);
  const files = toChangedPaths(changes);
  const modified = changes
    .filter(({ path, change }) => change === "modified" && specs.frameworkOf(path) !== undefined)
    .map(({ path }) => path);
  if (modified.length === 0 || modified.length > maxCompared)
    return { files, compared: { files: [], specs: [] } };
  const before = await readFilesSince({ ...revision, paths: modified });
  const compared = [...before].flatMap(([path, bytes]) => {
    const changed = specs.compare(path, decodeText(bytes, path).text);
    return changed === undefined ? [] : [{ path, changed }];
  });
  return {
    files,
    compared: { files: compared.map(({ path }) => path), specs: compared.flatMap(({ changed }) => changed) },
  };
}
