import type { Client } from "@modelcontextprotocol/client";
import type { Clock } from "../../base/clock.ts";
import { limits, times } from "./limits.ts";
import { closedTooOften } from "./server-failure.ts";

export interface ToolsListener {
  readonly onToolsChanged: () => void;
  /** Changes are not waited for any more. */
  readonly onUnheard: (why: unknown) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Hears of changes: unasked in the old protocol, on a subscription in the new one. */
export function watchTools(
  client: Client,
  { onToolsChanged, onUnheard, clock, signal }: ToolsListener,
): void {
  client.setNotificationHandler("notifications/tools/list_changed", () => onToolsChanged());
  if (client.getServerCapabilities()?.tools?.listChanged !== true || client.getProtocolEra() !== "modern")
    return;
  const isOver = (): boolean => client.transport === undefined || signal.aborted;
  const listen = async (): Promise<void> => {
    for (let short = 0; short <= limits.reconnects; ) {
      const started = clock.now();
      const { closed } = await client.listen({ toolsListChanged: true });
      const how = await closed;
      if (how === "local" || isOver()) return;
      // What changed meanwhile was not heard.
      onToolsChanged();
      short = clock.now() - started >= times.steadyStream ? 0 : short + 1;
      await clock.sleep(times.maxBackoff, signal);
      if (isOver()) return;
    }
    onUnheard(closedTooOften());
  };
  listen().catch((error: unknown) => {
    if (!isOver()) onUnheard(error);
  });
}
