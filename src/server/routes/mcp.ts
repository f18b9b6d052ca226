import type { OAuthConfig } from "../../app/config/server-schema.ts";
import { KitError } from "../../base/kit-error.ts";
import { mcpRoutes } from "../../protocol/routes/mcp-routes.ts";
import { type Authorization, guardProject } from "../access/authorize.ts";
import type { McpEndpoint, McpEndpointOptions } from "../mcp/create-mcp-endpoint.ts";
import type { McpSettings } from "../mcp/mcp-work.ts";
import { bindRoutes, type Handlers, type Route } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

interface McpRoutesOptions extends Omit<McpEndpointOptions, "work"> {
  readonly context: ServiceContext | undefined;
  readonly authorization: Authorization;
  readonly oauth: OAuthConfig | undefined;
  readonly settings: McpSettings;
}

/** `/mcp`, and the descriptions by which its clients find where to get tokens. */
export function bindMcpRoutes({ context, authorization, oauth, settings, ...options }: McpRoutesOptions): {
  readonly routes: readonly Route[];
  close(): Promise<void>;
} {
  let endpoint: Promise<McpEndpoint> | undefined;
  // Most servers have no such clients, and the protocol is large.
  const open = async (): Promise<McpEndpoint> => {
    const { createMcpEndpoint } = await import("../mcp/create-mcp-endpoint.ts");
    return createMcpEndpoint({ ...options, work: context && { ...context, settings } });
  };
  const describe = () => {
    if (oauth === undefined)
      throw new KitError({
        code: "not_found",
        message: "This server takes no tokens: its configuration has no server.oauth.",
      });
    const { resource, issuer, scopes } = oauth;
    return {
      resource,
      authorization_servers: [issuer],
      ...(scopes === undefined ? {} : { scopes_supported: [...scopes] }),
      bearer_methods_supported: ["header"],
      resource_name: `kit: ${options.project.name}`,
    };
  };
  const handlers: Handlers<typeof mcpRoutes> = {
    async "POST /mcp"(input) {
      endpoint ??= open();
      return await (await endpoint).answer(input, input.body);
    },
    "GET /.well-known/oauth-protected-resource": describe,
    "GET /.well-known/oauth-protected-resource/mcp": describe,
  };
  return {
    routes: bindRoutes(mcpRoutes, handlers, guardProject(authorization)),
    close: async () => await (await endpoint)?.close(),
  };
}
