import { KitError } from "../../base/kit-error.ts";
import { toSentence } from "../../base/to-sentence.ts";
import { thinkingLevels } from "../../protocol/enums.ts";
import type { PythonRunOptions } from "../../python/contract.ts";
import {
  backend,
  count,
  type FieldCheck,
  type FieldChecks,
  faultOfFields,
  hasName,
  isObject,
  type KnownFields,
  named,
  oneOf,
  text,
  texts,
  tools,
} from "../define/check-fields.ts";
import { budgetFields } from "../define/limits.ts";
import { modelSettings, profileModel } from "../define/model-settings.ts";
import type { PromptOptions } from "./prompt-options.ts";
import type { CompactOptions } from "./run-compact.ts";
import type { ShellOptions } from "./run-shell.ts";
import type { SkillOptions } from "./run-skill.ts";
import type { TaskOptions } from "./run-task.ts";

const signal: FieldCheck = ["an AbortSignal", (value) => isObject(value) && "aborted" in value];
const table: FieldCheck = ["an object", isObject];

const ofPrompt: FieldChecks<PromptOptions> = {
  // A schema may be a function: arktype's are.
  result: ["a schema", (value) => isObject(value) || typeof value === "function"],
  role: ["a role or the name of one", (value) => typeof value === "string" || hasName(value)],
  model: profileModel,
  modelSettings,
  backend,
  thinkingLevel: oneOf(thinkingLevels),
  tools,
  commands: named,
  images: ["a list of images", (value) => Array.isArray(value) && value.every(isObject)],
  files: ["a list of files", (value) => Array.isArray(value) && value.every(isObject)],
  secrets: texts,
  signal,
  budget: budgetFields,
  operationId: text,
  resumes: ["true or false", (value) => typeof value === "boolean"],
};
const ofSkill: FieldChecks<SkillOptions> = { ...ofPrompt, args: table };
const ofTask: FieldChecks<TaskOptions> = { ...ofPrompt, agent: text, cwd: text };
const ofShell: FieldChecks<ShellOptions> = {
  cwd: text,
  timeoutMs: count(1),
  secrets: texts,
  signal,
  operationId: text,
};
const ofCompact: FieldChecks<CompactOptions> = { focus: text, signal, operationId: text };
const ofPython: FieldChecks<PythonRunOptions> = {
  inputs: table,
  functions: table,
  // Monty checks its own limits.
  resourceLimits: table,
  signal,
  returns: oneOf(["value", "repr"]),
};

type OptionsKind = "prompt" | "skill" | "task" | "shell" | "compact" | "python";

const kinds: Readonly<Record<OptionsKind, KnownFields>> = {
  prompt: { of: "option of a prompt", fields: ofPrompt },
  skill: { of: "option of a skill", fields: ofSkill },
  task: { of: "option of a task", fields: ofTask },
  shell: { of: "option of a command", fields: ofShell },
  compact: { of: "option of a compaction", fields: ofCompact },
  python: { of: "option of a run of Python", fields: ofPython },
};

/** Throws `invalid_request` for options that a call does not have, and for values that they cannot have. */
export function checkOptions(kind: OptionsKind, options: object): void {
  const fault = isObject(options) ? faultOfFields(options, kinds[kind]) : "The options must be an object";
  if (fault !== undefined) throw new KitError({ code: "invalid_request", message: toSentence(fault) });
}

/** Returns the command. Throws `invalid_request` for a value that is not a text. */
export function checkedCommand(command: string): string {
  if (typeof command === "string") return command;
  throw new KitError({ code: "invalid_request", message: "A command must be a text." });
}

/**
 * Returns the text of a prompt. Throws `invalid_request` for an empty one, and for half of a surrogate pair: providers
 * would refuse it and every later prompt of the session.
 */
export function checkedText(prompt: string): string {
  if (typeof prompt !== "string" || prompt.trim() === "")
    throw new KitError({ code: "invalid_request", message: "A prompt needs a text." });
  if (!prompt.isWellFormed())
    throw new KitError({ code: "invalid_request", message: "A prompt's text must be well-formed Unicode." });
  return prompt;
}
