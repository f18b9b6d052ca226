import type { JsonSchema } from "./tool.ts";

/** A reusable piece of work: `.agents/skills/**\/*.md` or `<name>/SKILL.md`. */
export interface Skill {
  readonly name: string;
  readonly description: string;
  readonly instructions: string;
  /** JSON Schema of `args`. */
  readonly inputSchema?: JsonSchema | undefined;
  /** JSON Schema of the result, where the caller names none. */
  readonly outputSchema?: JsonSchema | undefined;
  /** Project-relative folder of a packaged skill, so that the model can read the other files in it. */
  readonly folder?: string | undefined;
  /** The file that it was read from, relative to the project's root. */
  readonly file?: string | undefined;
}

/**
 * Returns the skill unchanged; editors check its fields.
 *
 * @example
 * ```ts
 * import { createAgent, defineSkill } from "kit";
 *
 * const release = defineSkill({
 *   name: "release-notes",
 *   description: "Writes release notes.",
 *   instructions: "List the user-visible changes since the last tag.",
 * });
 * export default createAgent({ skills: [release] });
 * ```
 */
export function defineSkill(skill: Skill): Skill {
  return skill;
}
