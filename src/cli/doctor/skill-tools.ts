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
    return tools === undefined ? [] : [{ isCut: tools.isCut, text: `${path} asks for ${tools.text}` }];
  });
  if (asking.length === 0) return [];
  const rest = asking.length - mostNamed;
  const texts = asking.slice(0, mostNamed).map(({ text }) => text);
  const message = [...texts, ...(rest > 0 ? [`and ${rest} more skills: read their files`] : [])].join("; ");
  const status = rest > 0 || asking.some(({ isCut }) => isCut) ? "warning" : "ok";
  const hint =
    "allowed-tools: Claude Code and others run these tools without asking once the skill is in use; kit grants nothing for it. Confirm that you want each of them, or remove the key.";
  return [{ name: "allowed-tools", status, message, hint }];
}
