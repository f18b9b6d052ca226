import { digestOf } from "../../base/digest.ts";
import { textTokens } from "../../base/text-tokens.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { AgentProfile, Role } from "../define/agent-profile.ts";
import type { Skill } from "../define/skill.ts";
import type { ProjectInstructions } from "../project-context.ts";

/** The parts of a system prompt that depend on the session's working place. */
export interface Surroundings {
  readonly instructions: ProjectInstructions;
  /** The working folder of files and commands, from the repository's root; "" for the root. */
  readonly workingFolder: string;
  /** Whether the tools about specs and guidelines are available, if the agent would have them. */
  readonly isIndexed: boolean;
  /** Describes the isolation of commands; "" if the agent runs none, or without isolation. */
  readonly commands: string;
}

/** The sources of a system prompt. */
export interface SystemParts extends Surroundings {
  readonly profile: AgentProfile;
  readonly role: Role | undefined;
  /** The agent's name, and the file that describes it. */
  readonly agent: { readonly name: string; readonly file?: string | undefined };
}

/** A system prompt, with digests and receipt items of its sections. */
export interface SystemPrompt {
  readonly text: string;
  /** A digest of each section, by its name. */
  readonly digests: Readonly<Record<string, string>>;
  readonly items: readonly ReceiptItem[];
}

interface Section {
  readonly name: string;
  readonly text: string;
  readonly items?: readonly ReceiptItem[] | undefined;
}

/** The newest prompt of each profile, reused while nothing changes. */
const newest = new WeakMap<AgentProfile, { readonly parts: SystemParts; readonly prompt: SystemPrompt }>();

/** The last text, shared by instances whose prompts are equal. */
let shared = "";

/** Composes the system prompt of an operation: agent, project, skills, subagents and role. */
export function systemPromptOf(parts: SystemParts): SystemPrompt {
  const known = newest.get(parts.profile);
  if (known !== undefined && isSame(known.parts, parts)) return known.prompt;
  const sections = sectionsOf(parts);
  // A cut may have split a surrogate pair, which providers refuse.
  const composed = sections
    .map(({ text }) => text)
    .join("\n\n")
    .toWellFormed();
  // Thousands of instances with profiles of their own often have equal prompts.
  if (composed !== shared) shared = composed;
  const prompt = {
    text: shared,
    digests: Object.fromEntries(sections.map(({ name, text }) => [name, digestOf(text)])),
    items: sections.flatMap(({ items = [] }) => items),
  };
  newest.set(parts.profile, { parts, prompt });
  return prompt;
}

function isSame(left: SystemParts, right: SystemParts): boolean {
  return left.role === right.role && left.agent.name === right.agent.name && isSamePlace(left, right);
}

/** Whether two working places give the same prompt. */
export function isSamePlace(left: Surroundings, right: Surroundings): boolean {
  return (
    left.instructions.text === right.instructions.text &&
    left.workingFolder === right.workingFolder &&
    left.isIndexed === right.isIndexed &&
    left.commands === right.commands
  );
}

/** The role comes last, so that calls with different roles share the beginning. */
function sectionsOf(parts: SystemParts): readonly Section[] {
  const { profile, role, agent } = parts;
  return [
    instructionsOf(profile, agent),
    ...Object.values(placeSections(parts)).flatMap((section) => section ?? []),
    ...skillsOf(profile.skills ?? []),
    ...subagentsOf(profile.subagents ?? []),
    ...(role === undefined ? [] : [roleSection(role)]),
  ];
}

function instructionsOf({ instructions }: AgentProfile, { name, file }: SystemParts["agent"]): Section {
  const text = instructions ?? defaultInstructions;
  const why = instructions === undefined ? "kit's own, as the agent has none" : "instructions of the agent";
  const place = instructions === undefined || file === undefined ? {} : { file };
  return {
    name: "instructions",
    text,
    items: [{ kind: "instructions", id: name, ...place, why, tokens: textTokens(text) }],
  };
}

/** The sections that may change during a session; undefined for an empty one. */
export function placeSections(place: Surroundings): Readonly<Record<string, Section | undefined>> {
  const { instructions, workingFolder, isIndexed, commands } = place;
  const section = (name: string, text: string, items?: readonly ReceiptItem[]): Section => ({
    name,
    text,
    items,
  });
  return {
    project_instructions:
      instructions.text === ""
        ? undefined
        : section(
            "project_instructions",
            `# Project instructions\n\n${instructions.text}`,
            instructions.files.map(({ path, tokens }) => ({
              kind: "instructions",
              id: path,
              file: path,
              line: 1,
              why: "instructions of the project",
              tokens,
            })),
          ),
    working_folder:
      workingFolder === ""
        ? undefined
        : section(
            "working_folder",
            `# Working folder\n\nPaths of files and commands start in \`${workingFolder}\`. Tools about specs and guidelines take paths from the root of the repository, such as \`${workingFolder}/…\`.`,
          ),
    specs: isIndexed
      ? undefined
      : section(
          "specs",
          "# Specs and guidelines\n\nThe workspace lies where its specs and guidelines cannot be looked up: there are no tools for that. Read the files themselves.",
        ),
    commands: commands === "" ? undefined : section("commands", `# Commands\n\n${commands}`),
  };
}

function skillsOf(skills: readonly Skill[]): readonly Section[] {
  if (skills.length === 0) return [];
  const lines = skills.map(({ name, description, folder }) => {
    const file = folder === undefined ? "" : ` (${folder}/SKILL.md)`;
    return `- ${name}: ${description}${file}`;
  });
  const isFiled = skills.some(({ folder }) => folder !== undefined);
  const first = isFiled ? "Read the file of a skill before you do what it is for.\n\n" : "";
  const items = skills.map((skill, index) => skillItem(skill, "listed", lines[index] ?? ""));
  return [{ name: "skills", text: `# Skills\n\n${first}${lines.join("\n")}`, items }];
}

/** The receipt item of a skill whose text the model sees. */
export function skillItem({ name, file }: Skill, why: string, text: string): ReceiptItem {
  return {
    kind: "skill",
    id: name,
    ...(file === undefined ? {} : { file, line: 1 }),
    why,
    tokens: textTokens(text),
  };
}

function subagentsOf(subagents: readonly AgentProfile[]): readonly Section[] {
  const agents = subagents.filter((agent) => agent.name !== undefined);
  if (agents.length === 0) return [];
  const list = agents.map((agent) => `- ${agent.name}: ${agent.description ?? ""}`).join("\n");
  return [{ name: "agents", text: `# Agents for the task tool\n\n${list}` }];
}

function roleSection({ name, instructions, file }: Role): Section {
  const text = `# Role: ${name}\n\n${instructions}`;
  const place = file === undefined ? {} : { file, line: 1 };
  return {
    name: "role",
    text,
    items: [{ kind: "role", id: name, ...place, why: "role of the call", tokens: textTokens(text) }],
  };
}

const defaultInstructions =
  "You work in a repository with the tools you are given. Look before you change, say what you found with file and line, and do not claim what you did not check.";
