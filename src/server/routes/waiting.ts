import { comparePlaces, type InboxListing, placeOfItem } from "../../app/service/inbox.ts";
import { KitError } from "../../base/kit-error.ts";
import type { WaitingPlace } from "../../engine/contract.ts";
import type { AuthorizeRequest } from "../../protocol/access.ts";
import { waitingRoutes } from "../../protocol/routes/agent-routes.ts";
import type { WaitingItem } from "../../protocol/waiting.ts";
import { bindRoutes, type Handlers, type Route } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

const defaultPageSize = 50;
/** Items that are read at a time to count those that a sender may see. */
const readAtOnce = 1_000;

/** `/waiting`: what waits for a person. */
export function bindWaitingRoutes({ service, authorization }: ServiceContext): readonly Route[] {
  /** All items that the sender may see; each costs a call of `server.authorize`. */
  const readPermitted = async (
    listing: Pick<InboxListing, "kind">,
    ask: (item: WaitingItem) => AuthorizeRequest,
  ): Promise<readonly WaitingItem[]> => {
    const permitted: WaitingItem[] = [];
    let after: WaitingPlace | undefined;
    for (;;) {
      const { items } = await service.waiting({ ...listing, limit: readAtOnce, after });
      permitted.push(...(await authorization.permitted(items, ask)));
      const last = items.at(-1);
      if (last === undefined || items.length < readAtOnce) return permitted;
      after = placeOfItem(last);
    }
  };
  const handlers: Handlers<typeof waitingRoutes> = {
    async "GET /waiting"({ query, principal, itemAction: action }) {
      const { kind, limit = defaultPageSize, cursor } = query;
      const after = cursor === undefined ? undefined : parsePlace(cursor);
      if (!authorization.isRestricted) {
        const { items, total } = await service.waiting({ kind, after, limit: limit + 1 });
        return toPage(items, { limit, total });
      }
      const all = await readPermitted({ kind }, (item) => {
        switch (item.kind) {
          case "call":
            return { principal, action, agent: item.approval.agent, instance: item.approval.instance_id };
          case "signal":
            return { principal, action: "run.read", workflow: item.workflow, run_id: item.run_id };
          case "login":
            return { principal, action: "mcp.login", mcp_server: item.server };
        }
      });
      const following = all.filter(
        (item) => after === undefined || comparePlaces(placeOfItem(item), after) > 0,
      );
      return toPage(following, { limit, total: all.length });
    },
  };
  return bindRoutes(waitingRoutes, handlers);
}

function toPage(
  items: readonly WaitingItem[],
  { limit, total }: { readonly limit: number; readonly total: number },
) {
  const page = items.slice(0, limit);
  const last = page.at(-1);
  const next_cursor = items.length > limit && last !== undefined ? toCursor(placeOfItem(last)) : undefined;
  return { items: page, total, next_cursor };
}

function toCursor({ at, id, position }: WaitingPlace): string {
  return `${at} ${id} ${position}`;
}

function parsePlace(cursor: string): WaitingPlace {
  const [, at, id, position] = /^(\d{4}-\S{1,30}Z) ([a-z]{1,20}_\S{1,100}) (\d{1,9})$/.exec(cursor) ?? [];
  if (at !== undefined && id !== undefined && !Number.isNaN(Date.parse(at)))
    return { at, id, position: Number(position) };
  throw new KitError({
    code: "invalid_request",
    message: "The cursor does not belong to this list.",
    meta: { issues: [{ path: "cursor", message: "must be the next_cursor of an earlier page" }] },
  });
}
