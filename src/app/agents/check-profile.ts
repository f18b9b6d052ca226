import type { AgentProfile, AllowedCommand } from "../../agents/agent-profile.ts";
import type { ApprovalRules } from "../../agents/approvals/approval-rules.ts";
import {
  count,
  type FieldChecks,
  faultOfFields,
  flag,
  hasName,
  isObject,
  isTexts,
  named,
  oneOf,
  text,
  texts,
  tools,
} from "../../agents/check-fields.ts";
import { compactionFields } from "../../agents/compaction/compaction-settings.ts";
import { budgetFields } from "../../agents/turn/budget.ts";
import { faultOfDefinedName, shownName } from "../../base/name-fault.ts";
import { thinkingLevels } from "../../protocol/thinking-level.ts";
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
  model: text,
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
 * What is wrong with what an agent's function gave; undefined for a profile. A field that is misspelled is
 * an error: `allowedCommand` would otherwise allow every command.
 */
export function faultOfProfile(value: unknown, above = ""): string | undefined {
  if (!isObject(value) || Array.isArray(value))
    return "it gave no profile: return an object such as { instructions: … }";
  const fault = faultOfFields(value, { of: "field of a profile", fields: checks }, above);
  if (fault !== undefined) return fault;
  const unnamed = faultOfNames(value, above);
  if (unnamed !== undefined || !("subagents" in value) || !Array.isArray(value.subagents)) return unnamed;
  if (above.length > maxPathLength) return `\`${above}\` is an agent below itself`;
  for (const [index, subagent] of value.subagents.entries()) {
    const below = faultOfProfile(subagent, `${above}subagents[${index}].`);
    if (below !== undefined) return below;
  }
  return undefined;
}

/** Of two with one name, one would be gone without a word. */
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
