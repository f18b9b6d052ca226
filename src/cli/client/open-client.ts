import { KitError } from "../../base/kit-error.ts";
import type { KitClient } from "../../client/kit-client.ts";
import { type CommandContext, type CommandOption, option } from "../command.ts";
import { usageError } from "../report-error.ts";
import { findRunningServers } from "../running-server.ts";
import { loadProjectConfig } from "../with-project.ts";

/** Names a server; without it, the one that runs for this project. */
export const urlOption: CommandOption<string> = option(
  "--url <address>",
  "The server's address; default: KIT_URL, or the server of this project. Its key: KIT_API_KEY",
  parseUrl,
);

function parseUrl(text: string): string {
  if (/^https?:\/\/[^/]/.test(text) && URL.canParse(text)) return text;
  throw usageError(`"${text}" is not the address of a server.`, "Such as http://127.0.0.1:2024.");
}

/** Finds the server each time it is called: a restarted server may have another address. */
export type LocateClient = () => Promise<KitClient | undefined>;

/**
 * Reads which server the options name, and its key from KIT_API_KEY or KIT_API_KEYS. The function returns undefined
 * if no server was named and none runs here.
 */
export async function clientLocator(context: CommandContext, url: string | undefined): Promise<LocateClient> {
  const { environment } = await loadProjectConfig(context, { sendsKeys: true });
  const address = url ?? environment.KIT_URL;
  const apiKey = environment.KIT_API_KEY ?? environment.KIT_API_KEYS?.split(",")[0]?.trim();
  return async () => {
    const baseUrl = address ?? (await findRunningServers(context.root))[0]?.url;
    if (baseUrl === undefined) return undefined;
    const { KitClient } = await import("../../client/kit-client.ts");
    return new KitClient({
      baseUrl,
      signal: context.signal,
      // A person waits, and the next server of a project may have another address.
      retry: { reconnects: 3 },
      ...(apiKey === undefined || apiKey === "" ? {} : { apiKey }),
    });
  };
}

/** A client of the server that the options name; throws `unavailable` if there is none. */
export async function openClient(context: CommandContext, url: string | undefined): Promise<KitClient> {
  const locate = await clientLocator(context, url);
  const client = await locate();
  if (client !== undefined) return client;
  throw new KitError({
    code: "unavailable",
    message: "No server runs for this project.",
    hint: "Start one with 'kit start' or 'kit dev', or name one with --url.",
  });
}
