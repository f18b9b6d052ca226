import type { InstanceTarget } from "../../app/service/service.ts";
import type { Principal } from "../../protocol/access.ts";
import { checkAgent } from "../reachable.ts";
import type { RouteRequest } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

/** The instance that a request to `/agents/{name}/{id}…` is about. */
export function instanceOf({ segment }: Pick<RouteRequest<"name" | "id">, "segment">): InstanceTarget {
  return { agent: segment("name"), instance_id: segment("id") };
}

/** The principal whose share of the work a request takes from. */
export function principalOf({ principal }: { readonly principal: Principal | undefined }): {
  readonly principal?: string;
} {
  return principal === undefined ? {} : { principal: principal.id };
}

/** Refuses senders who may not do this with the instance, and agents that are not reachable. */
export async function guardAgent(
  context: ServiceContext,
  { action, principal }: RouteRequest,
  { agent, instance_id }: InstanceTarget,
): Promise<void> {
  if (action === undefined) return;
  await context.authorization.check({ principal, action, agent, instance: instance_id });
  checkAgent(context, agent);
}
