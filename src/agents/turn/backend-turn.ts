import type { BackendMessage, BackendTurn } from "../../backends/contract.ts";
import { KitError } from "../../base/kit-error.ts";
import type { AssistantMessage, ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import { textOf } from "../../protocol/message.ts";
import type { SessionState } from "../session/session-state.ts";
import type { ToolLookup } from "../tool.ts";
import type { TurnLoop } from "./turn-loop.ts";

/** A turn whose calls may still have to be run. */
export interface OpenTurn {
  readonly loop: TurnLoop;
  readonly turnId: string;
  readonly position: number;
  readonly calls: readonly ToolCallPart[];
  running: Promise<void> | undefined;
  results: readonly ToolResultPart[] | undefined;
}

/** An answer as a backend is given it. */
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
    // Of an answer that is nothing at all, frameworks ask again without end.
    return text === "" && this.calls.length === 0 ? "\u200b" : text;
  }

  get usage(): BackendTurn["usage"] {
    return this.#message.usage;
  }
}

/** The place of an answer in the log, and of a call in it, names it in this session for good. */
const callPattern = /^call_(\d+)_(\d+)$/;

export function callId(position: number, at: number): string {
  return `call_${position}_${at}`;
}

export function messageId(position: number): string {
  return `message_${position}`;
}

/** The calls of an answer that a backend is told of: those of tools that are there. */
export function toBackendCalls(
  calls: readonly ToolCallPart[],
  position: number,
  tools: ToolLookup,
): BackendTurn["calls"] {
  const known: BackendTurn["calls"][number][] = [];
  for (const [at, { tool, args }] of calls.entries()) {
    if (tools.get(tool) === undefined) continue;
    const isObject = typeof args === "object" && args !== null && !Array.isArray(args);
    const given = isObject ? (args as Readonly<Record<string, unknown>>) : {};
    known.push({ id: callId(position, at), tool, args: given });
  }
  return known;
}

/** Where the log has the call of an id that `callId` made; nowhere for another one. */
export function placeOfCall(id: string): { readonly position: number; readonly at: number } {
  const [, position, at] = callPattern.exec(id) ?? [];
  return { position: Number(position), at: Number(at) };
}

/** The history as a backend is given it: ids of calls come from providers, and may repeat. */
export function toBackendMessages({
  messages,
  positions,
}: Pick<SessionState, "messages" | "positions">): readonly BackendMessage[] {
  let asked = 0;
  return messages.map((message, index): BackendMessage => {
    const position = positions[index] ?? 0;
    const id = messageId(position);
    if (message.role === "user") return { ...message, id };
    if (message.role === "assistant") asked = position;
    let at = 0;
    const content = message.content.map((part) => {
      if (part.type !== "tool_call" && part.type !== "tool_result") return part;
      const named = { ...part, tool_call_id: callId(asked, at) };
      at += 1;
      return named;
    });
    return { ...message, content, id } as BackendMessage;
  });
}

export function unknownCall(id: string): KitError {
  return new KitError({ code: "invalid_request", message: `No turn of this operation has a call "${id}".` });
}

export function ended(): KitError {
  return new KitError({ code: "invalid_request", message: "The operation has ended." });
}
