import { KitError } from "../../base/kit-error.ts";
import type { ProjectSources } from "./load-project-sources.ts";

/** There is no such file; or there is, and it could not be used: then that is what to say. */
export function unknownSource(kind: "agent" | "workflow", name: string, sources: ProjectSources): KitError {
  const broken = sources.problems.find(
    (problem) => problem.source?.kind === kind && problem.source.name === name,
  );
  const names = (kind === "agent" ? sources.agents : sources.workflows).map((item) => item.name).join(", ");
  return new KitError({
    code: kind === "agent" ? "agent_not_found" : "workflow_not_found",
    message:
      broken === undefined
        ? `There is no ${kind} named "${name}".`
        : `The ${kind} "${name}" cannot be used: its file is broken.`,
    hint:
      broken !== undefined
        ? `${broken.path}: ${broken.message}`
        : names === ""
          ? `Add one as src/${kind}s/${name}.ts.`
          : `The ${kind}s are: ${names}.`,
  });
}
