import type { Client } from "@modelcontextprotocol/client";
import type { Clock } from "../../base/clock.ts";
import { limits, times } from "./limits.ts";

/** Hears of changes: unasked in the old protocol, on a subscription in the new one. */
export function watchTools(
  client: Client,
  {
    onToolsChanged,
    clock,
    signal,
  }: { readonly onToolsChanged: () => void; readonly clock: Clock; readonly signal: AbortSignal },
): void {
  client.setNotificationHandler("notifications/tools/list_changed", () => onToolsChanged());
  if (client.getServerCapabilities()?.tools?.listChanged !== true || client.getProtocolEra() !== "modern")
    return;
  const listen = async (): Promise<void> => {
    for (let short = 0; short <= limits.reconnects; ) {
      const started = clock.now();
      const { closed } = await client.listen({ toolsListChanged: true });
      const how = await closed;
      // What changed meanwhile was not heard.
      if (how === "local" || client.transport === undefined) return;
      onToolsChanged();
      short = clock.now() - started >= times.steadyStream ? 0 : short + 1;
      await clock.sleep(times.maxBackoff, signal);
      if (client.transport === undefined) return;
    }
  };
  // A server may offer no subscriptions; its tools are listed again with the next connection.
  listen().catch(() => undefined);
}
