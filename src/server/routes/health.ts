import type { Service } from "../../app/service/service.ts";
import { version } from "../../base/version.ts";
import { type Health, healthSchema } from "../../protocol/service.ts";
import { defineRoute, type Route } from "../route.ts";

/** `GET /health`: answers without a key, and says nothing about the project but that it cannot be served. */
export function healthRoutes(service: Pick<Service, "problem"> | undefined): readonly Route[] {
  const health: Health = { ok: true, name: "kit", version };
  return [
    defineRoute({
      operation: "checkHealth",
      method: "GET",
      path: "/health",
      summary: "Whether the server is there",
      tag: "service",
      reply: healthSchema,
      errors: ["store_unavailable"],
      handle() {
        const problem = service?.problem();
        if (problem !== undefined) throw problem;
        return health;
      },
    }),
  ];
}
