import { toTimes } from "../../base/time-range.ts";
import type { ServiceAction } from "../../protocol/access.ts";
import { sessionRoutes } from "../../protocol/routes/agent-routes.ts";
import type { SessionKey, TouchedSession } from "../../protocol/session-entry.ts";
import { sessionName } from "../../protocol/session-name.ts";
import type { ListedSession, SessionStatus } from "../../protocol/session-page.ts";
import type { SessionListing } from "../../stores/contract.ts";
import { bindRoutes, type Handlers, type Route, type RouteRequest } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

/** `/sessions`: the sessions of all agents, and the removal of old ones; and what they were shown. */
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
      const { status, limit = 50, ...query } = input.query;
      const now = status === undefined ? undefined : await workNow(service);
      const selected = status === undefined || now === undefined ? {} : selectionOf(status, now);
      const { items, ...rest } = await authorization.page(async (from) => {
        const { sessions, ...page } = await service.sessions.list({
          ...query,
          ...toTimes(query),
          ...selected,
          ...from,
          limit: from.limit ?? limit,
        });
        return { items: sessions, ...page };
      }, asking(input));
      const { waiting, working } = now ?? (await workNow(service, items));
      const isWaiting = new Set(waiting.map(sessionName));
      const isWorking = new Set(working.map(sessionName));
      const statusOf = (session: TouchedSession): ListedSession["status"] => {
        const name = sessionName(session);
        if (isWaiting.has(name)) return "waiting";
        return isWorking.has(name) ? "working" : (session.state ?? "idle");
      };
      return { sessions: items.map((session) => ({ ...session, status: statusOf(session) })), ...rest };
    },
    async "GET /api/guidelines/usage"(input) {
      const { principal, action, query } = input;
      await authorization.check({ principal, action });
      return await service.guidelineUsage({
        agent: query.agent,
        since: toTimes(query).since,
        permitted: (sessions) => authorization.permitted(sessions, asking(input)),
      });
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

/** The sessions that wait for a person, and those that run. */
interface WorkNow {
  readonly waiting: readonly SessionKey[];
  readonly working: readonly SessionKey[];
}

async function workNow(service: ServiceContext["service"], among?: readonly SessionKey[]): Promise<WorkNow> {
  const [waiting, working] = await Promise.all([service.waitingSessions(among), service.atWork()]);
  return { waiting, working };
}

/** The part of a listing that selects the sessions with a status. What runs and waits now is not in the store. */
function selectionOf(
  status: SessionStatus,
  { waiting, working }: WorkNow,
): Pick<SessionListing, "state" | "only" | "except"> {
  if (status === "waiting") return { only: waiting };
  if (status !== "working") return { state: status, except: [...waiting, ...working] };
  const isWaiting = new Set(waiting.map(sessionName));
  return { only: working.filter((key) => !isWaiting.has(sessionName(key))) };
}
