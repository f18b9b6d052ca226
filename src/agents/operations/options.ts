import type { StandardSchemaV1 } from "@standard-schema/spec";
import { toSentence } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import {
  type Fields,
  faultOf,
  flag,
  integer,
  list,
  live,
  name,
  object,
  objectOf,
  string,
} from "../../base/settings.ts";
import { maxModelAttempts, thinkingLevels } from "../../protocol/enums.ts";
import type { Message, Usage } from "../../protocol/message.ts";
import type { CallerTool, ForkPlace, PastMessage, PromptToolChoice } from "../../protocol/prompt.ts";
import type { PythonRunOptions } from "../../python/contract.ts";
import { backend, commands, type Role, schemaOrJson, tools } from "../define/agent-profile.ts";
import { budget, isToolChoice, modelSettings, profileModel } from "../define/profile-settings.ts";
import type { OutputSchema } from "../output/typed-output.ts";
import type { FileInput, ImageInput } from "../prompt/input-files.ts";

const dictionary = live<Readonly<Record<string, unknown>>>("an object", isRecord);
const signal = live<AbortSignal>("an AbortSignal", (value) => isRecord(value) && "aborted" in value);
const secrets = list(string, "a list of texts");

/** Whether a value is a message of a history that a caller gives. */
export function isPastMessage(value: unknown): value is PastMessage {
  if (!isRecord(value)) return false;
  const { role, content } = value;
  return (role === "user" || role === "assistant") && typeof content === "string";
}

/** Whether a value names a message of a session. */
export function isForkPlace(value: unknown): value is ForkPlace {
  if (!isRecord(value)) return false;
  const { session = "default", before } = value;
  return typeof session === "string" && typeof before === "string" && before !== "";
}

const promptFields = {
  result: schemaOrJson,
  /** A role of the agent or the project by name, or a role. */
  role: live<string | Role>(
    "a role or the name of one",
    (value) => typeof value === "string" || (isRecord(value) && typeof value.name === "string"),
  ),
  /** `provider/model`, a model of the AI SDK, or a list, for this call only. */
  model: profileModel,
  /** Laid over the agent's, for this call only. */
  modelSettings,
  /** The backend that decides the turns of this call, by name or as an object. Default: the agent's. */
  backend,
  thinkingLevel: name(thinkingLevels),
  /**
   * How often the model is called for one turn, until its provider answers: 1 for no retry. The call then fails, and an engine does
   * not try it again. Default: 4, and an engine tries a stored input again later.
   */
  attempts: integer(1, maxModelAttempts),
  /** Added to the agent's, for this call only. */
  tools,
  commands,
  /** Tools that the caller runs: a call waits until `app.approvals` decides it with a `result`. For this call only. */
  callerTools: list(live<CallerTool>("a tool of the caller", isRecord), "a list of tools"),
  /**
   * The caller's choice of tools, in the place of `modelSettings.toolChoice`. `"required"` forces one of `callerTools`, if there are
   * some. The agent's `toolChoice: "none"` stays: a choice that forces a call then throws `invalid_request`.
   */
  callerToolChoice: live<PromptToolChoice>('auto, none, required or { tool: "<name>" }', isToolChoice),
  images: list(live<ImageInput>("an image", isRecord), "a list of images"),
  /** Documents and recordings, such as a PDF; a type that the model does not read fails with `invalid_request`. */
  files: list(live<FileInput>("a file", isRecord), "a list of files"),
  /**
   * The messages of a conversation elsewhere, oldest first: the history of a new session begins with them. Throws `conflict` in
   * a session that has begun.
   */
  history: list(live<PastMessage>("a message", isPastMessage), "a list of messages"),
  /** The client's own id of the message; the first event of the operation and the history return it. */
  clientId: string,
  /**
   * The session goes on before this message of the user: its operation's id, or its `clientId`. What was said since stays in the
   * log, and the model no longer reads it. Throws `not_found` for a message that the session does not have.
   */
  rewindBefore: string,
  /**
   * For a new session: it begins with what another session of the instance had before one of its messages, named as in
   * `rewindBefore`. Throws `not_found` for a message that the session does not have, `conflict` in a session that has begun.
   */
  fork: live<ForkPlace>("an object with `before` and `session`", isForkPlace),
  /** Names in `env` whose values the sandbox's commands get during this call, and no other. */
  secrets,
  signal,
  budget,
  /**
   * Rules of the project that the session is not shown from its first turn on: files (`AGENTS.md`) and sections
   * (`AGENTS.md#money`). Throws `invalid_request` for an unknown rule, and in a session that has begun with it.
   */
  omitRules: list(string, "a list of texts"),
  /**
   * Identifies the operation, so that the same call after a crash resumes it: 1 to 128 letters, digits and
   * `_ - . :`. Logged work is not repeated, the answer included; the model learns of a tool call that may have
   * run, unless the tool is `idempotent`. Throws `conflict` if other operations came after it. Default: a new id.
   */
  operationId: string,
  /** False for a new `operationId`: the log is not searched for earlier work. Default true. */
  resumes: flag,
};
const prompt = object(promptFields, { of: "option of a prompt" });
export interface PromptOptions<Result = unknown> extends Omit<Fields<typeof prompt>, "result"> {
  /** The answer is validated against it and comes back as `result`. */
  readonly result?: StandardSchemaV1<unknown, Result> | OutputSchema<Result> | undefined;
}

const skill = object(
  {
    ...promptFields,
    /** Validated against the skill's `input_schema`, where it has one. */
    args: dictionary,
  },
  { of: "option of a skill" },
);
export interface SkillOptions<Result = unknown>
  extends PromptOptions<Result>,
    Pick<Fields<typeof skill>, "args"> {}

const task = object(
  {
    ...promptFields,
    /** A subagent of the profile by name; default: the agent itself, without its history. */
    agent: string,
    /** Working folder inside the shared sandbox. */
    cwd: string,
  },
  { of: "option of a task" },
);
export interface TaskOptions<Result = unknown>
  extends PromptOptions<Result>,
    Pick<Fields<typeof task>, "agent" | "cwd"> {}

const shell = object(
  {
    cwd: string,
    timeoutMs: integer(1),
    /** Names in `env` whose values this command gets. */
    secrets,
    signal,
    /**
     * Repeating the call with the same id after a crash returns the command's result and never runs it twice:
     * throws `conflict` if the process ended while it ran. See `PromptOptions`.
     */
    operationId: string,
  },
  { of: "option of a command" },
);
export interface ShellOptions extends Fields<typeof shell> {}

const compact = object(
  {
    /** Topic that the summary should cover. */
    focus: string,
    signal,
    /** Repeating the call with the same id after a crash does not shorten the history twice. See `PromptOptions`. */
    operationId: string,
  },
  { of: "option of a compaction" },
);
export interface CompactOptions extends Fields<typeof compact> {}

const python = objectOf<PythonRunOptions>()(
  {
    inputs: dictionary,
    functions: dictionary,
    // Monty checks its own limits.
    resourceLimits: dictionary,
    signal,
    returns: name(["value", "repr"]),
  },
  { of: "option of a run of Python", needs: [] },
);

const schemas = { prompt, skill, task, shell, compact, python };

/** Throws `invalid_request` for options that a call does not have, and for values that they cannot have. */
export function checkOptions(call: keyof typeof schemas, options: object): void {
  // No option is required, and most calls have none.
  if (isRecord(options) && Object.keys(options).length === 0) return;
  const fault = isRecord(options) ? faultOf(schemas[call], options) : "The options must be an object";
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

const idPattern = /^[\w.:-]{1,128}$/;

/** Returns the caller's id of an operation. Throws `invalid_request` for an invalid one. */
export function checkedOperationId(id: string): string {
  if (typeof id === "string" && idPattern.test(id)) return id;
  throw new KitError({
    code: "invalid_request",
    message: "An operation's id has 1 to 128 letters, digits, and the characters _ - . and :",
  });
}

export interface PromptResult<Result = unknown> {
  readonly text: string;
  /** The validated result, if the options have a `result` schema. */
  readonly result: Result;
  readonly usage: Usage;
  readonly model: { readonly id: string };
  readonly metadata: {
    readonly operation_id: string;
    readonly turns: number;
    readonly duration_ms: number;
    readonly finish_reason: string;
  };
  /** The messages of this operation, oldest first. */
  readonly messages: readonly Message[];
}
