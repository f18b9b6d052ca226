import type { StandardSchemaV1 } from "@standard-schema/spec";
import * as z from "zod/mini";
import { type BackendChoice, faultOfBackend } from "../../backends/contract.ts";
import { isRecord } from "../../base/record.ts";
import {
  callback,
  expecting,
  type Fields,
  flag,
  integer,
  list,
  live,
  name,
  object,
  objectOf,
  objectWith,
  string,
} from "../../base/settings.ts";
import { faultOfJsonSchema, faultOfSchema } from "../../json-schema/schema-fault.ts";
import { type ThinkingLevel, thinkingLevels } from "../../protocol/enums.ts";
import type { AnyPythonDataclass, PythonFunction, PythonResourceLimits } from "../../python/contract.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { EventListener } from "../events.ts";
import { hooks } from "./hooks.ts";
import {
  budget,
  builtInTools,
  compactionSettings,
  modelSettings,
  type ProfileModel,
  profileModel,
} from "./profile-settings.ts";
import { type AnyTool, faultOfToolInput, type JsonSchema, type KitCommand, toolNaming } from "./tool.ts";

const strings = list(string, "a list of texts");
const flagOrCallback = z.union([flag, callback()], { error: expecting("true, false or a function") });

/** A schema of zod is an object, one of ArkType a function. */
export const schemaOrJson = schemaBy<StandardSchemaV1 | JsonSchema>(faultOfSchema);
const inputSchema = schemaBy<StandardSchemaV1 | JsonSchema>(faultOfToolInput);
const jsonSchema = schemaBy<JsonSchema>(faultOfJsonSchema);

function schemaBy<Value>(faultOf: (value: unknown) => string | undefined): z.ZodMiniType<Value> {
  const error = ({ input }: { readonly input?: unknown }): string => faultOf(input) ?? "";
  return z.custom<Value>((value) => faultOf(value) === undefined, { error });
}

/** Monty accepts infinity as a limit. */
const limit = live<number>("a number", isLimit);

/** Infinity is a limit that never applies. */
function isLimit(value: unknown): boolean {
  return typeof value === "number" && !Number.isNaN(value);
}

/** The error of an invalid `backend` lists the known ones. */
export const backend = live<BackendChoice>(
  (value) => faultOfBackend(value) ?? "",
  (value) => faultOfBackend(value) === undefined,
);

const toolSchema = objectOf<AnyTool>()(
  {
    name: string,
    description: string,
    input: inputSchema,
    execute: callback(),
    timeoutMs: live<number>("a number of milliseconds", isLimit),
    maxResultChars: z.number({ error: expecting("a number of characters") }),
    exclusive: flag,
    touches: callback(),
    idempotent: flag,
    needsApproval: flagOrCallback,
    editableArguments: flag,
    standsFor: callback(),
    servedBy: callback(),
  },
  { ...toolNaming, what: "a tool, as defineTool gives it", needs: ["name", "input", "execute"] },
);
export const tools = list(toolSchema, "a list of tools, as defineTool gives them");

const commandSchema = objectOf<KitCommand>()(
  {
    name: string,
    action: z.union([string, callback()], { error: expecting("a line or a function") }),
    description: string,
    input: schemaOrJson,
    timeoutMs: integer(1),
    allowWrite: flag,
    allowNetwork: strings,
    needsApproval: flagOrCallback,
  },
  {
    of: "field of a command",
    otherNames: { command: "action", run: "action" },
    what: "a command, as defineCommand gives it",
    needs: ["name"],
  },
);
export const commands = list(commandSchema, "a list of commands, as defineCommand gives them");

const skillSchema = objectOf<Skill>()(
  {
    name: string,
    description: string,
    instructions: string,
    inputSchema: jsonSchema,
    outputSchema: jsonSchema,
    folder: string,
    file: string,
  },
  {
    of: "field of a skill",
    otherNames: { input_schema: "inputSchema", output_schema: "outputSchema", content: "instructions" },
    needs: ["name"],
  },
);

/** Instructions and a model for single operations: `.agents/roles/**\/*.md`. */
export interface Role {
  readonly name: string;
  readonly description: string;
  readonly instructions: string;
  readonly model?: ProfileModel | undefined;
  readonly thinkingLevel?: ThinkingLevel | undefined;
  /** The file that it was read from, relative to the project's root. */
  readonly file?: string | undefined;
}
const roleSchema = objectOf<Role>()(
  {
    name: string,
    description: string,
    instructions: string,
    model: profileModel,
    thinkingLevel: name(thinkingLevels),
    file: string,
  },
  { of: "field of a role", otherNames: { thinking_level: "thinkingLevel" }, needs: ["name"] },
);

const allowedCommand = z.union(
  [
    string,
    objectWith({ required: { command: string }, optional: { unsafe: flag } }, { of: "field of a command" }),
  ],
  { error: expecting('a text, or an object such as { command: "make", unsafe: true }') },
);

/**
 * An allowed command. `"git"` and `"git commit"` allow their known forms, `"npm test"` allows that line, `"npm test *"` that
 * line with any arguments. `unsafe` allows every command line that starts with these words.
 */
export type AllowedCommand = Readonly<z.output<typeof allowedCommand>>;

/**
 * Calls of an agent that need approval, besides those whose tools require it themselves.
 *
 * @example
 * ```ts
 * import { createAgent } from "kit";
 *
 * export default createAgent({ approvals: { tools: ["bash", "mcp__github__*"], timeoutMs: 600_000 } });
 * ```
 */
const approvalRules = objectWith(
  {
    required: {
      /** Names of tools and commands; `*` matches any characters: `["bash", "mcp__github__*"]`. */
      tools: strings,
    },
    optional: {
      /** Milliseconds before an undecided call is denied; default: the limit of the runtime's approvals. */
      timeoutMs: integer(1),
    },
  },
  { of: "field of approvals", what: 'an object such as { tools: ["bash"], timeoutMs: 60000 }' },
);
export interface ApprovalRules extends Fields<typeof approvalRules> {}

const policyFields = {
  allowWrite: flag,
  allowShell: flag,
  /**
   * Commands that may run, without a shell: `["git", "git commit", "npm test"]`. Without a list, any simple command may
   * run if the sandbox isolates commands; otherwise only known forms.
   */
  allowedCommands: list(allowedCommand),
  /** Passes lines to a shell unchecked: for trusted work only. */
  allowCompoundCommands: flag,
  /**
   * Hosts that commands may reach: `["registry.npmjs.org", "*.example.com:443"]`. Default: none if the sandbox isolates
   * commands; without isolation, commands can reach every host.
   */
  allowNetwork: strings,
  /** Paths that tools may write although they are protected by default (`.kit`, agents, config, Git hooks). */
  allowProtectedPaths: strings,
  /** Calls that need approval. The rules of a parent, the project and a profile are added together. */
  approvals: approvalRules,
};
/** Rights of an agent's tools in its workspace. Everything that is not allowed is refused. */
const policySchema = object(policyFields, { of: "field of a policy" });
export interface AgentPolicy extends Fields<typeof policySchema> {}

/** Functions, classes and limits of the Python of an agent's sessions, for the model and for `runPython`. */
const pythonSchema = object(
  {
    functions: live<Readonly<Record<string, PythonFunction>>>("an object of functions, by name", isRecord),
    dataclasses: list(
      live<AnyPythonDataclass>("a dataclass", (value) => isRecord(value) && typeof value.name === "string"),
      "a list of dataclasses",
    ),
    resourceLimits: objectOf<PythonResourceLimits>()(
      {
        maxAllocations: limit,
        maxDurationSecs: limit,
        maxMemory: limit,
        maxRecursionDepth: limit,
        gcInterval: limit,
      },
      { of: "limit of Python", needs: [] },
    ),
  },
  { of: "field of python" },
);
export interface PythonProfile extends Fields<typeof pythonSchema> {}

/** The fields of an agent's profile except its subagents, which are profiles themselves. */
export const profileSchema = object(
  {
    name: string,
    description: string,
    /**
     * `provider/model`, a model of the AI SDK (LanguageModelV4), or a list of both: if a model fails permanently, the next
     * one answers. Default: the model of the project.
     */
    model: profileModel,
    /** Settings of model calls: they win over the project's, and those of a call win over them. */
    modelSettings,
    output: schemaOrJson,
    /** The built-in tools for the model: none (false), those of a list, or all that the policy allows. */
    builtInTools,
    /** Hooks that may change or refuse calls of models and tools. The hooks of the project run first. */
    hooks,
    /** The backend that decides the turns, by name or as an object; default: the project's, else `typed`. */
    backend,
    instructions: string,
    tools,
    commands,
    skills: list(skillSchema, "a list of skills"),
    roles: list(roleSchema, "a list of roles"),
    thinkingLevel: name(thinkingLevels),
    sandbox: live<SandboxFactory>(
      "a sandbox, such as local()",
      (value) => isRecord(value) && typeof value.name === "string" && typeof value.open === "function",
    ),
    /** Working folder inside the sandbox. */
    cwd: string,
    store: live<SessionStore>("a session store", (value) => isRecord(value) && "append" in value),
    compaction: compactionSettings,
    budget,
    /** Attempts to repair a typed output; default 3. */
    typedRetries: integer(0),
    /** Milliseconds without any part of an answer before a call of the model is given up; default 120,000. */
    modelIdleTimeoutMs: integer(1),
    /** How deep tasks may start tasks; default 8. */
    maxTaskDepth: integer(0),
    /** Adds the tool `run_code`: true, or the functions, classes and limits of its Python. Default false. */
    python: z.union([flag, pythonSchema], {
      error: expecting("true, false or an object such as { functions: { … } }"),
    }),
    /** Specs of the repository as tools; default true. */
    specs: flag,
    /** Tools of the MCP servers that the project's configuration names; default true. */
    mcp: flag,
    /** Guidelines that apply to a touched file are shown to the model; default true. */
    guidelines: flag,
    /** AGENTS.md and CLAUDE.md in the system prompt; default true. */
    projectInstructions: flag,
    /** Rules of the project that sessions are not shown: files (`AGENTS.md`) and sections (`AGENTS.md#money`). */
    omitRules: strings,
    onEvent: callback<EventListener>(),
    ...policyFields,
    /** Agents that `task` can start by name. */
    subagents: list(
      live<object>(
        () => "an object with a name",
        (value) => isRecord(value) && typeof value.name === "string",
      ),
    ),
  },
  {
    of: "field of a profile",
    otherNames: {
      prompt: "instructions",
      system: "instructions",
      systemPrompt: "instructions",
      thinking_level: "thinkingLevel",
      allow_write: "allowWrite",
      allow_shell: "allowShell",
      allowed_commands: "allowedCommands",
      triggers: "`export const triggers` beside the agent, in its file",
    },
  },
);

/** An agent as plain data. Make one with `defineAgentProfile`. */
export interface AgentProfile<Output = unknown>
  extends Omit<Fields<typeof profileSchema>, "output" | "subagents"> {
  /** The schema of answers to prompts without their own `result` schema, also over HTTP. */
  readonly output?: StandardSchemaV1<unknown, Output> | JsonSchema | undefined;
  /** Agents that `task` can start by name. */
  readonly subagents?: readonly AgentProfile[] | undefined;
}

/** Expands `python: true` and a missing `python` to a profile. */
export function pythonProfileOf(python: boolean | PythonProfile | undefined): PythonProfile {
  return typeof python === "object" ? python : {};
}

/** A reusable piece of work: `.agents/skills/**\/*.md` or `<name>/SKILL.md`. */
export interface Skill {
  readonly name: string;
  readonly description: string;
  readonly instructions: string;
  /** JSON Schema of `args`. */
  readonly inputSchema?: JsonSchema | undefined;
  /** JSON Schema of the result, if the caller passes none. */
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
