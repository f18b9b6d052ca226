import type { JsonSchema } from "./tool.ts";

/** A reusable piece of work: `.agents/skills/**\/*.md` or `<name>/SKILL.md`. */
export interface Skill {
  readonly name: string;
  readonly description: string;
  readonly instructions: string;
  /** JSON Schema of `args`. */
  readonly inputSchema?: JsonSchema;
  /** JSON Schema of the result, where the caller names none. */
  readonly outputSchema?: JsonSchema;
  /** Project-relative folder of a packaged skill, so that the model can read what lies beside it. */
  readonly folder?: string;
  /** The file that it was read from, relative to the project's root. */
  readonly file?: string;
}

/** Gives a skill as it is: the place where an editor checks its fields. */
export function defineSkill(skill: Skill): Skill {
  return skill;
}
