import type { DeepPartial } from "../base/record.ts";
import type { KitEvent } from "./event.ts";

/** The typed results of the prompt itself, not of its tasks, as far as they have come: each replaces the one before. */
export async function* partialResults<Result>(
  events: AsyncIterable<KitEvent>,
): AsyncGenerator<DeepPartial<Result>, void> {
  for await (const event of events) {
    if (event.type !== "text_delta" || event.task_id !== undefined) continue;
    // As the model wrote it: the schema has not checked it.
    if (event.partial_result !== undefined) yield event.partial_result as DeepPartial<Result>;
  }
}
