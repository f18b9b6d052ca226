import type { Skill } from "../../agents/define/agent-profile.ts";

/**
 * Loads a skill from a Markdown file, or from the `SKILL.md` of a folder. Throws `invalid_request` for
 * a file that is not a skill: one without instructions, or with front matter that is not what it should be.
 *
 * @example
 * ```ts
 * import { type Agent, loadSkill } from "kit";
 *
 * export async function release(agent: Agent): Promise<string> {
 *   const skill = await loadSkill("shared/skills/release");
 *   return (await agent.session().skill(skill)).text;
 * }
 * ```
 */
export async function loadSkill(path: string, options: { readonly root?: string } = {}): Promise<Skill> {
  const { readSkill } = await import("./load-skills.ts");
  return (await readSkill(path, options)).skill;
}
