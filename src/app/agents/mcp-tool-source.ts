import type { ToolSource } from "../../agents/agent-runtime.ts";
import type { McpClient } from "../../mcp/client/create-mcp-client.ts";

/** The tools of MCP servers for every operation. A server that is missing is a warning in its log. */
export function createMcpToolSource(client: McpClient): ToolSource {
  return ({ signal, emit }) =>
    client.tools({
      signal,
      onProblem: ({ server, message }) =>
        emit({
          type: "log",
          level: "warning",
          message: `MCP server "${server}": ${message}`,
          data: { mcp_server: server },
        }),
    });
}
