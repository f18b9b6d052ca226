/**
 * `kit/mcp`: an open project as a Model Context Protocol server.
 */
import "../base/require-node.ts";

export { createMcpServer, type ProjectServerOptions } from "./server/create-mcp-server.ts";
export type { ToolOptions } from "./server/read-tool.ts";
export { type ServeMcpOptions, serveMcp } from "./server/serve-mcp.ts";
export type { VerifyCall } from "./server/tools/verify-specs.ts";
