import { isoTime } from "../../base/clock.ts";
import type { ImagePart, UserMessage } from "../../protocol/message.ts";
import type { MaybePromise } from "../../stores/contract.ts";
import type { Harness, Operation } from "../agent-runtime.ts";

export interface Said {
  readonly text: string;
  readonly images?: readonly ImagePart[];
  readonly source?: UserMessage["source"];
}

/** Puts a message of the user, or of kit itself, at the end of the history. */
export function say(harness: Harness, operation: Operation, said: Said): MaybePromise<void> {
  const message: UserMessage = {
    role: "user",
    content: [{ type: "text", text: operation.mask?.(said.text) ?? said.text }, ...(said.images ?? [])],
    timestamp: isoTime(harness.runtime.clock.now()),
    ...(said.source === undefined ? {} : { source: said.source }),
  };
  return operation.append([{ version: 1, type: "message", message, operation_id: operation.id }]);
}
