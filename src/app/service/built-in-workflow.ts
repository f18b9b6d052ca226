import type { Engine } from "../../engine/contract.ts";
import type { Project } from "../../project/project.ts";
import type { WorkflowDefinition } from "../../workflows/define-workflow.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import type { Sources } from "../sources/sources.ts";

/** The parts of a service over which kit makes its own workflows. */
export interface BuiltInParts {
  /** Open, and closed after the last run. */
  readonly project: Project;
  readonly config: LoadedConfig["config"];
  /** The definitions in the project's files: agents by name. */
  readonly sources: Sources;
  readonly engine: Engine;
  /** Whether only a person at a terminal starts runs, who answers for the code of the folder. */
  readonly isTerminal: boolean;
}

/** A workflow of kit's own, over the parts of a service. */
export interface BuiltInWorkflow {
  readonly definition: WorkflowDefinition;
  /**
   * Throws why no run with this payload can start, which its caller then learns at once, and not from a failed run. The payload fits the
   * schema of the definition.
   */
  readonly admit?: ((payload: never) => Promise<void>) | undefined;
}
