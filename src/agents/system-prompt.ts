import type { AgentProfile } from "./agent-profile.ts";
import type { Role } from "./role.ts";

/** What a system prompt is made of. */
interface SystemParts {
  readonly profile: AgentProfile;
  readonly role: Role | undefined;
  readonly projectInstructions: string;
  /** Where files and commands start, in a repository whose own tools start at its root; "" for the root. */
  readonly workingFolder: string;
  /** Whether the tools about specs and guidelines are there, where the agent would have them. */
  readonly isIndexed: boolean;
  /** What commands may do within their wall; "" where the agent runs none, or no wall stands. */
  readonly commands: string;
}

/** The newest prompt of a profile: its next operation tells the same, unless something has changed meanwhile. */
const newest = new WeakMap<AgentProfile, { readonly parts: SystemParts; readonly text: string }>();

/** The prompt that was made last, which the next one often is, too. */
let shared = "";

/** The system prompt of an operation: the agent, its role, the project, what it can call on. */
export function systemPromptOf(parts: SystemParts): string {
  const known = newest.get(parts.profile);
  if (known !== undefined && isSame(known.parts, parts)) return known.text;
  const composed = compose(parts);
  // Thousands of instances, each with a profile of its own, tell the same.
  if (composed !== shared) shared = composed;
  const text = shared;
  newest.set(parts.profile, { parts, text });
  return text;
}

function isSame(left: SystemParts, right: SystemParts): boolean {
  return (
    left.role === right.role &&
    left.projectInstructions === right.projectInstructions &&
    left.workingFolder === right.workingFolder &&
    left.isIndexed === right.isIndexed &&
    left.commands === right.commands
  );
}

function compose(parts: SystemParts): string {
  const { profile, role } = parts;
  const sections = [profile.instructions ?? defaultInstructions];
  if (role !== undefined) sections.push(`# Role: ${role.name}\n\n${role.instructions}`);
  if (parts.projectInstructions !== "")
    sections.push(`# Project instructions\n\n${parts.projectInstructions}`);
  if (parts.workingFolder !== "") {
    sections.push(
      `# Working folder\n\nPaths of files and commands start in \`${parts.workingFolder}\`. Tools about specs and guidelines take paths from the root of the repository, such as \`${parts.workingFolder}/…\`.`,
    );
  }
  if (!parts.isIndexed) {
    sections.push(
      "# Specs and guidelines\n\nThe workspace lies where its specs and guidelines cannot be looked up: there are no tools for that. Read the files themselves.",
    );
  }
  if (parts.commands !== "") sections.push(`# Commands\n\n${parts.commands}`);
  const skills = profile.skills ?? [];
  if (skills.length > 0) {
    const list = skills.map(({ name, description, folder }) => {
      const file = folder === undefined ? "" : ` (${folder}/SKILL.md)`;
      return `- ${name}: ${description}${file}`;
    });
    const isFiled = skills.some(({ folder }) => folder !== undefined);
    const first = isFiled ? "Read the file of a skill before you do what it is for.\n\n" : "";
    sections.push(`# Skills\n\n${first}${list.join("\n")}`);
  }
  const agents = (profile.subagents ?? []).filter((agent) => agent.name !== undefined);
  if (agents.length > 0) {
    const list = agents.map((agent) => `- ${agent.name}: ${agent.description ?? ""}`).join("\n");
    sections.push(`# Agents for the task tool\n\n${list}`);
  }
  // A long file may have been cut through a surrogate pair: providers refuse to read what is left of it.
  return sections.join("\n\n").toWellFormed();
}

const defaultInstructions =
  "You work in a repository with the tools you are given. Look before you change, say what you found with file and line, and do not claim what you did not check.";
