import { createHash } from "node:crypto";

/** Characters that providers take in the name of a tool. */
const maxNameLength = 64;

// Without `__` inside and `_` at an end, the server's part of a tool's name is unambiguous.
const serverName = /^(?!.*__)[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9-])?$/;

/** A server's name as it can be part of its tools' names. */
export function isServerName(name: string): boolean {
  return serverName.test(name);
}

/**
 * The names of a server's tools as models know them, `mcp__<server>__<tool>`, in the order given.
 *
 * Letters that providers refuse become `_`. A name that was too long, or that has become another tool's,
 * ends in eight letters of its hash: so a name depends on nothing but the names of the tools, not on
 * their order.
 */
export function toolNames(server: string, tools: readonly string[]): readonly string[] {
  const plain = tools.map((tool) => tool.replace(/[^A-Za-z0-9_-]/g, "_"));
  const owners = new Map<string, number>();
  for (const name of plain) owners.set(name, (owners.get(name) ?? 0) + 1);
  return tools.map((tool, index) => {
    const own = plain[index] ?? "";
    const name = `mcp__${server}__${own}`;
    if (name.length <= maxNameLength && (own === tool || owners.get(own) === 1)) return name;
    return `${name.slice(0, maxNameLength - 9)}_${hashOf(tool)}`;
  });
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}
