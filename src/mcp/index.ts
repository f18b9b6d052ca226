/**
 * `kit/mcp`: an open project as a Model Context Protocol server.
 */
import "../base/require-node.ts";

export { createMcpServer } from "./create-mcp-server.ts";
export { type ServeMcpOptions, serveMcp } from "./serve-mcp.ts";
export type { ToolOptions } from "./tool.ts";
