import { createHash } from "node:crypto";

/** The longest tool name that providers accept. */
const maxNameLength = 64;

// Without `__` inside and `_` at either end, the server's part of a tool's name is unambiguous.
export const serverName = /^(?!.*__)[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9-])?$/;

/** Whether a server's name can be part of its tools' names. */
export function isServerName(name: string): boolean {
  return serverName.test(name);
}

/**
 * The names of a server's tools for models, `mcp__<server>__<tool>`, in the given order.
 *
 * Characters that providers refuse become `_`. A name that is too long, or equal to another tool's, ends in eight
 * characters of its hash, so that it does not depend on the order of the tools.
 */
export function toolNames(server: string, tools: readonly string[]): readonly string[] {
  const safeNames = tools.map((tool) => tool.replace(/[^A-Za-z0-9_-]/g, "_"));
  const owners = new Map<string, number>();
  for (const name of safeNames) owners.set(name, (owners.get(name) ?? 0) + 1);
  return tools.map((tool, index) => {
    const safeName = safeNames[index] ?? "";
    const name = `mcp__${server}__${safeName}`;
    if (name.length <= maxNameLength && (safeName === tool || owners.get(safeName) === 1)) return name;
    return `${name.slice(0, maxNameLength - 9)}_${createHash("sha256").update(tool).digest("hex").slice(0, 8)}`;
  });
}
