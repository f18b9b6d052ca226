import { maskSecrets } from "../../agents/secrets.ts";
import { limits } from "../limits.ts";
import type { ServerLink } from "../servers/server-link.ts";

/**
 * The text for a model about a tool that is not among those of its server because of a limit; undefined where the limits
 * have nothing to do with it.
 */
export function leftOutText(toolName: string, links: readonly ServerLink[]): string | undefined {
  const owner = links.find((link) => link.known()?.leftOut.has(toolName));
  if (owner === undefined) {
    const unread = links.find(
      (link) => link.known()?.isPartial && toolName.startsWith(`mcp__${link.name}__`),
    );
    if (unread === undefined) return undefined;
    return `There is no tool named "${toolName}" among those that kit reads of the MCP server "${unread.name}", which lists more.`;
  }
  const used = owner.known()?.tools.length;
  const search = owner.settings.maxTools < limits.tools ? ", or set mcp.mode to search_execute" : "";
  return `The MCP server "${owner.name}" has the tool "${toolName}", but it is left out: kit takes the first ${used} of its tools. The person who configured the server can name it in \`allow\`${search}.`;
}

/**
 * The text for a model about a tool of a server that is down, whose tools kit does not know; undefined where no server of
 * that name is down.
 */
export function downText(toolName: string, links: readonly ServerLink[]): string | undefined {
  const isOwner = ({ name }: ServerLink): boolean => toolName.startsWith(`mcp__${name}__`);
  const owner = links.find((link) => isOwner(link) && link.failure() !== undefined);
  const failure = owner?.failure();
  if (owner === undefined || failure === undefined) return undefined;
  const retries = owner.retries();
  const tried = retries === undefined ? "A person has to correct its configuration." : retriesText(retries);
  const why = maskSecrets(failure.message, owner.settings.secrets);
  return `The MCP server "${owner.name}" is down, so the tool "${toolName}" cannot be called. ${why} ${tried}`;
}

function retriesText({
  failures,
  againInMs,
}: {
  readonly failures: number;
  readonly againInMs: number;
}): string {
  const tried = failures === 0 ? "" : `kit has tried it ${failures === 1 ? "once" : `${failures} times`}. `;
  const when =
    againInMs > 0 ? `in ${Math.ceil(againInMs / 1_000)} seconds at the earliest` : "with the next step";
  return `${tried}It is tried again ${when}: go on without it until then.`;
}
