import { type Clock, isoTime } from "../../base/clock.ts";
import { digestOf } from "../../base/id.ts";
import { textTokens } from "../../base/text-size.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { AgentProfile, Role, Skill } from "../define/agent-profile.ts";
import type { AnyTool } from "../define/tool.ts";
import { fromKept, type KeptInstructions } from "../log/left-out-rules.ts";
import { keptPlaceNote, type SessionState } from "../log/session-state.ts";
import type { ProjectInstructions } from "../project-context.ts";
import { type SystemPrompt, TurnRecords } from "./turn-records.ts";

/** The logged note about surroundings that changed during a session. */
interface SurroundingsNote {
  /** The surroundings that the system prompt still describes; only in the first note since the last compaction. */
  readonly kept?: KeptInstructions & {
    readonly working_folder: string;
    readonly is_indexed: boolean;
    readonly commands: string;
  };
  /** A digest of each section as the model last saw it. */
  readonly told: Readonly<Record<string, string>>;
}

/** The surroundings that a session's system prompt describes, and the entries that report their changes. */
interface DescribedSurroundings {
  readonly surroundings: Surroundings;
  readonly news: readonly SessionEntry[];
}

/**
 * Keeps the beginning of a session's prompts stable, because providers charge less for a cached beginning. Changes
 * around a session are appended to its history, until a compaction rebuilds the prompt anyway.
 */
export class SessionPrompt {
  readonly records: TurnRecords = new TurnRecords();
  #described: Surroundings | undefined;
  /** The surroundings of the last operation: most operations have the same. */
  #latest: { readonly surroundings: Surroundings; readonly digests: SectionDigests } | undefined;
  /** Log position of the compaction that this state starts from. */
  #since = 0;
  /** Created on first use: most sessions have no sourced tools. */
  #tools: Map<string, AnyTool> | undefined;

  /** Returns the surroundings that the system prompt describes, and entries that report how `current` differs. */
  update(
    current: Surroundings,
    session: { readonly state: SessionState; readonly operationId: string; readonly clock: Clock },
  ): DescribedSurroundings {
    const { state } = session;
    this.#resetAfterCompaction(state);
    const notes = state.notes.length === 0 ? none : state.notes.filter(({ name }) => name === keptPlaceNote);
    this.#described ??= restored(notes, current) ?? current;
    const surroundings = this.#described;
    // The model has only seen what the log has.
    const last = notes.at(-1)?.value as SurroundingsNote | undefined;
    if (last === undefined && isSameSurroundings(surroundings, current)) return { surroundings, news: none };
    const lastDigests = last?.told ?? digestsOf(surroundings);
    const digests = this.#digestsOf(current);
    const changed = Object.keys(digests).filter((name) => digests[name] !== lastDigests[name]);
    return {
      surroundings,
      news:
        changed.length === 0
          ? []
          : entriesOfChange(changed, {
              surroundings,
              current,
              digests,
              isKept: last !== undefined,
              ...session,
            }),
    };
  }

  /** Resets the state after a compaction. */
  #resetAfterCompaction({ compactedAt }: SessionState): void {
    if (compactedAt === this.#since) return;
    this.#since = compactedAt;
    this.#described = undefined;
    this.#tools = undefined;
  }

  #digestsOf(surroundings: Surroundings): SectionDigests {
    if (this.#latest === undefined || !isSameSurroundings(this.#latest.surroundings, surroundings))
      this.#latest = { surroundings, digests: digestsOf(surroundings) };
    return this.#latest.digests;
  }

  /**
   * Sourced tools in a stable order: new ones come last, and a tool whose source is unavailable keeps its place.
   * `isAvailable` is false for such a tool.
   */
  inOrder(
    listed: readonly AnyTool[],
    state: SessionState,
  ): { readonly tools: readonly AnyTool[]; readonly isAvailable: (name: string) => boolean } {
    this.#resetAfterCompaction(state);
    if (listed.length === 0 && this.#tools === undefined) return noTools;
    this.#tools ??= new Map();
    const byName = new Map(listed.map((tool) => [tool.name, tool]));
    for (const [name, tool] of byName) this.#tools.set(name, tool);
    return { tools: [...this.#tools.values()], isAvailable: (name) => byName.has(name) };
  }
}

const noTools: ReturnType<SessionPrompt["inOrder"]> = { tools: [], isAvailable: () => false };

const none: readonly never[] = [];

type SectionDigests = Readonly<Record<string, string>>;

/** The surroundings that the system prompt still describes, from the note of this or an earlier process. */
function restored(notes: SessionState["notes"], current: Surroundings): Surroundings | undefined {
  for (const { value } of notes) {
    const { kept } = value as SurroundingsNote;
    if (kept === undefined) continue;
    return {
      instructions: { ...fromKept(kept), sources: current.instructions.sources },
      workingFolder: kept.working_folder,
      isIndexed: kept.is_indexed,
      commands: kept.commands,
    };
  }
  return undefined;
}

function digestsOf(surroundings: Surroundings): Readonly<Record<string, string>> {
  const digests: Record<string, string> = {};
  for (const [name, section] of Object.entries(changingSections(surroundings)))
    digests[name] = section === undefined ? "" : digestOf(section.text);
  return digests;
}

const titles: Readonly<Record<string, string>> = {
  project_instructions: "Project instructions",
  working_folder: "Working folder",
  specs: "Specs and guidelines",
  commands: "Commands",
};

const nothingMore = "What was said here before no longer applies.";

/** The message that reports changes to the model, and the note of what the system prompt still says. */
function entriesOfChange(
  changed: readonly string[],
  from: {
    readonly surroundings: Surroundings;
    readonly current: Surroundings;
    readonly digests: Readonly<Record<string, string>>;
    readonly isKept: boolean;
    readonly operationId: string;
    readonly clock: Clock;
  },
): readonly SessionEntry[] {
  const { surroundings, current, digests: seen, isKept, operationId, clock } = from;
  const sections = changingSections(current);
  const texts = changed.map((name) => sections[name]?.text ?? `# ${titles[name] ?? name}\n\n${nothingMore}`);
  const text = `Your instructions have changed since this conversation began. This replaces what was said under the same headings before:\n\n${texts.join("\n\n")}`;
  const shows: ReceiptItem[] = changed
    .flatMap((name) => sections[name]?.items ?? [])
    .map((item) => ({ ...item, why: `${item.why}, as they have changed since` }));
  const timestamp = isoTime(clock.now());
  const value: SurroundingsNote = { ...(isKept ? {} : { kept: toKept(surroundings) }), told: seen };
  return [
    {
      version: 1,
      type: "message",
      operation_id: operationId,
      message: {
        role: "user",
        content: [{ type: "text", text: text.toWellFormed() }],
        timestamp,
        source: "instructions",
        ...(shows.length === 0 ? {} : { shows }),
      },
    },
    { version: 1, type: "note", name: keptPlaceNote, value, timestamp },
  ];
}

function toKept({
  instructions,
  workingFolder,
  isIndexed,
  commands,
}: Surroundings): NonNullable<SurroundingsNote["kept"]> {
  const { text, parts } = instructions;
  return { text, parts, working_folder: workingFolder, is_indexed: isIndexed, commands };
}

/** The parts of a system prompt that depend on the session's surroundings. */
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
interface SystemParts extends Surroundings {
  readonly profile: AgentProfile;
  readonly role: Role | undefined;
  /** The agent's name, and the file that describes it. */
  readonly agent: { readonly name: string; readonly file?: string | undefined };
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
  const { profile, role, agent } = parts;
  const cached = newest.get(profile);
  if (
    cached !== undefined &&
    cached.parts.role === role &&
    cached.parts.agent.name === agent.name &&
    isSameSurroundings(cached.parts, parts)
  )
    return cached.prompt;
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
  newest.set(profile, { parts, prompt });
  return prompt;
}

/** Whether two surroundings result in the same prompt. */
function isSameSurroundings(left: Surroundings, right: Surroundings): boolean {
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
    ...Object.values(changingSections(parts)).flatMap((section) => section ?? []),
    ...skillsOf(profile.skills ?? []),
    ...subagentsOf(profile.subagents ?? []),
    ...(role === undefined ? [] : [roleSection(role)]),
  ];
}

function instructionsOf({ instructions }: AgentProfile, { name, file }: SystemParts["agent"]): Section {
  const text = instructions ?? defaultInstructions;
  const why = instructions === undefined ? "kit's own, as the agent has none" : "instructions of the agent";
  const location = instructions === undefined || file === undefined ? {} : { file };
  return {
    name: "instructions",
    text,
    items: [{ kind: "instructions", id: name, ...location, why, tokens: textTokens(text) }],
  };
}

/** The sections that may change during a session; undefined for an empty one. */
function changingSections(surroundings: Surroundings): Readonly<Record<string, Section | undefined>> {
  const { instructions, workingFolder, isIndexed, commands } = surroundings;
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
            instructions.parts.map(({ id, path, line, tokens }) => ({
              kind: "instructions",
              id,
              file: path,
              line,
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
  const location = file === undefined ? {} : { file, line: 1 };
  return {
    name: "role",
    text,
    items: [{ kind: "role", id: name, ...location, why: "role of the call", tokens: textTokens(text) }],
  };
}

const defaultInstructions =
  "You work in a repository with the tools you are given. Look before you change, say what you found with file and line, and do not claim what you did not check.";
