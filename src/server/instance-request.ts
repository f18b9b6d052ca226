import type { InstanceTarget } from "../app/service/service.ts";
import type { Principal, ServiceAction } from "../protocol/access.ts";
import { checkAgent } from "./reachable-agent.ts";
import type { RouteRequest } from "./route.ts";
import type { ServiceContext } from "./service-context.ts";

/** The parameters of a path below `/agents/{name}/{id}`. */
export const instanceParameters: Readonly<Record<string, string>> = {
  name: "The agent's name.",
  id: "The instance's id, of the client's choice.",
};

/** Which instance a request to `/agents/{name}/{id}…` is about. */
export function instanceOf({ segment }: Pick<RouteRequest, "segment">): InstanceTarget {
  return { agent: segment("name"), instance_id: segment("id") };
}

/** Whose share of the work a request takes from. */
export function principalOf({ principal }: { readonly principal: Principal | undefined }): {
  readonly principal?: string;
} {
  return principal === undefined ? {} : { principal: principal.id };
}

/** Refuses who may not do this with the instance, and agents that are not reachable. */
export function guardAgent(
  context: ServiceContext,
  action: ServiceAction,
): (request: RouteRequest) => Promise<void> {
  return async (request) => {
    const { agent, instance_id } = instanceOf(request);
    await context.authorization.check({ principal: request.principal, action, agent, instance: instance_id });
    checkAgent(context, agent);
  };
}
