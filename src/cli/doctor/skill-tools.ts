import { allowedToolsOf, isSkillFile } from "../../guidelines/skills/skill-format.ts";
import type { Project } from "../../project/project.ts";
import { indexOf } from "../../project/project-index.ts";
import type { Check } from "./checks.ts";

/** The most skills that one check names. */
const mostNamed = 10;

/** The tools that skills ask to use without a question: only a person can confirm them. No check for a project whose skills ask for none. */
export function checkSkillTools(project: Pick<Project, "specs" | "files">): readonly Check[] {
  const { readText } = indexOf(project);
  const asking = project.files().flatMap((path) => {
    const text = isSkillFile(path) ? readText(path) : undefined;
    const tools = text === undefined ? undefined : allowedToolsOf(text);
    return tools === undefined ? [] : [`${path} asks for ${tools}`];
  });
  if (asking.length === 0) return [];
  const rest = asking.length - mostNamed;
  const message = [...asking.slice(0, mostNamed), ...(rest > 0 ? [`and ${rest} more`] : [])].join("; ");
  const hint =
    "allowed-tools: Claude Code and others run these tools without asking once the skill is in use; kit grants nothing for it. Confirm that you want each of them, or remove the key.";
  return [{ name: "allowed-tools", status: "ok", message, hint }];
}
