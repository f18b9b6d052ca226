import { ServerFailure } from "./server-failure.ts";

export type McpSdk = typeof import("@modelcontextprotocol/client");

/** Loads the MCP client library, an optional peer of kit, when the first server is needed. */
export async function loadSdk(): Promise<McpSdk> {
  try {
    return await import("@modelcontextprotocol/client");
  } catch (error) {
    throw new ServerFailure(
      "MCP servers need a package that is not installed: npm install @modelcontextprotocol/client",
      { outcome: "not_sent", cause: error },
    );
  }
}
