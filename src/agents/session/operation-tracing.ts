import type { TracePlace } from "../../protocol/tracing.ts";
import type { Harness, LiveSession } from "../agent-runtime.ts";
import type { OperationTracing } from "../events.ts";
import { maskValue } from "../secrets.ts";

/** The spans of an operation; undefined if no listener traces. */
export function tracingOfOperation(
  harness: Harness,
  { key }: Pick<LiveSession, "key">,
  operation_id: string,
): OperationTracing | undefined {
  const { tracing } = harness.events;
  if (tracing === undefined) return undefined;
  const { origins } = harness.runtime;
  const at = (place: Pick<TracePlace, "turn_id" | "tool_call_id">): TracePlace => ({
    ...key,
    operation_id,
    ...place,
  });
  return {
    headers: (place) => tracing.of(at(place)),
    within(place, work) {
      const fullPlace = at(place);
      const run = (): ReturnType<typeof work> => tracing.within(fullPlace, work);
      return origins === undefined ? run() : origins.run({ ...tracing.of(fullPlace) }, run);
    },
    notify(place, { content, request }, mask) {
      tracing.request?.(at(place), mask === undefined ? request : maskValue(request, mask));
      if (!tracing.capturesContent) return;
      tracing.content(at(place), mask === undefined ? content() : maskValue(content(), mask));
    },
    notifyCalls(place, calls) {
      tracing.calls?.(at(place), calls);
    },
  };
}
