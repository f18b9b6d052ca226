import { indexCriteria } from "../../specs/coverage/criteria-index.ts";
import { resolveReferences } from "../../specs/coverage/resolve-references.ts";
import { isTestPath } from "../../specs/model/mentions.ts";
import type { Project } from "../project.ts";
import type { NamedSpecs } from "../query/impact.ts";
import { readSources } from "../results/results-store.ts";
import { featuresNaming, readTest } from "./coverage.ts";

/** Finds the blocks whose criteria these test files name, by file, as coverage reads them. Ignores files that are no tests. */
export async function readNamedSpecs(
  project: Pick<Project, "root" | "specs" | "files" | "realPath">,
  files: readonly string[],
): Promise<NamedSpecs> {
  const tests = new Set(files.filter((path) => isTestPath(path)));
  const known = tests.size === 0 ? [] : project.files().filter((path) => tests.has(path));
  if (known.length === 0) return new Map();
  const { criteria, naming } = readSources(project.specs.all());
  const index = indexCriteria(criteria);
  const namedBy = featuresNaming(index, naming);
  const specsOfTests = new Map<string, readonly string[]>();
  for (const name of known) {
    const path = project.realPath(name);
    const text = await readTest(project.root, path, []);
    if (text === undefined) continue;
    const { references } = text;
    const { namedCriteria } = resolveReferences(index, {
      path,
      references,
      namedBy: namedBy.get(path) ?? [],
    });
    const ids = namedCriteria.flatMap(({ criterion }) => index.criteria[criterion]?.spec_id ?? []);
    if (ids.length > 0) specsOfTests.set(name, [...new Set(ids)]);
  }
  return specsOfTests;
}
