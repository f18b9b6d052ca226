import type { ThinkingLevel } from "../protocol/enums.ts";
import type { ModelChoice } from "../protocol/prompt.ts";

/** A way of working that an operation takes on: `.agents/roles/**\/*.md`. */
export interface Role {
  readonly name: string;
  readonly description: string;
  readonly instructions: string;
  readonly model?: ModelChoice;
  readonly thinkingLevel?: ThinkingLevel;
  /** The file that it was read from, relative to the project's root. */
  readonly file?: string;
}
