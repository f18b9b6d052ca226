import { maskSecrets } from "../../agents/secrets.ts";
import { limits } from "../limits.ts";
import type { ServerLink } from "../servers/server-link.ts";

/**
 * Explains to a model that a tool is missing because of a limit; `undefined` if no limit is the reason.
 */
export function leftOutText(toolName: string, links: readonly ServerLink[]): string | undefined {
  const owner = links.find((link) => link.lastCatalogue()?.leftOut.has(toolName));
  if (owner === undefined) {
    const unread = links.find(
      (link) => link.lastCatalogue()?.isPartial && toolName.startsWith(`mcp__${link.name}__`),
    );
    if (unread === undefined) return undefined;
    return `There is no tool named "${toolName}" among those that kit reads from the MCP server "${unread.name}", which lists more.`;
  }
  const used = owner.lastCatalogue()?.tools.length;
  const search = owner.settings.maxTools < limits.tools ? ", or set mcp.mode to search_execute" : "";
  return `The MCP server "${owner.name}" has the tool "${toolName}", but it is not available: kit accepts only the first ${used} of its tools. The person who configured the server can add it to \`allow\`${search}.`;
}

/**
 * Explains to a model that a tool is missing because its server is down; `undefined` if no such server is down.
 */
export function downText(toolName: string, links: readonly ServerLink[]): string | undefined {
  const owner = links.find(
    (link) => toolName.startsWith(`mcp__${link.name}__`) && link.failure() !== undefined,
  );
  const failure = owner?.failure();
  if (owner === undefined || failure === undefined) return undefined;
  const retries = owner.retries();
  const triedText =
    retries === undefined ? "A person has to correct its configuration." : retriesText(retries);
  const why = maskSecrets(failure.message, owner.settings.secrets);
  return `The MCP server "${owner.name}" is down, so the tool "${toolName}" cannot be called. ${why} ${triedText}`;
}

function retriesText({
  failures,
  againInMs,
}: {
  readonly failures: number;
  readonly againInMs: number;
}): string {
  const triedText =
    failures === 0 ? "" : `kit has tried it ${failures === 1 ? "once" : `${failures} times`}. `;
  const when =
    againInMs > 0 ? `in ${Math.ceil(againInMs / 1_000)} seconds at the earliest` : "at the next step";
  return `${triedText}kit tries again ${when}. Continue without it until then.`;
}
