import type { EventLog } from "../../engine/event-log-contract.ts";
import type { EventType, KitEvent } from "../../protocol/event.ts";

export type EventOf<Type extends EventType> = Extract<KitEvent, { type: Type }>;

export interface Instance {
  readonly agent: string;
  readonly instance_id: string;
}

/** Events that are read at a time. */
export const pageSize = 1_000;

interface Range {
  /** Events after this index. */
  readonly from: number;
  readonly to: number;
  readonly types?: readonly EventType[] | undefined;
}

/** Reads the events of a stream after an index, up to another. */
export async function* eventsBetween(
  events: EventLog,
  stream: string,
  { from, to, types }: Range,
): AsyncGenerator<KitEvent> {
  for (let after = from; ; ) {
    const page = await events.read(stream, { after, limit: pageSize, types });
    for (const event of page) {
      if (event.index > to) return;
      if (event.type !== "gap") yield event;
    }
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize || last.index >= to) return;
    after = last.index;
  }
}
