import { Hono } from "hono";
import type { Engine } from "../engine/contract.ts";
import { workflowRoutes } from "../protocol/routes/run-routes.ts";
import { createAuthorization } from "./access/authorize.ts";
import { createConnectionSlots } from "./access/connection-slots.ts";
import { createPathRouter, mountRoutes } from "./answer-request.ts";
import { defaultLimits as limits } from "./limits.ts";
import { toErrorEnvelope, toErrorReply } from "./reply.ts";
import { bindRoutes, type Handlers, type ServerEnv } from "./route.ts";
import { bindClusterRoutes, bindDispatchRoutes, bindRunRoutes } from "./routes/runs.ts";
import { createEventStreams } from "./streams/event-streams.ts";

/**
 * Creates a `fetch` with the routes of runs and dispatches over an engine, for clients in this process. It requires no key and
 * accepts a run of any workflow: the process that runs it checks the name.
 *
 * For example:
 * const client = new KitClient({ baseUrl: "http://kit.invalid", fetch: serveEngine(engine) });
 */
export function serveEngine(engine: Engine): typeof fetch {
  const masked = <Value>(value: Value): Value => value;
  const { heartbeatMs, eventStreams: slots } = limits;
  const context = {
    service: { engine },
    authorization: createAuthorization(undefined, limits),
    streams: createEventStreams({ heartbeatMs, slots: createConnectionSlots({ what: "streams", slots }) }),
    limits,
    masked,
    toEnvelope: (error: unknown) => toErrorEnvelope(error, { dev: true }),
  };
  const workflows: Handlers<typeof workflowRoutes> = {
    "GET /workflows": () => ({ workflows: [] }),
    "GET /schedules": async () => ({ schedules: await engine.listSchedules() }),
    async "POST /workflows/{name}"({ segment, body }) {
      const { run_id } = await engine.startRun({ workflow: segment("name"), payload: body });
      return { status: "accepted", run_id };
    },
  };
  const routes = [
    ...bindRunRoutes(context),
    ...bindDispatchRoutes(context),
    ...bindClusterRoutes(context),
    ...bindRoutes(workflowRoutes, workflows),
  ];
  const app = new Hono<ServerEnv>({ router: createPathRouter() });
  mountRoutes(app, routes, {
    limits,
    masked,
    async answer(_, work) {
      try {
        return await work();
      } catch (error) {
        const { body, ...rest } = toErrorReply(error, { dev: true });
        return new Response(body, rest);
      }
    },
  });
  return async (input, init) => await app.fetch(new Request(input, init));
}
