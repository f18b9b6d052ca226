import type { AgentProfile, AllowedCommand, PythonProfile, Role } from "../../agents/define/agent-profile.ts";
import type { ApprovalRules } from "../../agents/define/approval-rules.ts";
import {
  backend,
  count,
  type FieldCheck,
  type FieldChecks,
  faultOfFields,
  flag,
  hasName,
  isObject,
  isTexts,
  type KnownFields,
  modelChoice,
  named,
  oneOf,
  text,
  texts,
  tools,
} from "../../agents/define/check-fields.ts";
import type { KitCommand } from "../../agents/define/command.ts";
import { hooks } from "../../agents/define/hooks.ts";
import { budgetFields, compactionFields } from "../../agents/define/limits.ts";
import { builtInTools, modelSettings, profileModel } from "../../agents/define/model-settings.ts";
import type { Skill } from "../../agents/define/skill.ts";
import { faultOfTool } from "../../agents/define/tool.ts";
import { faultOfDefinedName, shownName } from "../../base/name-fault.ts";
import { thinkingLevels } from "../../protocol/enums.ts";
import type { PythonResourceLimits } from "../../python/contract.ts";
import { hostPatternForm, parseHostPattern } from "../../sandboxes/host/wall/host-pattern.ts";

const ofCommand: FieldChecks<Exclude<AllowedCommand, string>> = { command: text, unsafe: flag };

function isAllowedCommand(value: unknown): boolean {
  if (!isObject(value)) return typeof value === "string";
  return (
    "command" in value && faultOfFields(value, { of: "field of a command", fields: ofCommand }) === undefined
  );
}

const ofApprovals: FieldChecks<ApprovalRules> = { tools: texts, timeoutMs: count(1) };
const checks: FieldChecks<AgentProfile> = {
  name: text,
  description: text,
  model: profileModel,
  modelSettings,
  output: [
    "a schema: of zod, valibot, …, or JSON Schema",
    (value) => isObject(value) || typeof value === "function",
  ],
  builtInTools,
  hooks,
  backend,
  instructions: text,
  tools,
  commands: named,
  skills: named,
  roles: named,
  subagents: named,
  thinkingLevel: oneOf(thinkingLevels),
  sandbox: [
    "a sandbox, such as local()",
    (value) => hasName(value) && "open" in Object(value) && typeof Object(value).open === "function",
  ],
  cwd: text,
  store: ["a session store", (value) => isObject(value) && "append" in value],
  compaction: compactionFields,
  budget: budgetFields,
  typedRetries: count(0),
  modelIdleTimeoutMs: count(1),
  maxTaskDepth: count(0),
  python: [
    "true, false or an object such as { functions: { … } }",
    (value) => typeof value === "boolean" || isObject(value),
  ],
  specs: flag,
  mcp: flag,
  guidelines: flag,
  projectInstructions: flag,
  onEvent: ["a function", (value) => typeof value === "function"],
  allowWrite: flag,
  allowShell: flag,
  allowedCommands: [
    'a list of texts, or of objects such as { command: "make", unsafe: true }',
    (value) => Array.isArray(value) && value.every(isAllowedCommand),
  ],
  allowCompoundCommands: flag,
  allowProtectedPaths: texts,
  allowNetwork: [
    `a list of hosts: ${hostPatternForm}`,
    (value) => isTexts(value) && value.every((host) => parseHostPattern(host) !== undefined),
  ],
  approvals: [
    'an object such as { tools: ["bash"], timeoutMs: 60000 }',
    (value) =>
      isObject(value) &&
      "tools" in value &&
      isTexts(value.tools) &&
      faultOfFields(value, { of: "field of approvals", fields: ofApprovals }) === undefined,
  ],
};

/**
 * Describes a fault in the return value of an agent's function; undefined for a profile. A misspelled field is
 * an error: `allowedCommand` would otherwise allow every command.
 */
export function faultOfProfile(value: unknown, above = ""): string | undefined {
  if (!isObject(value) || Array.isArray(value))
    return "it gave no profile: return an object such as { instructions: … }";
  const fault = faultOfFields(value, { of: "field of a profile", fields: checks, otherNames }, above);
  if (fault !== undefined) return fault;
  const python = faultOfPython(Reflect.get(value, "python"), above);
  if (python !== undefined) return python;
  const within = faultOfItems(value, above);
  if (within !== undefined) return within;
  const unnamed = faultOfNames(value, above);
  if (unnamed !== undefined || !("subagents" in value) || !Array.isArray(value.subagents)) return unnamed;
  if (above.length > maxPathLength) return `\`${above}\` is an agent below itself`;
  for (const [index, subagent] of value.subagents.entries()) {
    const below = faultOfProfile(subagent, `${above}subagents[${index}].`);
    if (below !== undefined) return below;
  }
  return undefined;
}

const schema: FieldCheck = ["a schema", (value) => isObject(value) || typeof value === "function"];
const anyFunction = (value: unknown): boolean => typeof value === "function";
const commandFields: FieldChecks<KitCommand> = {
  name: text,
  action: ["a line or a function", (value) => typeof value === "string" || anyFunction(value)],
  description: text,
  input: schema,
  timeoutMs: count(1),
  allowWrite: flag,
  allowNetwork: texts,
  needsApproval: ["true, false or a function", (value) => typeof value === "boolean" || anyFunction(value)],
};
const skillFields: FieldChecks<Skill> = {
  name: text,
  description: text,
  instructions: text,
  inputSchema: schema,
  outputSchema: schema,
  folder: text,
  file: text,
};
const roleFields: FieldChecks<Role> = {
  name: text,
  description: text,
  instructions: text,
  model: modelChoice,
  thinkingLevel: oneOf(thinkingLevels),
  file: text,
};
const itemChecks: Readonly<Record<string, KnownFields>> = {
  commands: {
    of: "field of a command",
    fields: commandFields,
    otherNames: { command: "action", run: "action" },
  },
  skills: {
    of: "field of a skill",
    fields: skillFields,
    otherNames: { input_schema: "inputSchema", output_schema: "outputSchema", content: "instructions" },
  },
  roles: { of: "field of a role", fields: roleFields, otherNames: { thinking_level: "thinkingLevel" } },
};

/** The names that other tools, and files of kit's own, have for a field. */
const otherNames = {
  prompt: "instructions",
  system: "instructions",
  systemPrompt: "instructions",
  thinking_level: "thinkingLevel",
  allow_write: "allowWrite",
  allow_shell: "allowShell",
  allowed_commands: "allowedCommands",
  triggers: "`export const triggers` beside the agent, in its file",
};

const number: FieldCheck = ["a number", (value) => typeof value === "number" && !Number.isNaN(value)];
const limitFields: FieldChecks<PythonResourceLimits> = {
  maxAllocations: number,
  maxDurationSecs: number,
  maxMemory: number,
  maxRecursionDepth: number,
  gcInterval: number,
};
const pythonFields: FieldChecks<PythonProfile> = {
  functions: ["an object of functions, by name", (value) => isObject(value) && !Array.isArray(value)],
  dataclasses: ["a list of dataclasses", (value) => Array.isArray(value) && value.every(hasName)],
  resourceLimits: { of: "limit of Python", fields: limitFields },
};

function faultOfPython(python: unknown, above: string): string | undefined {
  if (!isObject(python)) return undefined;
  return faultOfFields(python, { of: "field of python", fields: pythonFields }, `${above}python.`);
}

/** Describes a fault of a tool, command, skill or role of a profile. */
function faultOfItems(profile: object, above: string): string | undefined {
  const { tools = [] } = profile as AgentProfile;
  for (const [index, tool] of tools.entries()) {
    const fault = faultOfTool(tool, `${above}tools[${index}].`);
    if (fault !== undefined) return fault;
  }
  for (const [field, known] of Object.entries(itemChecks)) {
    const items: readonly object[] = Reflect.get(profile, field) ?? [];
    for (const [index, item] of items.entries()) {
      const fault = faultOfFields(item, known, `${above}${field}[${index}].`);
      if (fault !== undefined) return fault;
    }
  }
  return undefined;
}

/** Refuses two items with one name: kit would silently drop one of them. */
function faultOfNames(profile: object, above: string): string | undefined {
  const { tools = [], commands = [], skills = [], roles = [], subagents = [] } = profile as AgentProfile;
  const lists = { tools: [...tools, ...commands], skills, roles, subagents };
  for (const [field, items] of Object.entries(lists)) {
    const seen = new Set<string>();
    for (const { name = "" } of items) {
      const fault = field === "tools" || field === "subagents" ? undefined : faultOfDefinedName(name);
      if (fault !== undefined) return `\`${above}${field}\` has the name ${shownName(name)}, which ${fault}`;
      if (seen.has(name)) return `\`${above}${field}\` has two of the name ${shownName(name)}`;
      seen.add(name);
    }
  }
  return undefined;
}

// More than tasks may be deep: such a profile goes round in a circle.
const maxPathLength = 64 * "subagents[0].".length;
