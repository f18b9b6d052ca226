import type { AssistantMessage, ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import { type AsideNote, asideNote, type PastOperation } from "../session/past-operation.ts";
import type { SessionState } from "../session/session-state.ts";

/** The note that says what the answer before it was asked with, where that was not the next turn as it is. */
export const requestNote = "backend_request";

/** An answer of the model that the log has already. */
export interface PastTurn {
  readonly message: AssistantMessage;
  readonly position: number;
}

interface AskedTurn extends PastTurn {
  readonly request: string | undefined;
}

/** Turns that a backend did not hear of before its operation was interrupted: it is given them in place of new ones. */
export class PastTurns {
  readonly #left: AskedTurn[] = [];

  /** `after`: the position in the log of the last thing that it heard of. */
  constructor({ messages, positions, notes }: PastOperation, after: number) {
    const requests = new Map<number, string>();
    for (const { name, value, position } of notes) {
      if (name === requestNote) requests.set(position - 1, String(value));
      if (name !== asideNote || position <= after) continue;
      const { message, request } = value as AsideNote;
      this.#left.push({ message, position, request });
    }
    messages.forEach((message, index) => {
      const position = positions[index] ?? 0;
      if (message.role !== "assistant" || position <= after) return;
      // One that broke off was never heard of.
      if (message.finish_reason === "aborted" || message.finish_reason === "error") return;
      this.#left.push({ message, position, request: requests.get(position) });
    });
    this.#left.sort((one, other) => one.position - other.position);
  }

  /** The next answer to such a request. */
  next(request: string | undefined): PastTurn | undefined {
    return this.#take((turn) => turn.message.source === undefined && turn.request === request);
  }

  /** The next call that the backend made itself, where it is that one. */
  call({ tool, args }: Pick<ToolCallPart, "tool" | "args">): PastTurn | undefined {
    const wanted = JSON.stringify([tool, args]);
    return this.#take(
      ({ message: { source, content } }) =>
        source === "backend" &&
        content.some(
          (part) => part.type === "tool_call" && JSON.stringify([part.tool, part.args]) === wanted,
        ),
    );
  }

  #take(isWanted: (turn: AskedTurn) => boolean): PastTurn | undefined {
    const at = this.#left.findIndex(isWanted);
    return at === -1 ? undefined : this.#left.splice(at, 1)[0];
  }
}

/** The result that the log has of a call, by the place of the answer which asked for it. */
export function storedResult(
  { state, past }: { readonly state: SessionState; readonly past: PastOperation | undefined },
  place: { readonly position: number; readonly at: number },
): ToolResultPart | undefined {
  for (const { messages, positions } of past === undefined ? [state] : [state, past]) {
    const index = positions.lastIndexOf(place.position);
    const next = index === -1 ? undefined : messages[index + 1];
    if (next?.role === "tool") return next.content[place.at];
  }
  return undefined;
}
