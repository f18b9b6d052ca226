import type { BackendMessage, BackendTurn } from "../../backends/contract.ts";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import type { AssistantMessage, ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import { textOf } from "../../protocol/read-records.ts";
import type { ToolLookup } from "../define/tool.ts";
import { type AsideNote, asideNote, type PastOperation } from "../log/past-operation.ts";
import type { SessionState } from "../log/session-state.ts";
import type { TurnLoop } from "../turn/loop-parts.ts";

/** A turn whose calls may not have run yet. */
export interface OpenTurn {
  readonly loop: TurnLoop;
  readonly turnId: string;
  readonly position: number;
  readonly calls: readonly ToolCallPart[];
  running: Promise<void> | undefined;
  results: readonly ToolResultPart[] | undefined;
}

/** An answer in the form that backends get. */
export class Turn implements BackendTurn {
  readonly id: string;
  readonly calls: BackendTurn["calls"];
  value: unknown;
  readonly #message: AssistantMessage;

  constructor(id: string, message: AssistantMessage, calls: BackendTurn["calls"]) {
    this.id = id;
    this.calls = calls;
    this.#message = message;
  }

  get text(): string {
    const text = textOf(this.#message);
    // Frameworks would repeat a turn with an empty answer without end.
    return text === "" && this.calls.length === 0 ? "\u200b" : text;
  }

  get usage(): BackendTurn["usage"] {
    return this.#message.usage;
  }
}

/** The id of a call: the log position of its answer and its index there, unique in the session. */
const callPattern = /^call_(\d+)_(\d+)$/;

export function callId(position: number, at: number): string {
  return `call_${position}_${at}`;
}

export function messageId(position: number): string {
  return `message_${position}`;
}

/** The calls of an answer that a backend gets: those of existing tools. */
export function toBackendCalls(
  calls: readonly ToolCallPart[],
  position: number,
  tools: ToolLookup,
): BackendTurn["calls"] {
  const backendCalls: BackendTurn["calls"][number][] = [];
  for (const [at, { tool, args }] of calls.entries()) {
    if (tools.get(tool) === undefined) continue;
    backendCalls.push({ id: callId(position, at), tool, args: isRecord(args) ? args : {} });
  }
  return backendCalls;
}

/** The log position and index that `callId` encoded; `NaN` for an id that `callId` did not create. */
export function locationOfCall(id: string): { readonly position: number; readonly at: number } {
  const [, position, at] = callPattern.exec(id) ?? [];
  return { position: Number(position), at: Number(at) };
}

/** The history in the form that backends get, with unique call ids: those of providers may repeat. */
export function toBackendMessages({
  messages,
  positions,
}: Pick<SessionState, "messages" | "positions">): readonly BackendMessage[] {
  let answerPosition = 0;
  return messages.map((message, index): BackendMessage => {
    const position = positions[index] ?? 0;
    const id = messageId(position);
    if (message.role === "user") return { ...message, id };
    if (message.role === "assistant") answerPosition = position;
    let at = 0;
    const content = message.content.map((part) => {
      if (part.type !== "tool_call" && part.type !== "tool_result") return part;
      const identified = { ...part, tool_call_id: callId(answerPosition, at) };
      at += 1;
      return identified;
    });
    return { ...message, content, id } as BackendMessage;
  });
}

export function unknownCall(id: string): KitError {
  return new KitError({ code: "invalid_request", message: `No turn of this operation has a call "${id}".` });
}

export function operationEnded(): KitError {
  return new KitError({ code: "invalid_request", message: "The operation has ended." });
}

/** The note with the fingerprint of the request of the answer before it, unless that was a plain next turn. */
export const requestNote = "backend_request";

/** An answer of the model that the log already has. */
export interface PastTurn {
  readonly message: AssistantMessage;
  readonly position: number;
}

interface AskedTurn extends PastTurn {
  readonly request: string | undefined;
}

/** Turns that a backend had not received when its operation was interrupted: they are replayed in place of new ones. */
export class PastTurns {
  readonly #notReplayed: AskedTurn[] = [];

  /** `after`: the log position of the last state that the backend saved. */
  constructor({ messages, positions, notes }: PastOperation, after: number) {
    const requests = new Map<number, string>();
    for (const { name, value, position } of notes) {
      if (name === requestNote) requests.set(position - 1, String(value));
      if (name !== asideNote || position <= after) continue;
      const { message, request } = value as AsideNote;
      this.#notReplayed.push({ message, position, request });
    }
    messages.forEach((message, index) => {
      const position = positions[index] ?? 0;
      if (message.role !== "assistant" || position <= after) return;
      // The backend never received an answer that broke off.
      if (message.finish_reason === "aborted" || message.finish_reason === "error") return;
      this.#notReplayed.push({ message, position, request: requests.get(position) });
    });
    this.#notReplayed.sort((one, other) => one.position - other.position);
  }

  /** Takes the next answer to a request with this fingerprint. */
  next(request: string | undefined): PastTurn | undefined {
    return this.#take((turn) => turn.message.source === undefined && turn.request === request);
  }

  /** Takes the next call that the backend made itself, if tool and arguments match. */
  call({ tool, args }: Pick<ToolCallPart, "tool" | "args">): PastTurn | undefined {
    const serialized = JSON.stringify([tool, args]);
    return this.#take(
      ({ message: { source, content } }) =>
        source === "backend" &&
        content.some(
          (part) => part.type === "tool_call" && JSON.stringify([part.tool, part.args]) === serialized,
        ),
    );
  }

  #take(isWanted: (turn: AskedTurn) => boolean): PastTurn | undefined {
    const at = this.#notReplayed.findIndex(isWanted);
    return at === -1 ? undefined : this.#notReplayed.splice(at, 1)[0];
  }
}

/** The logged result of a call, by the position of its answer and its index there. */
export function storedResult(
  { state, past }: { readonly state: SessionState; readonly past: PastOperation | undefined },
  location: { readonly position: number; readonly at: number },
): ToolResultPart | undefined {
  for (const { messages, positions } of past === undefined ? [state] : [state, past]) {
    const index = positions.lastIndexOf(location.position);
    const next = index === -1 ? undefined : messages[index + 1];
    if (next?.role === "tool") return next.content[location.at];
  }
  return undefined;
}

/** Serializes work that appends to a history, and counts work that runs outside the lane. */
export class Lane {
  #besides = 0;
  #busy = false;
  readonly #waiting: (() => void)[] = [];

  /** Runs work once no other is in the lane. */
  async run<Value>(work: () => Promise<Value>): Promise<Value> {
    while (this.#busy) await this.#change();
    this.#busy = true;
    try {
      return await work();
    } finally {
      this.#busy = false;
      this.#wake();
    }
  }

  /** Runs work at once, outside the lane. */
  async beside<Value>(work: () => Promise<Value>): Promise<Value> {
    this.#besides += 1;
    try {
      return await work();
    } finally {
      this.#besides -= 1;
      this.#wake();
    }
  }

  /** Resolves when no work runs inside or outside the lane. */
  async quiet(): Promise<void> {
    while (this.#busy || this.#besides > 0) await this.#change();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** Marks a rejection as handled: a framework that has ended does not await it, and the process must not end. */
export function handled<Value>(promise: Promise<Value>): Promise<Value> {
  promise.catch(() => undefined);
  return promise;
}
