import { z } from "zod";
import { toOpenApiDocument } from "../openapi-document.ts";
import { defineRoute, type Route } from "../route.ts";

/** `GET /openapi.json`: the description of `routes` and of itself, built when first asked for. */
export function openApiRoutes(routes: readonly Route[]): readonly Route[] {
  let document: unknown;
  const own: Route = defineRoute({
    operation: "getDescription",
    method: "GET",
    path: "/openapi.json",
    summary: "This description, OpenAPI 3.1",
    tag: "service",
    reply: z.looseObject({ openapi: z.string() }),
    handle: () => {
      document ??= toOpenApiDocument([...routes, own]);
      return document;
    },
  });
  return [own];
}
