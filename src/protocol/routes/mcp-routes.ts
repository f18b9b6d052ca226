import { z } from "zod";
import { defineRoutes } from "./route.ts";

const mcp = { tag: "mcp" } as const;

const message = z
  .looseObject({ jsonrpc: z.literal("2.0", { error: 'must be "2.0"' }) })
  .meta({ id: "McpMessage", description: "A message of JSON-RPC 2.0." });

const metadata = z
  .object({
    resource: z
      .string()
      .meta({ description: "The address of the endpoint, for which tokens must be issued." }),
    authorization_servers: z.array(z.string()),
    scopes_supported: z.array(z.string()).optional(),
    bearer_methods_supported: z.array(z.string()),
    resource_name: z.string(),
  })
  .meta({ id: "ProtectedResource", description: "Where clients get tokens: RFC 9728." });

const describe = {
  ...mcp,
  summary: "Where clients of `/mcp` get tokens",
  description: "404 without `server.oauth`. Needs no key.",
  reply: metadata,
  errors: ["not_found"],
} as const;

/** The Model Context Protocol over HTTP. */
export const mcpRoutes = defineRoutes({
  "POST /mcp": {
    ...mcp,
    operation: "sendMcpMessage",
    summary: "A message of the Model Context Protocol",
    description:
      "Revisions 2025-11-25 and 2026-07-28, without sessions. The tools are those of `kit mcp`, the agents that are served, and the workflows. A call that reports progress is answered by server-sent events, one message each.",
    body: message,
    reply: z.looseObject({}).meta({ id: "McpReply", description: "The answer, or nothing (202)." }),
    stream: "asked",
    frames: "Server-sent events. `data` of each is a message of JSON-RPC.",
    hasRpcErrors: true,
    errors: ["unavailable"],
    action: "project.read",
  },
  "GET /.well-known/oauth-protected-resource": { ...describe, operation: "getProtectedResource" },
  "GET /.well-known/oauth-protected-resource/mcp": { ...describe, operation: "getProtectedMcp" },
});
