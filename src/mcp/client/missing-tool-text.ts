import { limits } from "./limits.ts";
import type { ServerLink } from "./server-link.ts";

/**
 * What a model is told of a tool that is not among those of its server because of a limit; undefined where the limits
 * have nothing to do with it.
 */
export function leftOutText(wanted: string, links: readonly ServerLink[]): string | undefined {
  const owner = links.find((link) => link.known()?.leftOut.has(wanted));
  if (owner === undefined) {
    const unread = links.find((link) => link.known()?.isPartial && wanted.startsWith(`mcp__${link.name}__`));
    if (unread === undefined) return undefined;
    return `There is no tool named "${wanted}" among those that kit reads of the MCP server "${unread.name}", which lists more.`;
  }
  const used = owner.known()?.tools.length;
  const search = owner.settings.maxTools < limits.tools ? ", or set mcp.mode to search_execute" : "";
  return `The MCP server "${owner.name}" has the tool "${wanted}", but it is left out: kit takes the first ${used} of its tools. The person who configured the server can name it in \`allow\`${search}.`;
}
