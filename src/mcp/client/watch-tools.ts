import type { Client } from "@modelcontextprotocol/client";
import { times } from "./limits.ts";

/** Hears of changes: unasked in the old protocol, on a subscription in the new one. */
export function watchTools(client: Client, onToolsChanged: () => void): void {
  client.setNotificationHandler("notifications/tools/list_changed", () => onToolsChanged());
  if (client.getServerCapabilities()?.tools?.listChanged !== true || client.getProtocolEra() !== "modern")
    return;
  const listen = (): void => {
    client
      .listen({ toolsListChanged: true })
      .then(({ closed }) => closed)
      .then(
        (how) => {
          // What changed meanwhile was not heard.
          if (how === "local" || client.transport === undefined) return;
          onToolsChanged();
          setTimeout(listen, times.maxBackoff).unref();
        },
        // A server may offer no subscriptions; its tools are listed again with the next connection.
        () => undefined,
      );
  };
  listen();
}
