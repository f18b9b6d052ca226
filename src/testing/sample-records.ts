import type { KitEvent } from "../protocol/event.ts";

/** The fields that every event of a prompt has. */
export function eventContext(index: number) {
  return {
    index,
    timestamp: "2026-11-21T10:00:00.000Z",
    agent: "reviewer",
    instance_id: "pr-7",
    session: "default",
    operation_id: "op_1",
  };
}

/** A piece of a model's answer. */
export function textDelta(index: number): Extract<KitEvent, { type: "text_delta" }> {
  return { ...eventContext(index), type: "text_delta", text: `word ${index} ` };
}

/** An entry of a session's log. */
export const sampleNote = {
  version: 1,
  type: "note",
  name: "n",
  value: 1,
  timestamp: "2026-11-20T10:00:00.000Z",
} as const;
