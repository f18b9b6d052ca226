import type { BackendChoice } from "../../backends/contract.ts";
import type { StandardSchemaV1 } from "../../base/standard-schema.ts";
import type { ThinkingLevel } from "../../protocol/enums.ts";
import type { AnyPythonDataclass, PythonFunction, PythonResourceLimits } from "../../python/contract.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { EventListener } from "../events.ts";
import { type ApprovalRules, mergeApprovals } from "./approval-rules.ts";
import type { KitCommand } from "./command.ts";
import { type AgentHooks, hooksOf } from "./hooks.ts";
import type { Budget, CompactionSettings } from "./limits.ts";
import type { BuiltInToolName, ModelSettings, ProfileModel } from "./model-settings.ts";
import type { Skill } from "./skill.ts";
import type { AnyTool, JsonSchema } from "./tool.ts";

/**
 * A command that may run. `"git"` and `"git commit"` stand for their known forms, `"npm test"` for that line,
 * `"npm test *"` for it with arguments. `unsafe` allows all that begins with these words, whatever it does.
 */
export type AllowedCommand = string | { readonly command: string; readonly unsafe?: boolean | undefined };

/** Rights of an agent's tools in its workspace. Everything that is not allowed is refused. */
export interface AgentPolicy {
  readonly allowWrite?: boolean;
  readonly allowShell?: boolean;
  /**
   * Commands that may run, without a shell: `["git", "git commit", "npm test"]`. Without it, any simple command
   * where the operating system walls it in, and known forms elsewhere.
   */
  readonly allowedCommands?: readonly AllowedCommand[];
  /** Passes lines to a shell unchecked: for trusted work only. */
  readonly allowCompoundCommands?: boolean;
  /**
   * Hosts that commands may reach: `["registry.npmjs.org", "*.example.com:443"]`. Default: none, where a
   * wall stands; without one, nothing keeps a command from the network.
   */
  readonly allowNetwork?: readonly string[];
  /** Paths that are protected by default (`.kit`, agents, config, Git hooks) and may be written all the same. */
  readonly allowProtectedPaths?: readonly string[];
  /** Calls that wait for approval. Rules of a parent, the project and a profile add up. */
  readonly approvals?: ApprovalRules;
}

/** An agent as plain data. Make one with `defineAgentProfile`. */
export interface AgentProfile<Output = unknown> extends AgentPolicy {
  readonly name?: string;
  readonly description?: string;
  /**
   * `provider/model`, a model of the AI SDK (LanguageModelV4), or a list of both: where one fails for good, the next one
   * answers. Default: the project's.
   */
  readonly model?: ProfileModel | undefined;
  /** Settings of model calls: they win over the project's, and those of a call win over them. */
  readonly modelSettings?: ModelSettings | undefined;
  /** The schema of every answer that is asked for without one of its own; see `result` of a prompt. Over HTTP, too. */
  readonly output?: StandardSchemaV1<unknown, Output> | JsonSchema | undefined;
  /** Which of kit's own tools the model is offered: none with false, those of a list, else all that the policy allows. */
  readonly builtInTools?: boolean | readonly BuiltInToolName[] | undefined;
  /** Hooks around calls of the model and of tools, which may change or refuse them. The project's run first. */
  readonly hooks?: AgentHooks | readonly AgentHooks[] | undefined;
  /** The backend that decides the turns, by name or as an object; default: the project's, else `typed`. */
  readonly backend?: BackendChoice;
  readonly instructions?: string;
  readonly tools?: readonly AnyTool[];
  readonly commands?: readonly KitCommand[];
  readonly skills?: readonly Skill[];
  readonly roles?: readonly Role[];
  /** Agents that `task` can start by name. */
  readonly subagents?: readonly AgentProfile[];
  readonly thinkingLevel?: ThinkingLevel;
  readonly sandbox?: SandboxFactory;
  /** Working folder inside the sandbox. */
  readonly cwd?: string;
  readonly store?: SessionStore;
  readonly compaction?: Partial<CompactionSettings>;
  readonly budget?: Budget;
  /** Attempts to repair a typed output; default 3. */
  readonly typedRetries?: number;
  /** Milliseconds without any part of an answer before a call of the model is given up; default 120,000. */
  readonly modelIdleTimeoutMs?: number;
  /** How deep tasks may start tasks; default 8. */
  readonly maxTaskDepth?: number;
  /** Gives the model the tool `run_code`: true, or what Python may call and use. Default false. */
  readonly python?: boolean | PythonProfile;
  /** Specs of the repository as tools; default true. */
  readonly specs?: boolean;
  /** Tools of the MCP servers that the project's configuration names; default true. */
  readonly mcp?: boolean;
  /** Guidelines that apply to a touched file are shown to the model; default true. */
  readonly guidelines?: boolean;
  /** AGENTS.md and CLAUDE.md in the system prompt; default true. */
  readonly projectInstructions?: boolean;
  readonly onEvent?: EventListener;
}

/**
 * Returns the profile unchanged; editors check its fields.
 *
 * @example
 * ```ts
 * import { createAgent, defineAgentProfile } from "kit";
 *
 * const careful = defineAgentProfile({ allowWrite: false, budget: { maxTurns: 20 } });
 * export default createAgent({ ...careful, name: "reader" });
 * ```
 */
export function defineAgentProfile<Output = unknown>(profile: AgentProfile<Output>): AgentProfile<Output> {
  return profile;
}

const lists = [
  "tools",
  "commands",
  "skills",
  "roles",
  "subagents",
  "allowedCommands",
  "allowNetwork",
  "allowProtectedPaths",
] as const;

/**
 * Merges two profiles: fields of `over` replace those of `base`, lists are joined (`base` first), settings objects
 * are merged field by field.
 *
 * @example
 * ```ts
 * import { mergeProfiles } from "kit";
 *
 * const { allowedCommands } = mergeProfiles({ allowedCommands: ["git"] }, { allowedCommands: ["npm test"] });
 * console.log(allowedCommands); // ["git", "npm test"]
 * ```
 */
export function mergeProfiles(base: AgentProfile, over: AgentProfile): AgentProfile {
  const merged: Record<string, unknown> = { ...base };
  for (const [field, value] of Object.entries(over)) if (value !== undefined) merged[field] = value;
  for (const field of lists) {
    const joined = [...(base[field] ?? []), ...(over[field] ?? [])];
    if (joined.length > 0) merged[field] = joined;
  }
  for (const field of ["compaction", "budget", "modelSettings"] as const) {
    if (base[field] !== undefined && over[field] !== undefined)
      merged[field] = { ...base[field], ...over[field] };
  }
  if (base.hooks !== undefined && over.hooks !== undefined)
    merged.hooks = [...hooksOf(base.hooks), ...hooksOf(over.hooks)];
  if (base.approvals !== undefined && over.approvals !== undefined)
    merged.approvals = mergeApprovals(base.approvals, over.approvals);
  return merged as AgentProfile;
}

/** A way of working that an operation takes on: `.agents/roles/**\/*.md`. */
export interface Role {
  readonly name: string;
  readonly description: string;
  readonly instructions: string;
  readonly model?: ProfileModel | undefined;
  readonly thinkingLevel?: ThinkingLevel;
  /** The file that it was read from, relative to the project's root. */
  readonly file?: string;
}

/**
 * Extracts the part of a profile that a role can hold. Throws `TypeError` for a profile without a name.
 *
 * @example
 * ```ts
 * import { profileToRole } from "kit";
 *
 * const role = profileToRole({ name: "reviewer", instructions: "You review pull requests." });
 * console.log(role.description); // ""
 * ```
 */
export function profileToRole(profile: AgentProfile): Role {
  if (profile.name === undefined) throw new TypeError("A profile needs a `name` to become a role.");
  return {
    name: profile.name,
    description: profile.description ?? "",
    instructions: profile.instructions ?? "",
    ...(profile.model === undefined ? {} : { model: profile.model }),
    ...(profile.thinkingLevel === undefined ? {} : { thinkingLevel: profile.thinkingLevel }),
  };
}

/**
 * Turns a role into a profile with its name, instructions and model.
 *
 * @example
 * ```ts
 * import { createAgent, roleToProfile } from "kit";
 *
 * const role = { name: "reviewer", description: "Reviews changes.", instructions: "You review pull requests." };
 * export default createAgent(roleToProfile(role));
 * ```
 */
export function roleToProfile(role: Role): AgentProfile {
  return { ...role };
}

/** Functions, classes and limits of the Python of an agent's sessions, for the model and for `runPython`. */
export interface PythonProfile {
  readonly functions?: Readonly<Record<string, PythonFunction>>;
  readonly dataclasses?: readonly AnyPythonDataclass[];
  readonly resourceLimits?: PythonResourceLimits;
}

/** Expands `python: true` and a missing `python` to a profile. */
export function pythonProfileOf(python: boolean | PythonProfile | undefined): PythonProfile {
  return typeof python === "object" ? python : {};
}
