import type { Project } from "../../project/project.ts";
import { frameworkInfos } from "../../specs/frameworks.ts";

/** Whether there is any spec at all, obsolete ones included. */
export function hasSpecs(project: Project): boolean {
  return Iterator.from(project.specs.all()).some(() => true);
}

/** For somebody whose repository has no spec that kit can read. */
export function noSpecsHint(): string {
  const sources = frameworkInfos.map(({ label, sources }) => `  ${label.padEnd(12)} ${sources}`);
  return ["No specs here. kit reads, at the root of the repository:", ...sources].join("\n");
}
