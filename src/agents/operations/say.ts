import { isoTime } from "../../base/clock.ts";
import type { FilePart, ImagePart, UserMessage } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { MaybePromise } from "../../stores/contract.ts";
import type { Harness, Operation } from "../agent-runtime.ts";

export interface Said {
  readonly text: string;
  /** Pictures and documents behind the text. */
  readonly files?: readonly (FilePart | ImagePart)[];
  readonly source?: UserMessage["source"];
  readonly shows?: UserMessage["shows"];
  /** Entries that stand before it. */
  readonly before?: readonly SessionEntry[];
  /** What the operation was asked: the log takes it once. */
  readonly isInput?: boolean;
}

/** Puts a message of the user, or of kit itself, at the end of the history. */
export function say(harness: Harness, operation: Operation, said: Said): MaybePromise<void> {
  const message: UserMessage = {
    role: "user",
    content: [{ type: "text", text: operation.mask?.(said.text) ?? said.text }, ...(said.files ?? [])],
    timestamp: isoTime(harness.runtime.clock.now()),
    ...(said.source === undefined ? {} : { source: said.source }),
    ...(said.shows === undefined ? {} : { shows: said.shows }),
  };
  const entry = { version: 1, type: "message", message, operation_id: operation.id } as const;
  return operation.append([...(said.before ?? []), entry], said.isInput === true ? operation.id : undefined);
}
