import type { LanguageModelV4FunctionTool, LanguageModelV4Message } from "@ai-sdk/provider";
import type { OwnTool, TurnRequest } from "../../backends/contract.ts";
import { isoTime } from "../../base/clock.ts";
import { suggest } from "../../base/error-text.ts";
import { digestOf } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { AssistantMessage } from "../../protocol/message.ts";
import { textOf } from "../../protocol/read-records.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { JsonSchema, ToolDefinition, ToolLookup } from "../define/tool.ts";
import type { PastOperation } from "../log/past-operation.ts";
import { promptOf } from "../log/session-state.ts";
import { toPromptMessage } from "../log/to-prompt.ts";
import { findJson, resultRequest } from "../output/typed-output.ts";
import { TurnRecords } from "../prompt/turn-records.ts";
import { maskValue } from "../secrets.ts";
import { type TurnLoop, toolRunOf } from "../turn/loop-parts.ts";
import { beginPart } from "./backend-steps.ts";

/** Adapts the loop to one request of a backend. Throws `invalid_request` for a request that no turn can fulfil. */
export function toRequestLoop(loop: TurnLoop, request: TurnRequest): TurnLoop {
  const { mask } = loop.operation;
  const { tools, toolRun } = offered(loop, request);
  const { schema } = request;
  const native = schema === undefined ? undefined : loop.session.nativeOutput(schema, tools.length > 0);
  const { current, records } = loop.prompt;
  const baseSystem = request.system ?? current.text;
  const fullSystem =
    schema === undefined || native !== undefined ? baseSystem : `${baseSystem}\n\n${resultRequest(schema)}`;
  const system = mask === undefined ? fullSystem : mask(fullSystem);
  const requestLoop: TurnLoop = {
    ...loop,
    prompt: {
      current:
        system === current.text
          ? current
          : { ...current, text: system, digests: { ...current.digests, backend: digestOf(system) } },
      // An aside turn is not part of the session: its receipt must not be the base of later ones.
      records: request.aside === true ? new TurnRecords() : records,
    },
    hidesDeltas: request.aside === true,
    tools,
    toolRun,
    // A turn with a schema of its own answers the backend, not the caller.
    partialResult: schema === undefined ? loop.partialResult : undefined,
    ...(native === undefined ? undefined : { settings: { ...loop.settings, ...native } }),
  };
  if (request.messages === undefined && request.aside !== true) return requestLoop;
  const sent =
    request.messages === undefined ? settledPrompt(requestLoop) : sentPrompt(requestLoop, request.messages);
  return { ...requestLoop, sent };
}

/** Identifies a request across restarts, so that it is not sent twice. Undefined for a plain next turn. */
export function fingerprintOf(request: TurnRequest | undefined): string | undefined {
  if (request === undefined || Object.keys(request).length === 0) return undefined;
  return digestOf(
    JSON.stringify(request, (key, value: unknown) =>
      key === "timestamp" || key === "id" ? undefined : value,
    ),
  );
}

/** The loop after calls that kit has answered itself: these calls are added to the messages that the backend sent. */
export function withAnswered(loop: TurnLoop, message: AssistantMessage): TurnLoop {
  const { messages } = loop.operation.state;
  const results = messages[messages.indexOf(message) + 1];
  if (loop.sent === undefined || results?.role !== "tool") return loop;
  return { ...loop, sent: [...loop.sent, toPromptMessage(message), toPromptMessage(results)] };
}

/** The first JSON value in an answer that matches the schema; undefined if none does. */
export async function valueIn(
  message: AssistantMessage,
  schema: JsonSchema,
  loop: TurnLoop,
): Promise<unknown> {
  for (const candidate of findJson(textOf(message))) {
    const issues = await toolRunOf(loop).validateJson(schema, candidate);
    if (issues.length === 0) return candidate;
  }
  return undefined;
}

function sentPrompt(
  loop: TurnLoop,
  messages: NonNullable<TurnRequest["messages"]>,
): LanguageModelV4Message[] {
  const { mask } = loop.operation;
  const sent = (mask === undefined ? messages : maskValue(messages, mask)).map(toPromptMessage);
  return [
    { role: "system", content: loop.prompt.current.text },
    ...sent.filter(({ content }) => content.length > 0),
  ];
}

/** The history, without a last answer whose calls have no results yet. */
function settledPrompt({ operation: { state }, prompt: { current } }: TurnLoop): LanguageModelV4Message[] {
  const prompt = [...promptOf(state, current.text)];
  if (state.messages.at(-1)?.content.some((part) => part.type === "tool_call")) prompt.pop();
  return prompt;
}

function offered(loop: TurnLoop, { tools, aside }: TurnRequest): Pick<TurnLoop, "tools" | "toolRun"> {
  if (aside === true) {
    if ((tools ?? []).length > 0) throw refused("A turn that is `aside` has no tools.");
    return { tools: [], toolRun: () => toolRunOf(loop) };
  }
  if (tools === undefined) return loop;
  const backendTools = new Map<string, ToolDefinition>();
  const schemas: LanguageModelV4FunctionTool[] = [];
  for (const tool of tools) {
    if (typeof tool === "string") schemas.push(namedTool(loop, tool));
    else {
      backendTools.set(tool.name, toDefinition(tool, loop));
      schemas.push({
        type: "function",
        name: tool.name,
        description: tool.description,
        inputSchema: tool.schema,
      });
    }
  }
  const names = schemas.map(({ name }) => name);
  const requestedNames = new Set(names);
  const lookup: ToolLookup = {
    get: (name) =>
      backendTools.get(name) ?? (requestedNames.has(name) ? toolRunOf(loop).tools.get(name) : undefined),
    names: () => names,
  };
  return { tools: schemas, toolRun: () => ({ ...toolRunOf(loop), tools: lookup }) };
}

function namedTool(loop: TurnLoop, name: string): LanguageModelV4FunctionTool {
  const schema = loop.tools.find((tool) => tool.name === name);
  if (schema !== undefined) return schema;
  const names = loop.tools.map((tool) => tool.name);
  const suggestion = suggest(name, names);
  throw refused(
    `The operation has no tool named "${name}"${suggestion === undefined ? "" : `; did you mean ${suggestion}?`}`,
  );
}

function toDefinition(tool: OwnTool, loop: TurnLoop): ToolDefinition {
  const { name, description, schema, run, handsTo } = tool;
  return {
    name,
    description,
    input: schema,
    async execute(input, call) {
      const args = input as Readonly<Record<string, unknown>>;
      const result = await run(args);
      const task_agent = typeof handsTo === "function" ? handsTo(args) : handsTo;
      if (task_agent !== undefined) await beginPart(loop, { task_agent, prompt: description }, call);
      return result;
    },
  };
}

function refused(message: string): KitError {
  return new KitError({ code: "invalid_request", message });
}

/** Names of the notes for a backend's saved state and for the end of a run. */
export const stateNote = "backend_state";
export const endNote = "backend_ended";

const maxNote = 1_048_576;
const maxNotes = 16 * maxNote;

interface StateNote {
  readonly backend: string;
  readonly run: number;
  readonly value: unknown;
}

/** A note entry of an operation, with secrets masked. */
export function noteEntry(
  { operation: { id: operation_id, mask }, clock }: Pick<TurnLoop, "operation" | "clock">,
  name: string,
  value: unknown,
): SessionEntry {
  const masked = mask === undefined ? value : maskValue(value, mask);
  return { version: 1, type: "note", name, value: masked, timestamp: isoTime(clock.now()), operation_id };
}

/** The notes that one run of a backend keeps in the log. */
export class BackendNotes {
  readonly #run: Pick<StateNote, "backend" | "run">;
  /** Characters of JSON saved so far. */
  #size = 0;

  constructor(run: Pick<StateNote, "backend" | "run">) {
    this.#run = run;
  }

  /** The run's notes, oldest first, and the log position of the last one. */
  read(past: PastOperation | undefined): { readonly saved: readonly unknown[]; readonly position: number } {
    const saved: unknown[] = [];
    let last = 0;
    for (const { name, value, position } of past?.notes ?? []) {
      const note = value as StateNote;
      if (name !== stateNote || note.backend !== this.#run.backend || note.run !== this.#run.run) continue;
      saved.push(note.value);
      this.#size += sizeOf(note.value);
      last = position;
    }
    return { saved, position: last };
  }

  /** Makes the note of a value. Throws `payload_too_large` beyond the limits of a note or a run. */
  toNote(value: unknown): StateNote {
    const size = sizeOf(value);
    this.#size += size;
    if (size > maxNote)
      throw tooLarge(this.#run.backend, `${size} characters in one note: it may have ${maxNote}`);
    if (this.#size > maxNotes)
      throw tooLarge(this.#run.backend, `${this.#size} characters in one run: it may have ${maxNotes}`);
    return { ...this.#run, value };
  }
}

/** The number of runs that have ended. */
export function endedRuns(past: PastOperation): number {
  return past.notes.filter(({ name }) => name === endNote).length;
}

function sizeOf(value: unknown): number {
  return (JSON.stringify(value) ?? "").length;
}

function tooLarge(backend: string, fault: string): KitError {
  return new KitError({
    code: "payload_too_large",
    message: `The backend "${backend}" keeps ${fault}.`,
    hint: "Keep large data in files of the sandbox, and only their names in the state.",
  });
}
