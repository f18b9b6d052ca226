import type { ToolSource } from "../../agents/agent-runtime.ts";
import type { McpClient } from "../../mcp/client/create-mcp-client.ts";
import type { SourceProblem } from "../sources/discover-sources.ts";

/** The tools of MCP servers for every operation. A server that is missing is a warning in its log. */
export function createMcpToolSource(client: McpClient): ToolSource {
  const tools: ToolSource = ({ signal, emit }) =>
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
  return Object.assign(tools, { whyMissing: client.whyMissing });
}

/** What is wrong with the servers, for the person who configured them: at their place in the configuration. */
export function serverProblems(client: McpClient | undefined): readonly SourceProblem[] {
  return (client?.problems() ?? []).map(({ server, message, details }) => ({
    path: `mcp.servers.${server}`,
    message: details === undefined ? message : `${message} It said last: ${details}`,
  }));
}
