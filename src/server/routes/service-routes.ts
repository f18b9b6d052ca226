import type { Route } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";
import { agentRoutes } from "./agents.ts";
import { approvalRoutes } from "./approvals.ts";
import { dispatchRoutes } from "./dispatches.ts";
import { promptRoutes } from "./prompts.ts";
import { runRoutes } from "./runs.ts";
import { sessionRoutes } from "./sessions.ts";
import { webhookRoutes } from "./webhooks.ts";
import { workflowRoutes } from "./workflows.ts";

/** The routes that a server has only where there is a service behind it. */
export function serviceRoutes(context: ServiceContext): readonly Route[] {
  return [
    ...agentRoutes(context),
    ...approvalRoutes(context),
    ...promptRoutes(context),
    ...dispatchRoutes(context),
    ...sessionRoutes(context),
    ...workflowRoutes(context),
    ...runRoutes(context),
    ...webhookRoutes(context),
  ];
}
