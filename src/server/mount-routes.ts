import type { Hono } from "hono";
import { KitError } from "../base/kit-error.ts";
import type { AnswerRequest } from "./answer-request.ts";
import { emptyReply } from "./reply.ts";
import type { Route, RouteServer, ServerEnv } from "./route.ts";

/** Mounts routes, on every path of theirs a refusal of the other methods, and one of all other paths. */
export function mountRoutes(
  app: Hono<ServerEnv>,
  routes: readonly Route[],
  { answer, ...server }: RouteServer & { readonly answer: AnswerRequest },
): void {
  const byPath = Map.groupBy(routes, (route) => route.path.replace(/\{(\w+)\}/g, ":$1"));
  for (const [path, ofPath] of byPath) {
    const allow = allowedMethods(ofPath);
    const byMethod = new Map<string, Route>(ofPath.map((route) => [route.method, route]));
    app.all(path, (context) =>
      answer(context, () => {
        const { method } = context.req;
        const route = byMethod.get(method === "HEAD" ? "GET" : method);
        if (route !== undefined) return route.answer(context, server);
        if (method === "OPTIONS") return emptyReply({ allow: allow.join(", ") });
        throw new KitError({
          code: "method_not_allowed",
          message: "This method is not allowed here.",
          meta: { allow },
        });
      }),
    );
  }
  app.all("*", (context) =>
    answer(context, () => {
      throw new KitError({
        code: "not_found",
        message: "There is no such route: GET /openapi.json lists them.",
      });
    }),
  );
}

function allowedMethods(routes: readonly Route[]): string[] {
  const methods = routes.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  return [...new Set([...methods, "OPTIONS"])];
}
