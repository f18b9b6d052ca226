import type { TracePlace, Tracing } from "../../protocol/tracing.ts";
import type { Harness, OperationName } from "../agent-runtime.ts";
import type { OperationTracing } from "../events.ts";
import { maskValue } from "../secrets.ts";

/** The spans of an operation. */
export function tracingOfOperation(
  tracing: Tracing,
  { runtime: { origins } }: Pick<Harness, "runtime">,
  operation: OperationName,
): OperationTracing {
  const at = (place: Pick<TracePlace, "turn_id" | "tool_call_id">): TracePlace => ({
    ...operation,
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
      if (calls.length > 0) tracing.calls?.(at(place), calls);
    },
  };
}
