import type { AgentProfile } from "../../agents/agent-profile.ts";
import { suggest } from "../../base/suggest.ts";
import { thinkingLevels } from "../../protocol/thinking-level.ts";

type Check = readonly [expected: string, accepts: (value: unknown) => boolean];

const text: Check = ["a text", (value) => typeof value === "string"];
const flag: Check = ["true or false", (value) => typeof value === "boolean"];
const count: Check = ["a whole number from 0 up", (value) => Number.isInteger(value) && Number(value) >= 0];
const object: Check = ["an object", (value) => typeof value === "object" && value !== null];
const texts: Check = ["a list of texts", (value) => isList(value, (item) => typeof item === "string")];
const named: Check = ["a list of objects with a name", (value) => isList(value, hasName)];

const checks: { readonly [Field in keyof AgentProfile]-?: Check } = {
  name: text,
  description: text,
  model: text,
  instructions: text,
  tools: named,
  commands: named,
  skills: named,
  roles: named,
  subagents: named,
  thinkingLevel: [
    `one of ${thinkingLevels.join(", ")}`,
    (value) => thinkingLevels.some((level) => level === value),
  ],
  sandbox: [
    "a sandbox, such as local()",
    (value) => hasName(value) && "open" in Object(value) && typeof Object(value).open === "function",
  ],
  cwd: text,
  store: ["a session store", (value) => typeof value === "object" && value !== null && "append" in value],
  compaction: object,
  budget: object,
  typedRetries: count,
  maxTaskDepth: count,
  python: [
    "true, false or an object such as { functions: { … } }",
    (value) => typeof value === "boolean" || (typeof value === "object" && value !== null),
  ],
  specs: flag,
  mcp: flag,
  guidelines: flag,
  projectInstructions: flag,
  onEvent: ["a function", (value) => typeof value === "function"],
  allowWrite: flag,
  allowShell: flag,
  allowedCommands: texts,
  allowCompoundCommands: flag,
  allowProtectedPaths: texts,
  approvals: [
    'an object such as { tools: ["bash"] }',
    (value) => typeof value === "object" && value !== null && "tools" in value && texts[1](value.tools),
  ],
};

/**
 * What is wrong with what an agent's function gave; undefined for a profile. A field that is misspelled is
 * an error: `allowedCommand` would otherwise allow every command.
 */
export function faultOfProfile(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return "it gave no profile: return an object such as { instructions: … }";
  for (const [field, given] of Object.entries(value)) {
    const check = Object.hasOwn(checks, field) ? checks[field as keyof AgentProfile] : undefined;
    if (check === undefined) {
      const near = suggest(field, Object.keys(checks));
      return `\`${field}\` is no field of a profile${near === undefined ? "" : `; did you mean ${near}?`}`;
    }
    if (given !== undefined && !check[1](given)) return `\`${field}\` must be ${check[0]}`;
  }
  return undefined;
}

function isList(value: unknown, accepts: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(accepts);
}

function hasName(value: unknown): boolean {
  return typeof value === "object" && value !== null && "name" in value && typeof value.name === "string";
}
