import { z } from "zod";
import { emptyBodySchema } from "../fields.ts";
import { begunLoginSchema, finishedLoginSchema } from "../login.ts";
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

const parameters = { server: "The name of the MCP server in the configuration." } as const;

/** Logins of persons at the MCP servers whose tools agents use. */
export const loginRoutes = defineRoutes({
  "POST /logins/{server}": {
    ...mcp,
    parameters,
    operation: "beginLogin",
    summary: "Begin a login at an MCP server",
    description:
      "Sets a cookie: only the browser that has it can finish the login, once, at `url` and within ten minutes. Ends a login that was begun before.",
    body: emptyBodySchema,
    reply: begunLoginSchema,
    hasOwnReply: true,
    errors: ["not_found", "unavailable"],
    action: "mcp.login",
  },
  "GET /logins/{server}/callback": {
    ...mcp,
    parameters,
    operation: "finishLogin",
    summary: "Where the browser comes back from the authorization server",
    description: "Needs no key, but the cookie of the login. Browsers get a page.",
    query: z.object({
      state: z.string().optional(),
      code: z.string().optional(),
      iss: z.string().optional().meta({ description: "The authorization server: RFC 9207." }),
      error: z.string().optional(),
    }),
    hasOwnQuery: true,
    reply: finishedLoginSchema,
    hasPage: true,
    errors: ["not_found", "unavailable"],
  },
});
