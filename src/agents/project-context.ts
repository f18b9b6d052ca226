import type { Sandbox } from "../sandboxes/contract.ts";
import type { AnyTool } from "./tool.ts";

/** A guideline as the model is shown it. */
export interface ShownGuideline {
  readonly id: string;
  readonly title: string;
  readonly content: string;
  readonly source_file: string;
}

/** Project instructions for the system prompt. */
export interface ProjectInstructions {
  /** Empty for none. */
  readonly text: string;
  /** The files whose whole text stands there: their guidelines need not be shown once more. */
  readonly sources: ReadonlySet<string>;
}

/** Where an agent works, as far as it is known before it does. */
export interface Workplace {
  /** The working folder that its profile names, relative to the workspace; "" for the root. */
  readonly cwd: string;
  /** Undefined where it cannot be opened. */
  readonly sandbox: Pick<Sandbox, "cwd" | "readFile"> | undefined;
}

/**
 * What the repository around an agent says. The composition root makes it of specs and guidelines;
 * agents know neither.
 */
export interface ProjectContext {
  /** AGENTS.md and CLAUDE.md of the project and of the folder that the agent works in. */
  instructions(place: Workplace): Promise<ProjectInstructions>;
  /**
   * The guidelines that apply to a workspace path, in the order in which they are to be read. `hostRoot` is
   * the sandbox's, where it has one; else the workspace is taken for the project.
   */
  guidelinesFor(path: string, hostRoot?: string): readonly ShownGuideline[];
  /** `spec_search`, `spec_impact`, `guidelines_for`. */
  readonly tools: readonly AnyTool[];
}
