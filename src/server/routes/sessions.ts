import type { ServiceAction } from "../../protocol/access.ts";
import { sessionRoutes } from "../../protocol/routes/agent-routes.ts";
import type { SessionKey, TouchedSession } from "../../protocol/session-entry.ts";
import type { ListedSession } from "../../protocol/session-page.ts";
import { bindRoutes, type Handlers, type Route, type RouteRequest } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

/** `/sessions`: the sessions of all agents, and the removal of old ones. */
export function bindSessionRoutes({ service, authorization }: ServiceContext): readonly Route[] {
  /** Asks for the permission of the route, for each session. */
  const asking =
    ({
      principal,
      itemAction: action,
    }: Pick<RouteRequest, "principal"> & { readonly itemAction: ServiceAction }) =>
    ({ agent, instance_id: instance }: TouchedSession) => ({ principal, action, agent, instance });
  const handlers: Handlers<typeof sessionRoutes> = {
    async "GET /sessions"(input) {
      const { items: visible, next_cursor } = await authorization.page(async (from) => {
        const { sessions, ...rest } = await service.sessions.list({
          ...input.query,
          ...from,
          limit: from.limit ?? input.query.limit ?? 50,
        });
        return { items: sessions, ...rest };
      }, asking(input));
      const waiting = new Set((await service.approvals.list()).map(nameOf));
      const working = await service.working(visible);
      const statusOf = (session: TouchedSession, at: number): ListedSession["status"] => {
        if (waiting.has(nameOf(session))) return "waiting";
        return working[at] === true ? "working" : "idle";
      };
      return {
        sessions: visible.map((session, at) => ({ ...session, status: statusOf(session, at) })),
        next_cursor,
      };
    },
    async "POST /sessions/prune"(input) {
      const { older_than_seconds, dry_run, ...page } = input.body;
      return await service.sessions.prune({
        ...page,
        olderThanMs: older_than_seconds * 1_000,
        dryRun: dry_run,
        everywhere: true,
        permit: async (session) => (await authorization.permitted([session], asking(input))).length > 0,
      });
    },
  };
  return bindRoutes(sessionRoutes, handlers);
}

function nameOf({ agent, instance_id, session }: SessionKey): string {
  return JSON.stringify([agent, instance_id, session]);
}
