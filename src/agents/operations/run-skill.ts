import { KitError } from "../../base/kit-error.ts";
import type { LiveSession, Operation } from "../agent-runtime.ts";
import type { Skill } from "../define/agent-profile.ts";
import { skillItem } from "../prompt/system-prompt.ts";
import type { PromptOptions, PromptResult, SkillOptions } from "./options.ts";
import type { PromptHost } from "./prepare.ts";
import { runPrompt } from "./run-prompt.ts";

/** Runs a skill: its instructions and the arguments become the prompt. */
export async function runSkill<Result>(
  harness: PromptHost,
  operation: Operation,
  call: { readonly skill: string | Skill; readonly options: SkillOptions<Result> },
): Promise<PromptResult<Result>> {
  const { options } = call;
  const skill = typeof call.skill === "string" ? findSkill(operation.live, call.skill) : call.skill;
  if (skill.inputSchema !== undefined) await checkArgs(harness, skill, options.args ?? {});
  const result = options.result ?? (skill.outputSchema as PromptOptions<Result>["result"]);
  const text = toPrompt(skill, options.args);
  return runPrompt(harness, operation, {
    text,
    shows: [skillItem(skill, "called", text)],
    options: { ...options, result },
    source: "skill",
    skill: skill.name,
  });
}

function findSkill(live: LiveSession, name: string): Skill {
  const skills = live.profile.skills ?? [];
  const skill = skills.find((skill) => skill.name === name);
  if (skill !== undefined) return skill;
  const names = skills.map((skill) => skill.name).join(", ");
  throw new KitError({
    code: "invalid_request",
    message: `There is no skill named "${name}".`,
    hint: names === "" ? `Add one with: kit skill new ${name}` : `The skills are: ${names}.`,
  });
}

async function checkArgs(harness: Pick<PromptHost, "runtime">, skill: Skill, args: unknown): Promise<void> {
  const issues = await harness.runtime.validateJson(skill.inputSchema ?? {}, args);
  if (issues.length === 0) return;
  throw new KitError({
    code: "invalid_request",
    message: `The arguments do not match the input schema of the skill "${skill.name}": ${issues.join("; ")}.`,
    meta: { issues: issues.map((message) => ({ path: "args", message })) },
  });
}

function toPrompt(skill: Skill, args: Readonly<Record<string, unknown>> | undefined): string {
  const parts = [`# Skill: ${skill.name}\n\n${skill.instructions}`];
  if (skill.folder !== undefined) parts.push(`The files of this skill lie in ${skill.folder}.`);
  if (args !== undefined) parts.push(`Arguments:\n\n\`\`\`json\n${JSON.stringify(args, null, 2)}\n\`\`\``);
  return parts.join("\n\n");
}
