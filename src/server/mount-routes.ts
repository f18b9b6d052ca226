import type { Hono } from "hono";
import { KitError } from "../base/kit-error.ts";
import { emptyReply } from "./reply.ts";
import type { Route, RouteServer, ServerEnv } from "./route.ts";

/**
 * Mounts routes, and on every path of theirs a refusal of the other methods.
 *
 * Fixed paths come first, so that `/api/specs/graph` is never taken for the spec with the id "graph".
 */
export function mountRoutes(app: Hono<ServerEnv>, routes: readonly Route[], server: RouteServer): void {
  const byPath = Map.groupBy(routes, (route) => route.path.replace(/\{(\w+)\}/g, ":$1"));
  const paths = [...byPath].sort(([a], [b]) => Number(a.includes(":")) - Number(b.includes(":")));
  for (const [path, ofPath] of paths) {
    for (const route of ofPath) app.on(route.method, path, (context) => route.answer(context, server));
    const allow = allowedMethods(ofPath);
    app.all(path, ({ req }) => {
      if (req.method === "OPTIONS") return emptyReply({ allow: allow.join(", ") });
      throw new KitError({
        code: "method_not_allowed",
        message: "This method is not allowed here.",
        meta: { allow },
      });
    });
  }
}

function allowedMethods(routes: readonly Route[]): string[] {
  const methods = routes.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  return [...new Set([...methods, "OPTIONS"])];
}
