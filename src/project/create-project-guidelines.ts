import { KitError } from "../base/kit-error.ts";
import { createGuidelineReads } from "./guideline-reads.ts";
import type { ProjectConfig, ProjectGuidelines } from "./project.ts";
import type { ProjectIndex } from "./project-index.ts";

export interface ProjectGuidelinesOptions {
  readonly index: ProjectIndex;
  readonly name: string;
  readonly readOnly: boolean;
  readonly config: ProjectConfig;
}

/** Creates the guidelines of a project over its index. */
export function createProjectGuidelines({ index, name }: ProjectGuidelinesOptions): ProjectGuidelines {
  const reads = createGuidelineReads(index, name);
  const unavailable = (): never => {
    throw new KitError({ code: "unavailable", message: "This part of kit is on its way." });
  };
  return {
    list: reads.list,
    get: reads.get,
    diagnostics: reads.diagnostics,
    explain: reads.explain,
    export: reads.export,
    convert: unavailable,
    lint: unavailable,
    planSync: unavailable,
    sync: unavailable,
  };
}
