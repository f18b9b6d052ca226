import type { StandardSchemaV1 } from "@standard-schema/spec";
import { toSentence, unknownKey } from "../../base/error-text.ts";
import { isRecord } from "../../base/record.ts";
import { isStandardSchema } from "../../base/standard-schema.ts";
import { faultOfSchema } from "../../json-schema/schema-fault.ts";
import type { McpOrigin } from "../../protocol/event.ts";
import type { ImagePart, TextPart } from "../../protocol/message.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { ApplicationCalls } from "../../protocol/run-calls.ts";
import type { TraceContext } from "../../protocol/tracing.ts";
import type { AskPerson } from "./question.ts";

/** A JSON Schema, as providers take it. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Validates a value against a JSON Schema. Returns the issues; none for a valid value. */
export type ValidateJson = (
  schema: JsonSchema,
  value: unknown,
) => readonly string[] | Promise<readonly string[]>;

/** The context of a tool call: its ids, its session, and calls into the application. */
export interface ToolContext extends ToolPlace {
  readonly toolCallId: string;
  /** The model's turn that requested the call. */
  readonly turnId?: string | undefined;
  readonly operationId: string;
  /** Fires when the call is aborted or its time is over; pass it to everything that waits. */
  readonly signal: AbortSignal;
  /**
   * The same for every attempt at this call, also after a crash: give it to services that accept an
   * idempotency key.
   */
  readonly idempotencyKey: string;
  /** Whether a person approved this very call. */
  readonly approved?: boolean;
  /**
   * Asks a person a question, whose answer has the form of a schema. Throws `unavailable` for a call without an application.
   *
   * @example
   * import { defineTool } from "kit";
   * import { z } from "zod";
   *
   * export const book = defineTool({
   *   name: "book",
   *   description: "Books a table.",
   *   input: z.object({ place: z.string() }),
   *   async execute({ place }, { ask }) {
   *     const answer = await ask({ message: `For how many at ${place}?`, schema: z.object({ guests: z.int().min(1) }) });
   *     return answer.action === "accept" ? `A table for ${answer.value.guests}.` : "No table was booked.";
   *   },
   * });
   */
  readonly ask: AskPerson;
  /**
   * The call's trace context, if tracing is on: pass it to services that the tool calls, for instance as request
   * headers.
   */
  readonly trace?: TraceContext | undefined;
}

/** Where a tool works: set in each call that a model makes. */
export interface ToolPlace {
  /** The agent, its instance and its session: the key of the conversation. */
  readonly agent: string;
  readonly instance: string;
  readonly session: string;
  /** For whom the work is done, where callers are known. */
  readonly principal: string | undefined;
  /** Rules of the project that the session leaves out: a tool that shows rules leaves them out, too. Absent for none. */
  readonly rulesLeftOut?: ReadonlySet<string> | undefined;
  /** The workflow run that the agent belongs to. */
  readonly runId: string | undefined;
  /** Configuration and secrets of the application. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Gives an input to a session of an agent, without waiting for the answer; once, however often the call is repeated. */
  readonly dispatch: ApplicationCalls["dispatch"];
  /**
   * Starts a run of a workflow, once, however often the call is repeated. In a run's agent, it is cancelled with that run.
   * While the tool awaits the `result`, its operation leaves its slot to other work. The wait ends with the call.
   */
  readonly startRun: ApplicationCalls["startRun"];
  readonly getRun: ApplicationCalls["getRun"];
  /** Reports progress: JSON, in a `tool_progress` event. The model does not see it. */
  progress(value: unknown): void;
}

/**
 * The result of a tool: a text, parts, `isError` with a text that tells the model what went wrong, or any JSON value, which
 * the model reads as JSON.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a tool without a result returns nothing.
export type ToolReturn = ToolOutput | object | number | boolean | null | undefined | void;

/** A plain text, parts, or `isError` with a text that tells the model what failed. */
export type ToolOutput =
  | string
  | {
      readonly content: string | readonly (TextPart | ImagePart)[];
      readonly isError?: boolean;
      /** It is unknown whether the call took effect: a connection was lost, a time limit passed. */
      readonly outcome?: "unknown";
      /** Rules, specs, memories and the like that the content shows the model: for the receipt of its turns. */
      readonly shows?: readonly ReceiptItem[];
    };

/** A tool the model can call. Make one with `defineTool`. */
export interface ToolDefinition<Input = unknown> {
  readonly name: string;
  readonly description: string;
  /** Standard Schema (zod, valibot, …) or JSON Schema of the arguments: an object. */
  readonly input: StandardSchemaV1<unknown, Input> | JsonSchema;
  /**
   * Does the work. A generator's values are `tool_progress` events; what it returns, else its last value, is the result.
   */
  execute(
    input: Input,
    context: ToolContext,
  ): ToolReturn | Promise<ToolReturn> | AsyncGenerator<unknown, ToolReturn>;
  /** Milliseconds before the call is stopped; default 120,000, at most 24 days. */
  readonly timeoutMs?: number | undefined;
  /** Characters of result the model sees; the rest is cut and marked. Default 50,000. */
  readonly maxResultChars?: number | undefined;
  /** Never runs in parallel with another call of the same turn; for tools that change what others read. */
  readonly exclusive?: boolean | undefined;
  /** The workspace paths a call touches: their guidelines are shown to the model. */
  touches?(input: Input): readonly string[];
  /** May run again when a crash left its outcome unknown. */
  readonly idempotent?: boolean | undefined;
  /**
   * Calls wait for approval: all of them, or those for which the function returns true. The function gets the
   * validated arguments; if it throws, the call fails and does not run.
   */
  readonly needsApproval?:
    | (boolean | ((input: Input, context: ToolContext) => boolean | Promise<boolean>))
    | undefined;
  /**
   * Whether an approver may change the arguments before the call runs: they are checked as the model's are, by the schema, the
   * hooks and the tool itself, and the model reads what was changed. Default false.
   */
  readonly editableArguments?: boolean | undefined;
  /** The tool that a call forwards to; approval rules match both names. */
  standsFor?(input: Input): string | undefined;
  /** The MCP server that executes a call; the call's `tool_start` event names it. */
  servedBy?(args: unknown): McpOrigin | undefined;
}

/** A tool of any input type, as lists of tools hold them. */
export type AnyTool = Omit<ToolDefinition<never>, "input"> & {
  readonly input: StandardSchemaV1 | JsonSchema;
};

/** The name of the requirements for a tool definition. */
export type ToolDef<Input = unknown> = ToolDefinition<Input>;

/** Only field names are checked here. Creating the agent checks the values, and loads the schema library for that. */
const fields = {
  name: true,
  description: true,
  input: true,
  execute: true,
  timeoutMs: true,
  maxResultChars: true,
  exclusive: true,
  touches: true,
  idempotent: true,
  needsApproval: true,
  editableArguments: true,
  standsFor: true,
  servedBy: true,
} as const satisfies Record<keyof ToolDefinition, true>;

export const toolNaming = {
  of: "field of a tool",
  otherNames: {
    parameters: "input",
    inputSchema: "input",
    input_schema: "input",
    schema: "input",
    args: "input",
    handler: "execute",
    run: "execute",
    func: "execute",
  },
} as const;

const toolName = /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/;

/**
 * Defines a tool. Throws `TypeError` for an unknown field, and for a name that providers refuse: letters, digits,
 * `_` and `-`, starting with a letter, at most 64.
 *
 * @example
 * ```ts
 * import { defineTool } from "kit";
 * import { z } from "zod";
 *
 * export const add = defineTool({
 *   name: "add",
 *   description: "Adds two numbers.",
 *   input: z.object({ a: z.number(), b: z.number() }),
 *   execute: ({ a, b }) => String(a + b),
 * });
 * ```
 */
export function defineTool<Input>(definition: ToolDefinition<Input>): ToolDefinition<Input> {
  const missing =
    definition.input === undefined ? "`input` is missing: the schema of the tool's arguments" : undefined;
  const fault = unknownKey(definition, { ...toolNaming, keys: Object.keys(fields) }) ?? missing;
  if (fault !== undefined) throw new TypeError(toSentence(`The tool "${definition.name}": ${fault}`));
  const schemaFault = faultOfToolInput(definition.input);
  if (schemaFault !== undefined)
    throw new TypeError(toSentence(`The tool "${definition.name}": \`input\` ${schemaFault}`));
  if (!toolName.test(definition.name)) {
    throw new TypeError(
      `"${definition.name}" cannot be a tool's name: use letters, digits, _ and -, start with a letter, at most 64.`,
    );
  }
  return definition;
}

/** Describes why a value is not the schema of a tool's arguments, as the rest of a sentence. */
export function faultOfToolInput(schema: unknown): string | undefined {
  const fault = faultOfSchema(schema)?.replace("must be a schema:", "must be a schema of an object:");
  if (fault !== undefined || isStandardSchema(schema) || !isRecord(schema)) return fault;
  const { type = "object" } = schema;
  return type === "object"
    ? undefined
    : `must be the schema of an object, the tool's arguments: its \`type\` is ${JSON.stringify(type)}`;
}

/** Tools by name. */
export interface ToolLookup {
  get(name: string): ToolDefinition | undefined;
  names(): readonly string[];
  /** Explains, in sentences, why a tool that another system knows is missing. */
  whyMissing?(name: string): string | undefined;
}

/** The action of a command: a line that runs in the sandbox, or a function. */
export type CommandAction =
  | string
  | ((args: unknown, context: ToolContext) => ToolReturn | Promise<ToolReturn>);

/** A named action that an agent's model can run. */
export interface KitCommand {
  readonly name: string;
  readonly action: CommandAction;
  readonly description?: string;
  /** Arguments of a function command; a shell command has none. */
  readonly input?: StandardSchemaV1 | JsonSchema;
  readonly timeoutMs?: number;
  /** Whether a shell command may change files of the workspace; default: what the agent may. */
  readonly allowWrite?: boolean;
  /** Hosts that a shell command may reach; default: those of the agent. */
  readonly allowNetwork?: readonly string[];
  /** Calls wait for approval: all of them, or those for which the function returns true. */
  readonly needsApproval?: boolean | ((args: unknown, context: ToolContext) => boolean | Promise<boolean>);
}

/**
 * Defines a command. A shell command needs no `allowShell`: the model chooses when it runs, not its text.
 *
 * @example
 * ```ts
 * import { createAgent, defineCommand } from "kit";
 *
 * const test = defineCommand("test", "npm test", { description: "Runs the unit tests." });
 * export default createAgent({ commands: [test] });
 * ```
 */
export function defineCommand(
  name: string,
  action: CommandAction,
  options: Omit<KitCommand, "name" | "action"> = {},
): KitCommand {
  return { name, action, ...options };
}
