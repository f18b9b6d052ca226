import type { AnyTool } from "./tool.ts";

/** A guideline as the model is shown it. */
export interface ShownGuideline {
  readonly id: string;
  readonly title: string;
  readonly content: string;
  readonly source_file: string;
}

/**
 * What the repository around an agent says. The composition root makes it of specs and guidelines;
 * agents know neither.
 */
export interface ProjectContext {
  /** Project instructions (AGENTS.md, CLAUDE.md) for the system prompt; empty for none. */
  instructions(cwd: string): string | Promise<string>;
  /** The guidelines that apply to a workspace path, in the order in which they are to be read. */
  guidelinesFor(path: string): readonly ShownGuideline[];
  /** `spec_search`, `spec_impact`, `guidelines_for`. */
  readonly tools: readonly AnyTool[];
}
