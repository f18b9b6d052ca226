import type { KitEvent } from "../../../protocol/event.ts";
import type { EventTable } from "./event-table.ts";
import type { EventWriter } from "./event-writer.ts";

/**
 * What a reader is told who goes on after an index behind which events were removed, for their age or their number.
 * Undefined where the next one is there, or who reads from the beginning.
 */
export function findGap(
  { table, writer }: { readonly table: EventTable; readonly writer: EventWriter },
  stream: string,
  after: number,
): Extract<KitEvent, { type: "gap" }> | undefined {
  if (after <= 0) return undefined;
  const live = writer.live(stream);
  const found = table.findStream(stream);
  const id = live?.id ?? found?.id;
  const oldest = id === undefined ? undefined : table.oldest(id);
  const next = oldest ?? live?.tail[0]?.index ?? (found?.last ?? 0) + 1;
  const missing_to = next - 1;
  if (missing_to <= after) return undefined;
  const [, agent, instance_id = stream.slice(stream.indexOf("/") + 1)] =
    /^agent\/([^/]*)\/(.*)$/s.exec(stream) ?? [];
  return {
    type: "gap",
    missing_from: after + 1,
    missing_to,
    index: missing_to,
    timestamp: new Date().toISOString(),
    ...(agent === undefined ? {} : { agent }),
    instance_id,
    // Of none that is known still; of a run its own.
    operation_id: agent === undefined ? instance_id : "",
    ...(agent === undefined ? { run_id: instance_id } : {}),
  };
}
