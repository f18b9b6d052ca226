import { KitError } from "../../base/kit-error.ts";
import { checkAgent, checkWorkflow } from "../reachable-agent.ts";
import { readSegment } from "../request/read-segment.ts";
import type { ServiceContext } from "../service-context.ts";

/** What a WebSocket is opened to, as the `ready` frame says it. */
export type SocketTarget =
  | { readonly target: "agent"; readonly name: string; readonly instance_id: string }
  | { readonly target: "workflow"; readonly name: string };

/** Reads the target out of a path. Throws `invalid_request`, and `not_found` for any other path. */
export function findTarget(path: string): SocketTarget {
  const [, kind, name = "", id, ...rest] = path.split("/");
  if (kind === "agents" && id !== undefined && rest.length === 0) {
    return {
      target: "agent",
      name: readSegment(name, { name: "name" }),
      instance_id: readSegment(id, { name: "id" }),
    };
  }
  if (kind === "workflows" && id === undefined) {
    return { target: "workflow", name: readSegment(name, { name: "name" }) };
  }
  throw new KitError({ code: "not_found", message: "There is no WebSocket here." });
}

/** Refuses what does not exist, or is not reachable. */
export function checkTarget(context: ServiceContext, { target, name }: SocketTarget): void {
  if (target === "agent") checkAgent(context, name);
  else checkWorkflow(context.service.app, name);
}
