import type { ServiceAction } from "../../protocol/access.ts";
import type { TouchedSession } from "../../protocol/session-entry.ts";
import {
  pruneBodySchema,
  prunedPageSchema,
  sessionPageSchema,
  sessionsQuerySchema,
} from "../../protocol/session-page.ts";
import { defineRoute, type Route, type RouteRequest } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

const tag = "sessions";

/** `/sessions`: what is kept, and the removal of what nobody has touched for long. */
export function sessionRoutes({ service, authorization }: ServiceContext): readonly Route[] {
  /** Those for which the sender of a request may do this. */
  const permitted = (
    sessions: readonly TouchedSession[],
    { principal }: Pick<RouteRequest, "principal">,
    action: ServiceAction,
  ): Promise<readonly TouchedSession[]> =>
    authorization.permitted(sessions, ({ agent, instance_id: instance }) => ({
      principal,
      action,
      agent,
      instance,
    }));
  return [
    defineRoute({
      operation: "listSessions",
      method: "GET",
      path: "/sessions",
      summary: "Sessions of all agents, in the order in which they were made",
      description: "Those that the sender may read; a page may hold fewer than there is room for.",
      tag,
      query: sessionsQuerySchema,
      reply: sessionPageSchema,
      errors: ["unavailable", "store_unavailable"],
      async handle(input) {
        const { sessions, next_cursor } = await service.sessions.list({
          ...input.query,
          limit: input.query.limit ?? 50,
        });
        return { sessions: await permitted(sessions, input, "agent.read"), next_cursor };
      },
    }),
    defineRoute({
      operation: "pruneSessions",
      method: "POST",
      path: "/sessions/prune",
      summary: "Remove sessions that nobody has touched for long, with their workspaces",
      description:
        "Looks at one page; `next_cursor` goes on. What is at work, waited for or listened to stays, and so does what the sender may not delete.",
      tag,
      body: pruneBodySchema,
      reply: prunedPageSchema,
      errors: ["unavailable", "store_unavailable"],
      async handle(input) {
        const { older_than_seconds, dry_run, ...page } = input.body;
        return await service.sessions.prune({
          ...page,
          olderThanMs: older_than_seconds * 1_000,
          dryRun: dry_run,
          permit: async (session) => (await permitted([session], input, "agent.delete")).length > 0,
        });
      },
    }),
  ];
}
