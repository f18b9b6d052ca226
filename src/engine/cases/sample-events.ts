import type { KitEvent } from "../../protocol/event.ts";
import type { EventLog } from "../event-log-contract.ts";

/** The stream of most cases of event logs. */
export const stream = "agent/reviewer/pr-7";

export function range(first: number, last: number): readonly number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, offset) => first + offset);
}

export function delta(index: number, text = `word ${index} `): KitEvent {
  return { ...context(index), type: "text_delta", text, turn_id: "turn_1" };
}

export function said(index: number): KitEvent {
  return { ...context(index), type: "log", level: "info", message: `said ${index}` };
}

export function idle(index: number): KitEvent {
  return { ...context(index), type: "idle" };
}

function context(index: number): Omit<Extract<KitEvent, { type: "idle" }>, "type"> {
  const timestamp = "2026-11-21T10:00:00.000Z";
  return {
    index,
    timestamp,
    agent: "reviewer",
    instance_id: "pr-7",
    session: "default",
    operation_id: "op_1",
  };
}

export function indexOf(event: KitEvent): number {
  return event.index;
}

export function textOf(event: KitEvent): string {
  return event.type === "text_delta" ? event.text : "";
}

export async function indexes(log: EventLog): Promise<readonly number[]> {
  return (await log.read(stream)).map(indexOf);
}

export async function collect(log: EventLog, after: number): Promise<readonly number[]> {
  const seen: number[] = [];
  for await (const event of log.subscribe(stream, { after })) seen.push(event.index);
  return seen;
}
